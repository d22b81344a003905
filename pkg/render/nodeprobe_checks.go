// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// nodeSign is how the outcome of a check looks.
func nodeSign(state node.State) cell {
	switch state {
	case node.OK:
		return cell{text: "✓", width: 1, mark: good}
	case node.Problem:
		return cell{text: "✗", width: 1, mark: bad}
	case node.Unknown:
		return cell{text: "?", width: 1, mark: unsure}
	default:
		return cell{text: "?", width: 1, mark: unsure}
	}
}

// nodeChecks lists checks: what is wrong first, then what is not known.
func (p *page) nodeChecks(checks []node.Check) {
	p.blank()
	for _, state := range []node.State{node.Problem, node.Unknown, node.OK} {
		for i := range checks {
			if checks[i].State == state {
				p.row(0, nodeSign(state), cell{text: nodeCheckText(&checks[i])})
			}
		}
	}
}

// nodeCheckText is a check in one line, with its evidence.
func nodeCheckText(c *node.Check) string {
	text := c.Message
	if c.Path != "" && !strings.Contains(c.Message, c.Path) {
		text = c.Path + ": " + text
	}
	var evidence []string
	if c.Found != "" {
		evidence = append(evidence, "found "+c.Found)
	}
	if c.Required != "" {
		evidence = append(evidence, "required "+c.Required)
	}
	if len(evidence) > 0 {
		text += " (" + strings.Join(evidence, ", ") + ")"
	}
	return text
}

// grid is a table. The first line has its headings; the last column takes what
// is left. Where that is too narrow, as for names with the UIDs of claims, each line
// becomes a record: its first cell, and below it what the others have.
func (p *page) grid(indent int, lines [][]string) { p.gridOf(indent, 0, lines) }

// gridOf is a grid whose records are headed by another column.
func (p *page) gridOf(indent, head int, lines [][]string) {
	if len(lines) < 2 {
		return
	}
	widths := make([]int, len(lines[0]))
	last := len(widths) - 1
	word := 0
	for y, line := range lines {
		for i, text := range line {
			widths[i] = max(widths[i], widest(unlimited, orElse(text, "-")))
		}
		if y > 0 {
			word = max(word, widest(unlimited, strings.Fields(Escape(line[last]))...))
		}
	}
	if need := indent + sum(widths[:last]) + last*columnGap + word; need > p.table {
		p.records(indent, head, lines)
		return
	}
	for y, line := range lines {
		cells := make([]cell, len(line))
		for i, text := range line {
			cells[i] = cell{text: orElse(text, "-"), width: widths[i]}
			if y == 0 {
				cells[i].mark = faint
			}
		}
		p.tableRow(indent, cells...)
	}
}

// records lists the lines of a table one below the other, without what is empty.
// Those that have the same head share it.
func (p *page) records(indent, head int, lines [][]string) {
	headings := lines[0]
	label := widest(unlimited, headings...)
	for y, line := range lines[1:] {
		if y == 0 || head == 0 || lines[y][head] != line[head] {
			p.text(indent, plain, orElse(line[head], "-"))
		}
		for i := range line {
			if i != head && line[i] != "" {
				p.row(indent+2, cell{text: headings[i], width: label, mark: faint}, cell{text: line[i]})
			}
		}
	}
}

func sum(numbers []int) int {
	all := 0
	for _, n := range numbers {
		all += n
	}
	return all
}

// onNode says where findings are from.
func onNode(name string) string {
	if name == "" {
		return "this node"
	}
	return "node " + name
}
