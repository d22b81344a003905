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
func (p *Page) remedies(e *api.Explanation) {
	if len(e.Remedies) == 0 {
		return
	}
	commands := p.Opts.Wide || p.Opts.Commands
	title := "Remedies (each verified with the scheduler's allocator)"
	if !commands && slices.ContainsFunc(e.Remedies, func(r api.Remedy) bool { return len(r.Commands) > 0 }) {
		title = "Remedies (each verified with the scheduler's allocator; --commands prints them for the shell)"
	}
	p.heading(title)
	number, who := len(strconv.Itoa(len(e.Remedies))), len("admin")
	margin := 2 + number + who + 2*ColumnGap
	changes, results := make([]string, len(e.Remedies)), make([]string, len(e.Remedies))
	for i := range e.Remedies {
		changes[i], results[i] = e.Remedies[i].Change, remedyResult(&e.Remedies[i])
	}
	width, beside := p.columns(margin, changes, results)
	for i := range e.Remedies {
		r := &e.Remedies[i]
		cells := []Cell{
			{Text: strconv.Itoa(i + 1), Width: number, Right: true},
			{Text: actor(r.Actor), Width: who, Mark: Strong},
			{Text: changes[i], Width: width},
		}
		if beside {
			cells = append(cells, Cell{Text: results[i], Mark: Faint})
		} else {
			cells[2] = Cell{Text: changes[i] + " (" + results[i] + ")"}
		}
		p.TableRow(2, cells...)
		p.remedyEdits(margin, r)
		if commands {
			p.verbatim(margin, strings.Join(r.Commands, "\n"))
		}
	}
	if e.MoreRemedies > 0 {
		p.Text(margin, Plain, fmt.Sprintf("and %d more: --all-remedies lists them", e.MoreRemedies))
	}
	for _, note := range remedyPods(e) {
		p.Text(2+number+ColumnGap, Plain, note)
	}
}

// conflict draws the conditions that keep the target from fitting on a node.
func (p *Page) conflict(c *api.Conflict) {
	if c == nil || len(c.Facts) == 0 {
		return
	}
	p.heading(conflictTitle(c))
	for _, f := range c.Facts {
		p.items(f.Text)
	}
	if c.OtherNodeCount > 0 {
		p.Text(2, Plain, "Also on "+english.Count(c.OtherNodeCount, "other node"))
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
func (p *Page) verbatim(indent int, lines string) {
	for line := range strings.Lines(lines) {
		p.pad(indent)
		p.paint(Plain, Escape(strings.TrimSuffix(line, "\n")))
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
