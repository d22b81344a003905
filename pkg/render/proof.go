// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// remedies draws what would make it fit: a sentence for each, at its right where
// it then fits, and below what changes.
func (p *page) remedies(e *api.Explanation) {
	if len(e.Remedies) == 0 {
		return
	}
	commands := p.opts.Wide || p.opts.Commands
	title := "Remedies (each verified with the scheduler's allocator)"
	if !commands && slices.ContainsFunc(e.Remedies, func(r api.Remedy) bool { return len(r.Commands) > 0 }) {
		title = "Remedies (each verified with the scheduler's allocator; --commands prints them for the shell)"
	}
	p.heading(title)
	number, who := len(strconv.Itoa(len(e.Remedies))), len("admin")
	margin := 2 + number + who + 2*columnGap
	changes, results := make([]string, len(e.Remedies)), make([]string, len(e.Remedies))
	for i := range e.Remedies {
		changes[i], results[i] = e.Remedies[i].Change, remedyResult(&e.Remedies[i])
	}
	width, beside := p.columns(margin, changes, results)
	for i := range e.Remedies {
		r := &e.Remedies[i]
		cells := []cell{
			{text: strconv.Itoa(i + 1), width: number, right: true},
			{text: actor(r.Actor), width: who, mark: strong},
			{text: changes[i], width: width},
		}
		if beside {
			cells = append(cells, cell{text: results[i], mark: faint})
		} else {
			cells[2] = cell{text: changes[i] + " (" + results[i] + ")"}
		}
		p.tableRow(2, cells...)
		p.remedyEdits(margin, r)
		if commands {
			p.verbatim(margin, strings.Join(r.Commands, "\n"))
		}
	}
	if e.MoreRemedies > 0 {
		p.text(margin, plain, fmt.Sprintf("and %d more: --all-remedies lists them", e.MoreRemedies))
	}
	for _, note := range remedyPods(e) {
		p.text(2+number+columnGap, plain, note)
	}
}

// conflict draws the conditions that keep the target from fitting on a node.
func (p *page) conflict(c *api.Conflict) {
	if c == nil || len(c.Facts) == 0 {
		return
	}
	p.heading(conflictTitle(c))
	for _, f := range c.Facts {
		p.items(f.Text)
	}
	if c.OtherNodeCount > 0 {
		p.text(2, plain, "Also on "+english.Count(c.OtherNodeCount, "other node"))
	}
}

func conflictTitle(c *api.Conflict) string {
	switch {
	case len(c.Facts) == 1 && c.AnyOneSuffices:
		return "Blocking condition on node " + c.Node
	case len(c.Facts) == 1:
		return fmt.Sprintf("Node %s is ruled out by this and by other conditions", c.Node)
	case len(c.Facts) == 2 && c.AnyOneSuffices:
		return fmt.Sprintf("Conflict on %s (relaxing either one is enough)", c.Node)
	case c.AnyOneSuffices:
		return fmt.Sprintf("Conflict on %s (relaxing any one is enough)", c.Node)
	default:
		return fmt.Sprintf("Conflict on %s (other conditions rule the node out too)", c.Node)
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

// remedyResult says where it fits after a remedy, and with which devices.
func remedyResult(r *api.Remedy) string {
	var names []string
	for i := range r.Devices {
		names = append(names, r.Devices[i].Device)
	}
	names = collapse(names)
	const most = 4
	said := r.Node
	if len(names) > most {
		said += ": " + english.Count(len(r.Devices), "device")
	} else if len(names) > 0 {
		said += ": " + strings.Join(names, ", ")
	}
	if r.Nodes > 1 {
		said = fmt.Sprintf("%d nodes, first %s", r.Nodes, said)
	}
	return said
}
