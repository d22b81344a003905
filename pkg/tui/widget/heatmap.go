// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// HeatCell is one thing.
type HeatCell struct {
	// Key tells cells apart.
	Key string
	// Glyph fills the cell, in a tone.
	Glyph string
	Tone  Tone
	// Mark stands at the end of a cell that has room for it, Alone in place of all where there is
	// room for one sign; both may be empty.
	Mark, Alone string
	MarkTone    Tone
}

// draw draws a cell as wide as it is.
func (c *HeatCell) draw(l *Look, width int) string {
	switch {
	case width < 1:
		return ""
	case width == 1 && c.Alone != "":
		return l.Say(c.MarkTone, c.Alone)
	case width == 1 || c.Mark == "":
		return l.Say(c.Tone, strings.Repeat(c.Glyph, width))
	default:
		return l.Say(c.Tone, strings.Repeat(c.Glyph, width-1)) + l.Say(c.MarkTone, c.Mark)
	}
}

// plain reports whether a cell has nothing but its filling.
func (c *HeatCell) plain() bool { return c.Mark == "" && c.Alone == "" }

// HeatGroup is a set of cells that stand together.
type HeatGroup struct {
	Name  string
	Cells []HeatCell
	// Note stands behind the cells.
	Note string
}

// HeatMap is a map with a cursor. Its cells are as wide as there is room for, and short groups
// stand beside each other.
type HeatMap struct {
	groups        []HeatGroup
	width, height int
	shape         heatShape
	// key is the cell with the cursor, group and at are its place.
	key       string
	group, at int
	// first is the uppermost line that is shown.
	first int
}

// heatShape says where cells stand.
type heatShape struct {
	// names and notes are the widths of the names and the notes of groups, 0 without any.
	names, notes int
	// cell is the width of a cell, gap the room after it, columns how many cells are on a line of a group.
	cell, gap, columns int
	// beside is how many groups are on a line, lines how many lines there are.
	beside, lines int
}

// MaxCell is the width of the widest cells.
const MaxCell = 4

const (
	// maxName is the room for the name of a group, maxNote the room for its note.
	maxName, maxNote = 16, 26
	margin           = 2
	// besideGap is the room between groups beside each other.
	besideGap = 4
)

// step returns the width of a cell and the room after it.
func (s *heatShape) step() int { return s.cell + s.gap }

// block returns the width of a group.
func (s *heatShape) block() int {
	return s.columns*s.step() - s.gap + s.before() + s.after()
}

// before and after return the widths of the name and the note with the gaps beside them.
func (s *heatShape) before() int { return withMargin(s.names) }
func (s *heatShape) after() int  { return withMargin(s.notes) }

func withMargin(width int) int {
	if width == 0 {
		return 0
	}
	return width + margin
}

// SetSize sets how much of a screen there is.
func (m *HeatMap) SetSize(width, height int) {
	if height = max(height, 1); m.width == width && m.height == height {
		return
	}
	m.width, m.height = width, height
	m.arrange()
}

// Set shows other cells. The cursor stays on its cell if that is still there.
func (m *HeatMap) Set(groups []HeatGroup) {
	m.groups = slices.DeleteFunc(groups, func(g HeatGroup) bool { return len(g.Cells) == 0 })
	m.arrange()
	m.Choose(m.key)
}

// arrange makes the cells as wide as they can be if all are to be seen or, where there is too little
// room for that, if no fewer are seen.
func (m *HeatMap) arrange() {
	most := max(m.height, m.fit(m.width, 1, 0).lines)
	for _, size := range []struct{ cell, gap int }{{MaxCell, 1}, {3, 1}, {2, 1}, {2, 0}, {1, 0}} {
		if m.shape = m.fit(m.width, size.cell, size.gap); m.shape.lines > most {
			continue
		}
		if len(m.groups) <= m.height && m.shape.beside > 1 {
			// There is a line for each group.
			m.shape.beside, m.shape.lines = 1, len(m.groups)
		}
		return
	}
}

// LinesOf returns how many lines all cells take in a width, if each of them has a width.
func (m *HeatMap) LinesOf(width, cell int) int { return m.fit(width, cell, min(cell-1, 1)).lines }

// fit puts cells of a width into lines, with a gap between them.
func (m *HeatMap) fit(width, cell, gap int) heatShape {
	s := heatShape{cell: cell, gap: gap, columns: 1}
	for i := range m.groups {
		g := &m.groups[i]
		s.names = max(s.names, ansi.StringWidth(render.Escape(g.Name)))
		s.notes = max(s.notes, ansi.StringWidth(g.Note))
		s.columns = max(s.columns, len(g.Cells))
	}
	s.names, s.notes = min(s.names, maxName), min(s.notes, maxNote)
	room := width - margin
	if s.block() <= room {
		s.beside = min((room+besideGap)/(s.block()+besideGap), max(len(m.groups), 1))
		s.lines = (len(m.groups) + s.beside - 1) / s.beside
		return s
	}
	s.beside, s.columns = 1, max((room+s.gap-s.before()-s.after())/s.step(), 1)
	for i := range m.groups {
		s.lines += s.linesOf(&m.groups[i])
	}
	return s
}

// linesOf returns how many lines a group takes.
func (s *heatShape) linesOf(g *HeatGroup) int { return (len(g.Cells) + s.columns - 1) / s.columns }

// Choose puts the cursor on a cell; if it is not there, on the nearest place.
func (m *HeatMap) Choose(key string) {
	for i := range m.groups {
		if at := slices.IndexFunc(m.groups[i].Cells, func(c HeatCell) bool { return c.Key == key }); at >= 0 {
			m.put(i, at)
			return
		}
	}
	m.put(m.group, m.at)
}

// put puts the cursor on a place or, if there is no cell, near it.
func (m *HeatMap) put(group, at int) {
	m.group, m.at, m.key = max(min(group, len(m.groups)-1), 0), 0, ""
	if len(m.groups) > 0 {
		cells := m.groups[m.group].Cells
		m.at = min(max(at, 0), len(cells)-1)
		m.key = cells[m.at].Key
	}
}

// Selected returns the key of the cell with the cursor; empty if there are no cells.
func (m *HeatMap) Selected() string { return m.key }

// Count returns how many cells there are.
func (m *HeatMap) Count() int {
	count := 0
	for i := range m.groups {
		count += len(m.groups[i].Cells)
	}
	return count
}

// Right moves the cursor by so many cells, also into the next group.
func (m *HeatMap) Right(by int) {
	if len(m.groups) == 0 {
		return
	}
	group, at := m.group, m.at+by
	for at < 0 && group > 0 {
		group--
		at += len(m.groups[group].Cells)
	}
	for at >= len(m.groups[group].Cells) && group < len(m.groups)-1 {
		at -= len(m.groups[group].Cells)
		group++
	}
	m.put(group, at)
}

// Down moves the cursor by so many lines, in the same column as far as there is one. It returns
// by how many lines it could not move.
func (m *HeatMap) Down(by int) (left int) {
	for by > 0 && m.downOne() {
		by--
	}
	for by < 0 && m.upOne() {
		by++
	}
	return by
}

func (m *HeatMap) downOne() bool {
	if len(m.groups) == 0 {
		return false
	}
	columns, last := m.shape.columns, len(m.groups[m.group].Cells)-1
	switch next := m.group + m.shape.beside; {
	case m.at/columns < last/columns:
		m.put(m.group, min(m.at+columns, last))
	case next < len(m.groups):
		m.put(next, m.at%columns)
	case m.group/m.shape.beside < (len(m.groups)-1)/m.shape.beside:
		m.put(len(m.groups)-1, m.at)
	default:
		return false
	}
	return true
}

func (m *HeatMap) upOne() bool {
	columns := m.shape.columns
	switch above := m.group - m.shape.beside; {
	case len(m.groups) == 0:
		return false
	case m.at >= columns:
		m.put(m.group, m.at-columns)
	case above >= 0:
		last := len(m.groups[above].Cells) - 1
		m.put(above, last/columns*columns+m.at)
	default:
		return false
	}
	return true
}

// place returns the groups on a line, the first of them and the one after the last, and the first
// cell that is on it.
func (m *HeatMap) place(line int) (from, to, cell int) {
	if m.shape.beside > 1 {
		from = line * m.shape.beside
		return from, min(from+m.shape.beside, len(m.groups)), 0
	}
	for i := range m.groups {
		if lines := m.shape.linesOf(&m.groups[i]); line >= lines {
			line -= lines
			continue
		}
		return i, i + 1, line * m.shape.columns
	}
	return 0, 0, 0
}

// Click puts the cursor on the cell at a place; it reports whether it was there already, and
// whether there is one.
func (m *HeatMap) Click(x, y int) (again, found bool) {
	from, to, cell := m.place(m.first + y)
	x--
	block := m.shape.block() + besideGap
	group := from + x/block
	if x < 0 || group >= to {
		return false, false
	}
	at := x%block - m.shape.before()
	if cell += at / m.shape.step(); at < 0 || at/m.shape.step() >= m.shape.columns || cell >= len(m.groups[group].Cells) {
		return false, false
	}
	key := m.key
	m.put(group, cell)
	return m.key == key, true
}

// View draws as many lines as the map is high. The cursor is drawn if it is on the map.
func (m *HeatMap) View(l *Look, cursor bool) []string {
	at := m.follow()
	lines := make([]string, 0, m.height)
	for line := m.first; line < m.shape.lines && len(lines) < m.height; line++ {
		from, to, cell := m.place(line)
		var text strings.Builder
		if cursor && line == at {
			text.WriteString(l.Glyphs.Cursor)
		} else {
			text.WriteString(" ")
		}
		for group := from; group < to; group++ {
			drawn := m.draw(l, group, cell, cursor)
			if group+1 < to {
				drawn = Padded(drawn, m.shape.block()+besideGap)
			}
			text.WriteString(drawn)
		}
		lines = append(lines, text.String())
	}
	for len(lines) < m.height {
		lines = append(lines, "")
	}
	return lines
}

// follow keeps the line of the cursor in sight, and returns it.
func (m *HeatMap) follow() (at int) {
	if at = m.group / m.shape.beside; m.shape.beside == 1 {
		at = m.at / m.shape.columns
		for i := range m.group {
			at += m.shape.linesOf(&m.groups[i])
		}
	}
	m.first = min(m.first, at)
	m.first = max(m.first, at-m.height+1)
	m.first = max(min(m.first, m.shape.lines-m.height), 0)
	return at
}

// draw draws the cells of a group that are on one line, from one on. The name and the note
// stand on its first line.
func (m *HeatMap) draw(l *Look, group, from int, cursor bool) string {
	g, s := &m.groups[group], &m.shape
	cursor = cursor && group == m.group
	var text strings.Builder
	if s.names > 0 {
		name := ""
		if from == 0 {
			name = ansi.Truncate(render.Escape(g.Name), s.names, l.Glyphs.More)
		}
		text.WriteString(Padded(name, s.before()))
	}
	between := strings.Repeat(" ", s.gap)
	to := min(from+s.columns, len(g.Cells))
	for at := from; at < to; {
		// Cells with one tone are drawn at once.
		end := at + 1
		apart := func(at int) bool { return cursor && at == m.at || !g.Cells[at].plain() }
		for end < to && g.Cells[end].Tone == g.Cells[at].Tone && !apart(at) && !apart(end) {
			end++
		}
		switch {
		case cursor && at == m.at:
			text.WriteString(l.selectCell(&g.Cells[at], s.cell))
		case apart(at):
			text.WriteString(g.Cells[at].draw(l, s.cell))
		default:
			run := make([]string, 0, end-at)
			for _, cell := range g.Cells[at:end] {
				run = append(run, strings.Repeat(cell.Glyph, s.cell))
			}
			text.WriteString(l.Say(g.Cells[at].Tone, strings.Join(run, between)))
		}
		if end < to {
			text.WriteString(between)
		}
		at = end
	}
	if from > 0 || g.Note == "" {
		return text.String()
	}
	return Padded(text.String(), s.block()-s.notes) + l.Say(Faint, ansi.Truncate(g.Note, s.notes, l.Glyphs.More))
}

// selectCell draws a cell that is selected: in brackets, where it has room for them, or after the
// sign of a selected row. A reversed cell would look like one that is used to another share.
func (l *Look) selectCell(c *HeatCell, width int) string {
	before, after := l.Glyphs.Cursor, ""
	if width > 2 {
		before, after = "[", "]"
	}
	sign := func(text string) string {
		if text == "" {
			return ""
		}
		return mark + text + plain
	}
	return sign(before) + c.draw(l, width-len([]rune(before+after))) + sign(after)
}

// Narrow reports whether a cell has room for one sign only.
func (m *HeatMap) Narrow() bool { return m.shape.cell == 1 }

// Lines says how much of the map is seen; empty if all of it is.
func (m *HeatMap) Lines() string {
	if m.shape.lines <= m.height {
		return ""
	}
	return fmt.Sprintf("lines %d to %d of %d", m.first+1, min(m.first+m.height, m.shape.lines), m.shape.lines)
}
