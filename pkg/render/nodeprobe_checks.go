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
	if c.Wanted != "" {
		evidence = append(evidence, "required "+c.Wanted)
	}
	if len(evidence) > 0 {
		text += " (" + strings.Join(evidence, ", ") + ")"
	}
	return text
}

// grid is a table. The first line has its headings; the last column takes what
// is left.
func (p *page) grid(indent int, lines [][]string) {
	if len(lines) < 2 {
		return
	}
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, text := range line {
			widths[i] = max(widths[i], widest(unlimited, orElse(text, "-")))
		}
	}
	for y, line := range lines {
		cells := make([]cell, len(line))
		for i, text := range line {
			cells[i] = cell{text: orElse(text, "-"), width: widths[i]}
			if y == 0 {
				cells[i].mark = faint
			}
		}
		p.row(indent, cells...)
	}
}

// onNode says where findings are from.
func onNode(name string) string {
	if name == "" {
		return "this node"
	}
	return "node " + name
}
