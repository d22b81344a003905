// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

const (
	// sectionWidth is the width of the longest name of a section.
	sectionWidth = len("plugins")
	markWidth    = 1
	// shownOfKind is how many OK checks of one kind are shown.
	shownOfKind = 3
)

// page is the text that a verb prints about a node.
type page struct{ *render.Page }

func newPage(opts render.Options) *page { return &page{render.NewPage(opts)} }

// blankBetween separates consecutive parts.
func (p *page) blankBetween(i int) {
	if i > 0 {
		p.Blank()
	}
}

// write writes the page.
func (p *page) write(w io.Writer) error {
	if _, err := w.Write(p.Buf.Bytes()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// nodeSign returns the sign for the state of a check.
func nodeSign(state node.State) render.Cell {
	switch state {
	case node.OK:
		return render.Cell{Text: "✓", Width: 1, Mark: render.Good}
	case node.Problem:
		return render.Cell{Text: "✗", Width: 1, Mark: render.Bad}
	case node.Unknown:
		return render.Cell{Text: "?", Width: 1, Mark: render.Unsure}
	default:
		return render.Cell{Text: "?", Width: 1, Mark: render.Unsure}
	}
}

// nodeChecks lists checks: problems first, then the unknown.
func (p *page) nodeChecks(checks []node.Check) {
	p.Blank()
	for _, state := range []node.State{node.Problem, node.Unknown, node.OK} {
		for i := range checks {
			if checks[i].State == state {
				p.Row(0, nodeSign(state), render.Cell{Text: nodeCheckText(&checks[i])})
			}
		}
	}
}

// nodeCheckText returns a check in one line, with its evidence.
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

// grid draws a table. The first line has its headings; the last column gets the remaining
// width. Where that is too narrow, as for names with the UIDs of claims, each line becomes
// a record: its first cell, and the others below it.
func (p *page) grid(indent int, lines [][]string) { p.gridOf(indent, 0, lines) }

// gridOf draws a grid whose records are headed by another column.
func (p *page) gridOf(indent, head int, lines [][]string) {
	if len(lines) < 2 {
		return
	}
	widths := make([]int, len(lines[0]))
	last := len(widths) - 1
	word := 0
	for y, line := range lines {
		for i, text := range line {
			widths[i] = max(widths[i], render.Widest(render.Unlimited, cmp.Or(text, "-")))
		}
		if y > 0 {
			word = max(word, render.Widest(render.Unlimited, strings.Fields(render.Escape(line[last]))...))
		}
	}
	if need := indent + sum(widths[:last]) + last*render.ColumnGap + word; need > p.Table {
		p.records(indent, head, lines)
		return
	}
	for y, line := range lines {
		cells := make([]render.Cell, len(line))
		for i, text := range line {
			cells[i] = render.Cell{Text: cmp.Or(text, "-"), Width: widths[i]}
			if y == 0 {
				cells[i].Mark = render.Faint
			}
		}
		cells[last].Width = 0
		p.TableRow(indent, cells...)
	}
}

// records lists the lines of a table as records, without empty cells. Records with the same
// head share it.
func (p *page) records(indent, head int, lines [][]string) {
	headings := lines[0]
	label := render.Widest(render.Unlimited, headings...)
	for y, line := range lines[1:] {
		if y == 0 || head == 0 || lines[y][head] != line[head] {
			p.Text(indent, render.Plain, cmp.Or(line[head], "-"))
		}
		for i := range line {
			if i != head && line[i] != "" {
				p.Row(indent+2, render.Cell{Text: headings[i], Width: label, Mark: render.Faint}, render.Cell{Text: line[i]})
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

// onNode names the node of findings.
func onNode(name string) string {
	if name == "" {
		return "this node"
	}
	return "node " + name
}

// checkCounts counts checks in words.
func checkCounts(checks []node.Check) string {
	counts := map[node.State]int{}
	for i := range checks {
		counts[checks[i].State]++
	}
	var parts []string
	if n := counts[node.Problem]; n > 0 {
		parts = append(parts, english.Count(n, "problem"))
	}
	if n := counts[node.Unknown]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d unknown", n))
	}
	if n := counts[node.OK]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d OK", n))
	}
	return strings.Join(parts, ", ")
}
