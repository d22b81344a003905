// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Page is the first page with its size and its selected row.
type Page struct {
	drawing
	height int
	// selected is the key of the row with the cursor; it stays there when rows come
	// and go. at is where that was.
	selected string
	at       int
	// moved is true once the user chose a row. Until then it is the first cause or the first
	// pod that waits or, if there is none, the first class.
	moved bool
	// cells are the nodes of the model.
	cells widget.HeatMap
	// drawn is the drawn page: it is asked for every second.
	drawn string
}

// New makes an empty page.
func New(l *widget.Look) *Page { return &Page{drawing: drawing{look: l}} }

// Resize sets the size, and how wide the pane on the right is; 0 is for none.
func (p *Page) Resize(width, height, pane int) {
	p.width, p.height, p.pane, p.drawn = width, height, pane, ""
}

// WantsNodes reports whether there is so much room that nodes are shown even if they are few.
func (p *Page) WantsNodes() bool { return p.width >= wide && p.height >= tall && !p.plain }

// HasMap reports whether the map of nodes is on the page.
func (p *Page) HasMap() bool {
	return len(p.model.Nodes) > 0 && slices.ContainsFunc(p.layout().left, func(g group) bool { return g.boxes[0].cells != nil })
}

// HasPane reports whether there is a pane on the right.
func (p *Page) HasPane() bool { return p.pane > 0 }

// Set shows a model.
func (p *Page) Set(m Model) {
	p.model, p.drawn = m, ""
	p.cells.Set(m.Nodes)
	p.settle()
}

// settle finds the selected row again, or the row that took its place.
func (p *Page) settle() {
	keys := p.keys()
	if at := slices.Index(keys, p.selected); p.moved && at >= 0 {
		p.at = at
		return
	}
	if !p.moved {
		p.at = max(slices.IndexFunc(keys, func(key string) bool { return strings.HasPrefix(key, "causes ") || strings.HasPrefix(key, "stuck ") }), 0)
	}
	p.at = min(p.at, len(keys)-1)
	if p.selected = ""; p.at >= 0 {
		p.selected = keys[p.at]
	}
}

// keys returns the keys of all shown rows, in the order of the cursor.
func (p *Page) keys() []string {
	var keys []string
	for _, b := range p.layout().boxes() {
		keys = append(keys, b.keys()...)
	}
	return keys
}

// Move moves the cursor by so many rows.
func (p *Page) Move(by int) {
	keys := p.keys()
	if len(keys) == 0 {
		return
	}
	p.moved, p.drawn = true, ""
	if p.selected == nodesKey {
		if by = p.cells.Down(by); by == 0 {
			return
		}
	}
	// Other rows may be shown since the cursor got there.
	if at := slices.Index(keys, p.selected); at >= 0 {
		p.at = at
	}
	p.at = min(max(p.at+by, 0), len(keys)-1)
	p.selected = keys[p.at]
}

// Right moves the cursor by so many cells, if it is on the map of nodes.
func (p *Page) Right(by int) {
	if p.selected == nodesKey {
		p.moved, p.drawn = true, ""
		p.cells.Right(by)
	}
}

// Len returns how many rows there are.
func (p *Page) Len() int { return len(p.keys()) }

// Selected returns what the selected row opens, nil for nothing.
func (p *Page) Selected() any {
	for _, b := range p.layout().boxes() {
		if at := slices.Index(b.keys(), p.selected); at >= 0 && p.selected != "" {
			return b.opens(at)
		}
	}
	return nil
}

// Item returns what the selected row is about, nil if that is nothing by itself.
func (p *Page) Item() any {
	b, at := p.layout().selected(p.selected)
	if at < 0 || b.item == nil {
		return nil
	}
	return b.item(at)
}

// Section returns the item that opens all rows of the section with the cursor; nil for none.
func (p *Page) Section() any {
	for _, b := range p.layout().boxes() {
		if slices.Contains(b.keys(), p.selected) {
			return b.all
		}
	}
	return nil
}

// Click selects the row, or the node, at a place. It reports whether that was selected already.
func (p *Page) Click(x, y int) (again bool) {
	b, column, row := p.layout().at(x, y)
	if b == nil || row < 0 {
		return false
	}
	key, again := "", true
	if keys := b.keys(); b.cells != nil {
		var found bool
		if again, found = b.cells.Click(column, row); found {
			key = keys[0]
		}
	} else if row < len(keys) {
		key = keys[row]
	}
	if key == "" {
		return false
	}
	again = again && key == p.selected
	p.selected, p.moved, p.drawn = key, true, ""
	p.at = slices.Index(p.keys(), key)
	return again
}

// View draws as many lines as the page is high.
func (p *Page) View() string {
	if p.drawn == "" {
		p.drawn = p.drawPage()
	}
	return p.drawn
}

func (p *Page) drawPage() string {
	l := p.layout()
	lines := slices.Clone(l.verdict)
	left := p.column(l.left, l.leftWidth)
	right := p.column(l.right, l.rightWidth)
	for i := range max(len(left), len(right)) {
		line := ""
		if i < len(left) {
			line = left[i]
		}
		if i < len(right) {
			line = widget.Padded(line, l.leftWidth) + p.look.Say(widget.Faint, p.look.Glyphs.Between) + right[i]
		}
		lines = append(lines, line)
	}
	if p.plain {
		return strings.Join(lines, "\n")
	}
	lines = lines[:max(min(len(lines), p.height-l.remark), 0)]
	var remark []string
	if l.remark > 0 {
		remark = p.remark(l, p.height-len(lines))
	}
	for len(lines) < p.height-len(remark) {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, remark...), "\n")
}

// column draws groups of boxes under each other.
func (p *Page) column(groups []group, width int) []string {
	var lines []string
	between := p.look.Say(widget.Faint, p.look.Glyphs.Between)
	for _, g := range groups {
		var drawn []string
		for i := range g.boxes {
			b := &g.boxes[i]
			box := p.draw(b)
			if i == 0 {
				drawn = box
				continue
			}
			for j := range box {
				drawn[j] = widget.Padded(drawn[j], width-b.width-separator) + between + box[j]
			}
		}
		lines = append(lines, drawn...)
	}
	return lines
}

// draw draws a box with as many rows as are shown.
func (p *Page) draw(b *box) []string {
	head := ""
	var rows []string
	if b.count > 0 {
		head, rows = b.rows(b.width)
	}
	keys := append(b.keys(), make([]string, b.shown+1)...)
	if b.cells != nil {
		// The cell is marked, not its row.
		clear(keys)
	}
	remarks := b.remarks
	if b.cells != nil {
		remarks = append(p.model.NodeLegend(p.cells.Narrow()), p.model.Room...)
	}
	lines := make([]string, 0, b.height+1)
	lines = append(lines, p.look.Heading(b.width, b.title, remarks, p.look.Say(widget.Faint, head)))
	if p.plain {
		return append(lines[:0], p.printed(b, rows)...)
	}
	for i := range b.shown {
		lines = append(lines, p.row(rows[i], keys[i], b.width))
		for j, line := range b.under[i] {
			switch {
			case j == 0:
			case keys[i] == p.selected:
				lines = append(lines, p.look.Select(widget.Padded(line, b.width)))
			default:
				lines = append(lines, line)
			}
		}
	}
	if hidden := b.count - b.shown; hidden > 0 && b.hasRest() {
		text := english.Thousands(hidden) + " more"
		if b.rest != nil {
			text = b.rest(b.shown)
		}
		lines = append(lines, p.row("  "+p.look.Say(widget.Faint, p.look.Glyphs.More+text), keys[b.shown], b.width))
	}
	if b.count == 0 {
		lines = append(lines, p.none(b)...)
		lines = lines[:min(len(lines), max(b.height, 1)+1)]
	}
	for len(lines) <= b.height {
		lines = append(lines, "")
	}
	return lines
}

// none returns what a box says that has no rows.
func (p *Page) none(b *box) []string {
	var lines []string
	for _, line := range strings.Split(ansi.Wrap(render.Escape(b.none), max(b.width-1, 1), ""), "\n") {
		lines = append(lines, " "+p.look.Say(widget.Faint, line))
	}
	return lines
}

// printed returns a box with all of its rows.
func (p *Page) printed(b *box, rows []string) []string {
	if b.count == 0 {
		rows = p.none(b)
	}
	lines := []string{p.look.Header.Render(b.title)}
	for _, row := range rows {
		lines = append(lines, strings.TrimRight(row, " "))
	}
	return lines
}

// row returns a line, marked if it is the selected one. It keeps its colors then.
func (p *Page) row(text, key string, width int) string {
	if key == "" || key != p.selected {
		return ansi.Truncate(text, width, p.look.Glyphs.More)
	}
	text = p.look.Glyphs.Cursor + strings.TrimPrefix(text, " ")
	return p.look.Select(widget.Padded(ansi.Truncate(text, width, p.look.Glyphs.More), width))
}
