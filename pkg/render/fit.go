// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
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

// FitShapes draws a table of shapes of claims, with how many more of each fit, and the best
// moves of pods. With Wide, it says why none of a shape fits.
func FitShapes(w io.Writer, f *api.FitShapes, opts Options) error {
	p := NewPage(opts)
	if len(f.Shapes) == 0 {
		p.Text(0, Plain, "There are no device classes, and no claims")
		return p.Print(w)
	}
	p.Text(0, Strong, fmt.Sprintf("How many more claims fit on %s, each for a pod that needs nothing else", english.Count(f.NodeCount, "node")))
	p.Blank()
	writeShapes(p, f.Shapes)
	writeMoves(p, f.Shapes)
	if f.OtherClaims > 0 {
		p.Blank()
		p.Text(0, Faint, fmt.Sprintf("Not counted: %s of other shapes. Count more like one of them with: kubectl dra fit NAME", english.Plural(f.OtherClaims, "1 claim or template", english.Thousands(f.OtherClaims)+" claims and templates")))
	}
	p.Assumptions(f.Assumptions)
	return p.Print(w)
}

// shapeHeader names the columns of numbers.
func shapeHeader() []string { return []string{"NOW", "PACKED", "RELEASED", "LOST", "CLAIMS"} }

func writeShapes(p *Page, shapes []api.ShapeFit) {
	rows := [][]Cell{numberCells(Faint, shapeHeader()...)}
	for i := range shapes {
		m := Plain
		if shapes[i].Now.AtLeast > 0 {
			m = Good
		}
		rows = append(rows, numberCells(m, shapeNumbers(&shapes[i])...))
	}
	margin := alignNumbers(rows) + BarWidth + 2 + ColumnGap
	row := func(cells []Cell, load, what string) {
		cells = append(cells, Cell{Text: load, Width: BarWidth + 2, Mark: cells[0].Mark})
		if Widest(Unlimited, what) <= p.Table-margin {
			p.TableRow(2, append(cells, Cell{Text: what})...)
			return
		}
		p.TableRow(2, cells...)
		p.Text(6, Plain, what)
	}
	row(rows[0], "IN USE", "A CLAIM FOR")
	for i := range shapes {
		s := &shapes[i]
		if i == 0 || shapes[i-1].Shape.Class != s.Shape.Class {
			p.Text(0, Strong, s.Shape.Class)
		}
		row(rows[i+1], shapeLoad(s, p.Opts), ShapeText(&s.Shape))
		if s.Stop != nil && (p.Opts.Wide || s.Released.AtLeast == 0) {
			p.Text(6, Faint, english.Sentence(s.Stop.Message))
		}
	}
}

// shapeNumbers returns the numbers of a shape, in the order of shapeHeader.
func shapeNumbers(s *api.ShapeFit) []string {
	packed, lost := "-", "-"
	if s.Packed != nil {
		packed = shortCount(*s.Packed)
	}
	if s.LostPercent != nil {
		lost = strconv.Itoa(*s.LostPercent) + "%"
	}
	return []string{shortCount(s.Now), packed, shortCount(s.Released), lost, english.Thousands(s.Claims)}
}

// shortCount returns a count in a column: "4", or "4+" for at least 4.
func shortCount(c api.CopyCount) string {
	if c.AtMost != nil && *c.AtMost == c.AtLeast {
		return english.Thousands(c.AtLeast)
	}
	return english.Thousands(c.AtLeast) + "+"
}

// shapeLoad shows how much of the room for claims of a shape is taken.
func shapeLoad(s *api.ShapeFit, opts Options) string {
	if s.Released.AtLeast <= 0 || s.Now.AtMost == nil || s.Released.AtMost == nil {
		return ""
	}
	percent := (s.Released.AtLeast - s.Now.AtLeast) * 100 / s.Released.AtLeast
	if opts.NoBars {
		return strconv.Itoa(percent) + "%"
	}
	return Bar(percent)
}

// ShapeText describes the claims of a shape.
func ShapeText(s *api.ClaimShape) string {
	text := english.Count(s.Devices, "device")
	for _, name := range slices.Sorted(maps.Keys(s.Capacity)) {
		text += fmt.Sprintf(" with %s of %s", s.Capacity[name], name)
	}
	for _, name := range s.Match {
		text += " with the same " + name
	}
	for _, name := range s.Distinct {
		text += " with different " + name
	}
	if len(s.Tolerations) > 0 {
		text += " tolerating " + strings.Join(s.Tolerations, " and ")
	}
	if len(s.Selectors) > 0 {
		text += " where " + strings.Join(s.Selectors, " and ")
	}
	return text
}

// writeMoves lists the moves that make room for more.
func writeMoves(p *Page, shapes []api.ShapeFit) {
	first := true
	for i := range shapes {
		m := shapes[i].Move
		if m == nil {
			continue
		}
		if first {
			p.Heading("Moves (of one pod each, verified with the scheduler's allocator)")
			first = false
		}
		p.Items(fmt.Sprintf("pod %s on %s instead of %s: %s of class %s for %s", Qualified(m.Namespace, m.Pod), m.To, m.From,
			english.Count(m.More, "more claim"), shapes[i].Shape.Class, ShapeText(&shapes[i].Shape)))
	}
}
