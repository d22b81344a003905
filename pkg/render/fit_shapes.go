// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

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
