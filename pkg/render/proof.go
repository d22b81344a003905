// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// proof draws why nothing fits, and what would make it fit.
func (p *page) proof(e *explain.Explanation) {
	p.conflict(e.Conflict)
	if len(e.Remedies) == 0 {
		return
	}
	p.blank()
	p.text(0, strong, "What would make it fit (each one checked with the scheduler's allocator)")
	width := len("admin")
	for i := range e.Remedies {
		r := &e.Remedies[i]
		p.row(2, cell{text: actor(r.Actor), width: width, mark: strong}, cell{text: r.Change + " (" + where(r) + ")"})
		p.verbatim(2+width+columnGap, strings.Join(r.Commands, "\n"))
		p.verbatim(2+width+columnGap, r.Diff)
	}
	if e.MoreRemedies > 0 {
		p.row(2, cell{width: width}, cell{text: fmt.Sprintf("… and %d more with --all-remedies", e.MoreRemedies)})
	}
}

func (p *page) conflict(c *explain.Conflict) {
	if c == nil || len(c.Facts) == 0 {
		return
	}
	p.blank()
	title := "These cannot hold together on " + c.Node
	switch {
	case len(c.Facts) == 1 && c.AnyOne:
		title = "One fact stands in the way on " + c.Node
	case len(c.Facts) == 1:
		title = fmt.Sprintf("This alone rules out %s, and it is not all that stands in the way", c.Node)
	case c.AnyOne:
		title += "; without any one of them it would fit"
	default:
		title += ", and they are not all that stands in the way"
	}
	p.text(0, strong, title)
	for _, f := range c.Facts {
		p.row(2, cell{text: "-", width: 1}, cell{text: f.Text})
	}
	if c.SameOn > 0 {
		subject := "Together they rule out"
		if len(c.Facts) == 1 {
			subject = "It rules out"
		}
		p.text(2, plain, fmt.Sprintf("%s %s, too.", subject, count(c.SameOn, "other node")))
	}
}

// verbatim adds lines to be copied: they are not wrapped.
func (p *page) verbatim(indent int, lines string) {
	for line := range strings.Lines(lines) {
		p.pad(indent)
		p.paint(plain, Escape(strings.TrimSuffix(line, "\n")))
		p.end()
	}
}

// where says what a remedy leads to.
func where(r *explain.Remedy) string {
	devices := make([]string, 0, len(r.Devices))
	for i := range r.Devices {
		devices = append(devices, r.Devices[i].Device)
	}
	const most = 4
	if len(devices) > most {
		devices = append(devices[:most], fmt.Sprintf("… %d in all", len(r.Devices)))
	}
	place := r.Node
	if len(devices) > 0 {
		place += ": " + strings.Join(devices, ", ")
	}
	if r.Nodes > 1 {
		place = fmt.Sprintf("on %d nodes, like %s", r.Nodes, place)
	}
	return place
}
