// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/explanation"
)

const (
	// mostChecks is how many checks a funnel shows; those that reject fewest devices are one.
	mostChecks = 8
	// mostFixes is how many fixes the drawing of an answer shows.
	mostFixes = 5
	// countEdge is the right edge of numbers, barLeft and barWidth are the place of bars, and
	// sayLeft is where the text beside them begins.
	countEdge, barLeft, barWidth, sayLeft = 52.0, 64.0, 200.0, 280.0
)

// Funnel draws the way from the devices of a class to the available ones. The bar of each check
// stands where the devices that are left end. On a phone, its text is below it.
func Funnel(r *api.RequestExplanation) *Drawing {
	f := explanation.FunnelOf(r, mostChecks)
	return drawn(strconv.Itoa(f.Total)+" "+f.Title, func(d *Drawing) { d.funnel(f) })
}

func (d *Drawing) funnel(f *explanation.Funnel) {
	d.heading(d.title)
	left := f.Total
	for i := range f.Bars {
		b := &f.Bars[i]
		scale := barWidth / float64(max(f.Total, 1))
		text := b.Label
		if b.Text != "" {
			text += ": " + b.Text
		}
		d.text(countEdge, d.height, class(b.Mark), "end", strconv.Itoa(b.Count))
		d.rect(barLeft, d.height+2, float64(left)*scale, line-6, "track")
		if i == len(f.Bars)-1 {
			d.rect(barLeft, d.height+2, shown(b.Count, scale), line-6, class(b.Mark)+" fill")
		} else {
			part := shown(b.Count, scale)
			d.rect(barLeft+max(float64(left)*scale-part, 0), d.height+2, part, line-6, class(b.Mark)+" fill")
			left -= b.Count
		}
		x := sayLeft
		if d.width < width {
			x = barLeft
			if left > 0 {
				d.height += line - 2
			}
		}
		d.height += float64(d.paragraph(x, d.height, "plain", text)) * line
		if d.width < width {
			d.height += 4
		}
		d.say("%d %s", b.Count, text)
	}
}

// shown returns the width of a part of a bar; what there is can be seen.
func shown(count int, scale float64) float64 {
	if count == 0 {
		return 0
	}
	return max(float64(count)*scale, 2)
}

// Explanation draws an answer: the verdict and the reason, the funnels, and what makes it fit.
func Explanation(e *api.Explanation) *Drawing {
	said, mark := explanation.Title(e)
	head := newDrawing(said)
	head.height += float64(head.paragraph(0, 0, class(mark)+" strong", said)) * line
	head.height += float64(head.paragraph(0, head.height+4, "plain", e.Summary))*line + 4
	head.say("%s", e.Summary)
	all := []*Drawing{head}
	for i := range e.Claims {
		for j := range e.Claims[i].Requests {
			all = append(all, Funnel(&e.Claims[i].Requests[j]))
		}
	}
	return Stack(said, append(all, fixes(e))...)
}

// Explanations draws several answers.
func Explanations(list []*api.Explanation) *Drawing {
	var all []*Drawing
	for _, e := range list {
		all = append(all, Explanation(e))
	}
	if len(all) == 1 {
		return all[0]
	}
	return Stack("Answers", all...)
}

// fixes draws what makes a target fit: who can do it, and what.
func fixes(e *api.Explanation) *Drawing {
	list := explanation.FixesOf(e)
	if len(list) == 0 {
		return nil
	}
	d := newDrawing("What helps")
	d.heading(d.title)
	for i := range list[:min(len(list), mostFixes)] {
		f := &list[i]
		text := f.Text
		if who := f.Who + " "; !strings.HasPrefix(text, who) {
			d.text(0, d.height, "strong", "", cut(f.Who, barLeft))
		}
		if f.Where != "" {
			text += " (" + f.Where + ")"
		}
		d.height += float64(d.paragraph(barLeft, d.height, "plain", text)) * line
		d.say("%s: %s", f.Who, text)
	}
	return d
}

// History draws how an answer changed: a bar of time, colored by the verdict, and below it the
// events with their times in UTC.
func History(h *api.History) *Drawing {
	said, mark, events := render.HistoryLines(h, time.UTC)
	return drawn(said, func(d *Drawing) { d.history(h, said, mark, events) })
}

func (d *Drawing) history(h *api.History, said string, mark render.Mark, events []render.HistoryLine) {
	d.height += float64(d.paragraph(0, 0, class(mark)+" strong", said))*line + 4
	span := max(h.To.Sub(h.From.Time), time.Second)
	at := func(t metav1.Time) float64 {
		return min(max(float64(t.Sub(h.From.Time))/float64(span), 0), 1) * d.width
	}
	d.rect(0, d.height, d.width, line-4, "track")
	for i := range h.Entries {
		answer := h.Entries[i].Answer
		if answer == nil {
			continue
		}
		from, to := at(h.Entries[i].Time), d.width
		for j := i + 1; j < len(h.Entries); j++ {
			if next := &h.Entries[j]; next.Answer != nil || next.Event == api.HistoryDeleted {
				to = at(next.Time)
				break
			}
		}
		d.rect(from, d.height, to-from, line-4, class(render.VerdictMark(answer.Verdict))+" fill")
	}
	d.height += line
	d.text(0, d.height, "faint", "", h.From.UTC().Format("2006-01-02 15:04"))
	d.text(d.width, d.height, "faint", "end", h.To.UTC().Format("2006-01-02 15:04 MST"))
	d.height += line + 4
	for _, e := range events {
		d.text(0, d.height, "faint", "", e.Time)
		x := 120.0
		if d.width < width {
			x = 20
			d.height += line
		}
		d.height += float64(d.paragraph(x, d.height, "plain", e.Text)) * line
		d.say("%s %s", e.Time, e.Text)
	}
}
