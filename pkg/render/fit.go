// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Fit draws how many copies fit, and on which nodes. With Wide, all nodes are named.
func Fit(w io.Writer, f *api.Fit, opts Options) error {
	p := NewPage(opts)
	p.Text(0, fitMark(f.Verdict), strings.TrimSuffix(f.Summary, "."))
	p.Blank()
	p.Field("Now", copyText(f.Now)+usedText(f, opts))
	p.Field("Released", copyText(f.Released)+" once the claims are released and the pods that use them are gone")
	// The first line has a failure of the allocator, the summary has an error.
	if f.Next != nil && (f.Now.AtLeast > 0 || f.Verdict != api.Error && f.Verdict != api.Undetermined) {
		p.Field("Next copy", english.Sentence(f.Next.Message))
	}
	p.Field("Limits", limitText(f.Limits))
	if len(f.Bounds) > 0 {
		p.Field("Range", "It depends on which nodes the scheduler takes: "+strings.Join(f.Bounds, "; ")+".")
	}
	below := NewPage(opts)
	below.Assumptions(f.Assumptions)
	if len(f.Nodes) > 0 {
		p.Heading("Nodes")
		p.Buf.Write(copyNodesWithin(opts, f.Nodes, opts.Height-2-p.Lines()-below.Lines()).Buf.Bytes())
	}
	if below.Lines() > 0 {
		p.Blank()
		p.Buf.Write(below.Buf.Bytes())
	}
	return p.Print(w)
}

// copyNodesWithin draws groups of nodes: ShownGroups of them and, on a terminal with room for
// fewer lines, fewer.
func copyNodesWithin(opts Options, groups []api.CopyNodes, room int) *Page {
	const least = 2
	n := len(groups)
	if !opts.Wide && n > ShownGroups+1 {
		n = ShownGroups
	}
	for {
		p := NewPage(opts)
		writeCopyNodes(p, groups, n)
		if opts.Wide || opts.Height == 0 || n <= least || p.Lines() <= room {
			return p
		}
		n--
	}
}

// fitMark returns the mark of the answer.
func fitMark(v api.Verdict) Mark {
	switch v {
	case api.Fits:
		return Good
	case api.Error, api.DoesNotFit, api.Blocked:
		return Bad
	case api.Undetermined, api.Allocated:
		return Unsure
	default:
		return Unsure
	}
}

func copyText(c api.CopyCount) string {
	text := english.Between(c.AtLeast, c.AtMost)
	if c.AtMost != nil && *c.AtMost == 1 {
		return text + " copy"
	}
	return text + " copies"
}

// usedText says how much of the room for copies is taken, and how many nodes have the rest.
func usedText(f *api.Fit, opts Options) string {
	nodes := 0
	for i := range f.Nodes {
		if f.Nodes[i].Now > 0 {
			nodes += f.Nodes[i].Count
		}
	}
	text := fmt.Sprintf(" on %s of %s", english.Thousands(nodes), english.Count(f.NodeCount, "node"))
	if f.Released.AtLeast <= f.Now.AtLeast {
		return text
	}
	percent := (f.Released.AtLeast - f.Now.AtLeast) * 100 / f.Released.AtLeast
	if opts.NoBars {
		return text + fmt.Sprintf(", %d%% in use", percent)
	}
	return text + fmt.Sprintf("  %s %d%% in use", Bar(percent), percent)
}

// limitText lists the other limits of copies.
func limitText(limits []api.CopyLimit) string {
	texts := make([]string, 0, len(limits))
	for i := range limits {
		l := &limits[i]
		text := fmt.Sprintf("%s for %s", l.Resource, english.Thousands(l.Copies))
		if l.Quota != "" {
			text = fmt.Sprintf("ResourceQuota %s (%s) for %s", l.Quota, l.Resource, english.Thousands(l.Copies))
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// numberCells returns a line of numbers, or of their titles.
func numberCells(m Mark, texts ...string) []Cell {
	cells := make([]Cell, 0, len(texts)+2)
	for _, text := range texts {
		cells = append(cells, Cell{Text: text, Right: true, Mark: m})
	}
	return cells
}

// alignNumbers aligns lines of numbers that are indented by two, and returns where the next
// column begins.
func alignNumbers(rows [][]Cell) (margin int) {
	limits := make([]int, len(rows[0]))
	for i := range limits {
		limits[i] = Unlimited
	}
	Align(rows, limits...)
	margin = 2
	for _, cell := range rows[0] {
		margin += cell.Width + ColumnGap
	}
	return margin
}

// writeCopyNodes draws the first n groups of nodes: the copies on each, the number of nodes, and
// why they take no more.
func writeCopyNodes(p *Page, groups []api.CopyNodes, n int) {
	shown := groups[:n]
	rows := [][]Cell{numberCells(Faint, "NOW", "RELEASED", "NODES")}
	lines, messages := make([]api.NodeGroup, len(shown)), make([]string, len(shown))
	for i := range shown {
		g, m := &shown[i], Plain
		if g.Now > 0 {
			m = Good
		}
		rows = append(rows, numberCells(m, english.Thousands(g.Now), english.Thousands(g.Released), english.Thousands(g.Count)))
		messages[i] = cmp.Or(g.Message, string(g.Code))
		lines[i] = api.NodeGroup{Names: g.Names, Count: g.Count}
	}
	margin := alignNumbers(rows)
	names, message, beside := p.NameColumn(margin, lines, messages)
	heading := append(slices.Clip(rows[0]), Cell{Text: "WHY NO MORE", Mark: Faint})
	if beside {
		heading[3].Width = message
		heading = append(heading, Cell{Text: "NAMES", Mark: Faint})
	}
	p.TableRow(2, heading...)
	for i := range shown {
		if beside {
			p.TableRow(2, append(rows[i+1], Cell{Text: messages[i], Width: message}, Cell{Text: names[i], Whole: true, Mark: Faint})...)
			continue
		}
		p.TableRow(2, append(rows[i+1], Cell{Text: messages[i]})...)
		p.Text(margin+2, Faint, p.Some(shown[i].Names, shown[i].Count, p.Table-margin-2))
	}
	if rest := groups[len(shown):]; len(rest) > 0 {
		n := 0
		for i := range rest {
			n += rest[i].Count
		}
		p.Text(2, Faint, fmt.Sprintf("and %s with %s: -o wide lists them", english.Count(len(rest), "more group"), english.Count(n, "node")))
	}
}
