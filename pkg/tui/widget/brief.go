// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// Trim leaves out of an explanation what [Lines], [Commands] and an answer in a few words do not
// need: it is kept for each pod that waits.
func Trim(e *api.Explanation) *api.Explanation {
	kept := &api.Explanation{Target: e.Target, Verdict: e.Verdict, Code: e.Code, Summary: e.Summary, Remedies: e.Remedies, MoreRemedies: e.MoreRemedies, NextSteps: e.NextSteps}
	if e.Outlook != nil {
		kept.Outlook = &api.Outlook{Fits: e.Outlook.Fits, Message: e.Outlook.Message}
	}
	for i := range e.Claims {
		claim := api.ClaimExplanation{Constraints: e.Claims[i].Constraints}
		for _, r := range e.Claims[i].Requests {
			r.EligibleDevices, r.Selectors = nil, nil
			rejected := make([]api.Rejection, 0, len(r.Rejected))
			for _, x := range r.Rejected {
				x.Devices, x.Evidence, x.Holders = nil, nil, nil
				rejected = append(rejected, x)
			}
			r.Rejected = rejected
			claim.Requests = append(claim.Requests, r)
		}
		kept.Claims = append(kept.Claims, claim)
	}
	return kept
}

// BriefLines draws an explanation, no line wider than width: what to do first comes right after the
// reason, since there may be no room for all.
func BriefLines(l *Look, e *api.Explanation, width int) []string {
	d := &drawing{look: l, width: max(width, 10)}
	d.text(e.Summary, 0, Plain)
	steps := Steps(e)
	switch {
	case len(e.Remedies) > 0:
		d.heading("What would make it fit")
	case len(steps) > 0:
		d.heading("What to do")
	}
	if len(steps) > 0 {
		d.step(1, &steps[0])
	}
	more := func() {
		if e.MoreRemedies > 0 {
			d.text(fmt.Sprintf("and %d more", e.MoreRemedies), 2, Faint)
		}
	}
	if len(steps) == 1 {
		more()
	}
	if e.Outlook != nil && e.Outlook.Message != "" {
		if len(steps) > 0 {
			d.lines = append(d.lines, "")
		}
		d.text("Outlook: "+e.Outlook.Message, 0, Faint)
	}
	for i := range e.Claims {
		for j := range e.Claims[i].Requests {
			d.funnel(&e.Claims[i].Requests[j], e.Claims[i].Constraints)
		}
	}
	if len(steps) > 1 {
		d.heading("What else")
		for i := 1; i < len(steps); i++ {
			d.step(i+1, &steps[i])
		}
		more()
	}
	return d.lines
}

type drawing struct {
	look  *Look
	width int
	lines []string
}

// text writes a text as wide as there is room, indented.
func (d *drawing) text(text string, indent int, tone Tone) {
	for _, line := range strings.Split(ansi.Wrap(render.Escape(text), max(d.width-indent, 10), ""), "\n") {
		d.lines = append(d.lines, strings.Repeat(" ", indent)+d.look.Say(tone, line))
	}
}

func (d *drawing) heading(text string) {
	d.lines = append(d.lines, "")
	d.text(text, 0, Strong)
}

// funnel draws a bar for the devices of the class, one for each check that rejects some of
// them, and one for the rest.
func (d *drawing) funnel(r *api.RequestExplanation, constraints []string) {
	needs := "all devices"
	if r.Needs > 0 {
		needs = english.Count(int(r.Needs), "device")
	}
	title := fmt.Sprintf("Request %s: %s of %s", r.Name, needs, r.DeviceClass)
	if len(constraints) > 0 {
		title += ", " + strings.Join(constraints, ", ")
	}
	d.heading(title)
	all, rows := r.Considered, r.Rejected
	if len(rows) > 0 && rows[0].Code == api.ClassSelectorFalse {
		all, rows = all-rows[0].Count, rows[1:]
	}
	number := len(english.Thousands(all)) + 1
	bar := d.width / 4
	line := func(count, of int, sign string, tone Tone, text string) {
		cells := 0
		if all > 0 && of > 0 {
			cells = max(of*bar/all, 1)
		}
		drawn := d.look.Say(tone, strings.Repeat(d.look.Glyphs.Allocated, cells)) + strings.Repeat(" ", bar-cells)
		margin := number + 1 + bar + 1
		for i, part := range strings.Split(ansi.Wrap(render.Escape(text), max(d.width-margin, 10), ""), "\n") {
			if i == 0 {
				d.lines = append(d.lines, fmt.Sprintf("%*s %s %s", number, sign+english.Thousands(count), drawn, part))
				continue
			}
			d.lines = append(d.lines, strings.Repeat(" ", margin)+part)
		}
	}
	line(all, all, "", Busy, "devices of the class")
	for _, row := range merged(rows) {
		text := row.label
		if len(row.where) > 0 {
			text += " (" + strings.Join(row.where, ", ") + ")"
		}
		line(row.count, row.count, "-", Bad, text)
	}
	left := "available"
	if r.BestNode != "" {
		left = fmt.Sprintf("available, at most %s on one node (%s)", english.Thousands(r.MostOnOneNode), r.BestNode)
	}
	line(r.Eligible, r.Eligible, "", Good, left)
}

// rejected has the devices that one check rejects.
type rejected struct {
	label string
	count int
	where []string
}

// merged sums up what the same check rejects for several reasons: these are a long text, for
// the page of the pod.
func merged(rows []api.Rejection) []rejected {
	var bars []rejected
	for i := range rows {
		r := &rows[i]
		at := slices.IndexFunc(bars, func(b rejected) bool { return b.label == r.Label })
		if at < 0 {
			at = len(bars)
			bars = append(bars, rejected{label: r.Label})
		}
		bars[at].count += r.Count
		if r.Where != "" {
			bars[at].where = append(bars[at].where, r.Where)
		}
	}
	return bars
}

// step draws a numbered step with its commands.
func (d *drawing) step(number int, step *Step) {
	who := fmt.Sprintf("%d %-5s ", number, step.Who)
	lines := strings.Split(ansi.Wrap(render.Escape(step.Text), max(d.width-len(who), 10), ""), "\n")
	for n, line := range lines {
		if n > 0 {
			who = strings.Repeat(" ", len(who))
		}
		d.lines = append(d.lines, d.look.Say(Strong, who)+line)
	}
	for _, command := range step.Commands {
		for _, line := range Indented(render.Escape(command), 4, d.width) {
			d.lines = append(d.lines, d.look.Say(Faint, line))
		}
	}
}
