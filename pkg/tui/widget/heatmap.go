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
	Key   string
	Glyph string
	Tone  Tone
}

// HeatGroup is a set of cells that stand together.
type HeatGroup struct {
	Name  string
	Cells []HeatCell
	// Note stands behind the cells.
	Note string
}

// HeatMap is a map with a cursor.
type HeatMap struct {
	groups        []HeatGroup
	width, height int
	// key is the cell with the cursor, group and at are its place.
	key       string
	group, at int
	// first is the uppermost line that is shown.
	first int
}

const (
	// maxName is the room for the name of a group, maxNote the room for its note.
	maxName, maxNote = 16, 26
	margin           = 2
)

// SetSize sets how much of a screen there is.
func (m *HeatMap) SetSize(width, height int) { m.width, m.height = width, max(height, 1) }

// Set shows other cells. The cursor stays on its cell if that is still there.
func (m *HeatMap) Set(groups []HeatGroup) {
	m.groups = slices.DeleteFunc(groups, func(g HeatGroup) bool { return len(g.Cells) == 0 })
	m.Choose(m.key)
}

// Choose puts the cursor on a cell; if it is not there, on the nearest place.
func (m *HeatMap) Choose(key string) {
	for i := range m.groups {
		if at := slices.IndexFunc(m.groups[i].Cells, func(c HeatCell) bool { return c.Key == key }); at >= 0 {
			m.group, m.at, m.key = i, at, key
			return
		}
	}
	m.group = min(m.group, max(len(m.groups)-1, 0))
	m.key, m.at = "", max(m.at, 0)
	if len(m.groups) > 0 {
		m.at = min(m.at, len(m.groups[m.group].Cells)-1)
		m.key = m.groups[m.group].Cells[m.at].Key
	}
}

// Selected returns the key of the cell with the cursor; empty if there are no cells.
func (m *HeatMap) Selected() string { return m.key }

// names and columns are how much of a line is for names of groups, and for cells.
func (m *HeatMap) names() int {
	width := 0
	for i := range m.groups {
		width = max(width, ansi.StringWidth(render.Escape(m.groups[i].Name)))
	}
	return min(width, maxName)
}

func (m *HeatMap) columns() int {
	notes := 0
	for i := range m.groups {
		notes = max(notes, ansi.StringWidth(m.groups[i].Note))
	}
	used := margin
	if names := m.names(); names > 0 {
		used += names + margin
	}
	if notes > 0 {
		used += min(notes, maxNote) + margin
	}
	return max(m.width-used, 1)
}

// Right moves the cursor by so many cells, also into the next group.
func (m *HeatMap) Right(by int) {
	if len(m.groups) == 0 {
		return
	}
	m.at += by
	for m.at < 0 && m.group > 0 {
		m.group--
		m.at += len(m.groups[m.group].Cells)
	}
	for m.at >= len(m.groups[m.group].Cells) && m.group < len(m.groups)-1 {
		m.at -= len(m.groups[m.group].Cells)
		m.group++
	}
	m.at = min(max(m.at, 0), len(m.groups[m.group].Cells)-1)
	m.key = m.groups[m.group].Cells[m.at].Key
}

// Down moves the cursor by so many lines, in the same column as far as there is one.
func (m *HeatMap) Down(by int) {
	columns := m.columns()
	for ; by > 0; by-- {
		m.downOne(columns)
	}
	for ; by < 0; by++ {
		m.upOne(columns)
	}
	if len(m.groups) > 0 {
		m.key = m.groups[m.group].Cells[m.at].Key
	}
}

func (m *HeatMap) downOne(columns int) {
	if len(m.groups) == 0 {
		return
	}
	last := len(m.groups[m.group].Cells) - 1
	switch {
	case m.at/columns < last/columns:
		m.at = min(m.at+columns, last)
	case m.group < len(m.groups)-1:
		m.group++
		m.at = min(m.at%columns, len(m.groups[m.group].Cells)-1)
	}
}

func (m *HeatMap) upOne(columns int) {
	switch {
	case len(m.groups) == 0:
	case m.at >= columns:
		m.at -= columns
	case m.group > 0:
		m.group--
		last := len(m.groups[m.group].Cells) - 1
		m.at = min(last/columns*columns+m.at, last)
	}
}

// View draws as many lines as the map is high.
func (m *HeatMap) View(l *Look) string {
	columns, names := m.columns(), m.names()
	m.follow(columns)
	lines := make([]string, 0, m.height)
	line := 0
	for i := range m.groups {
		g := &m.groups[i]
		for from := 0; from < len(g.Cells); from += columns {
			if line >= m.first && len(lines) < m.height {
				lines = append(lines, m.line(l, i, from, columns, names))
			}
			line++
		}
	}
	for len(lines) < m.height {
		lines = append(lines, "")
	}
	return strings.Join(lines, "\n")
}

// follow keeps the line of the cursor in sight.
func (m *HeatMap) follow(columns int) {
	all, at := 0, 0
	for i := range m.groups {
		if i == m.group {
			at = all + m.at/columns
		}
		all += (len(m.groups[i].Cells) + columns - 1) / columns
	}
	m.first = min(m.first, at)
	m.first = max(m.first, at-m.height+1)
	m.first = max(min(m.first, all-m.height), 0)
}

// line draws the cells of a group from one on. The name and the note stand in its first
// line.
func (m *HeatMap) line(l *Look, group, from, columns, names int) string {
	g := &m.groups[group]
	var text strings.Builder
	text.WriteString(" ")
	if names > 0 {
		name := ""
		if from == 0 {
			name = ansi.Truncate(render.Escape(g.Name), names, l.Glyphs.More)
		}
		text.WriteString(Padded(name, names) + "  ")
	}
	to := min(from+columns, len(g.Cells))
	for at := from; at < to; {
		// Cells with one tone are drawn at once.
		end := at + 1
		if group != m.group || at != m.at {
			for end < to && g.Cells[end].Tone == g.Cells[at].Tone && (group != m.group || end != m.at) {
				end++
			}
		}
		var run strings.Builder
		for _, cell := range g.Cells[at:end] {
			run.WriteString(cell.Glyph)
		}
		drawn := l.Say(g.Cells[at].Tone, run.String())
		if group == m.group && at == m.at {
			drawn = l.SelectCell(drawn)
		}
		text.WriteString(drawn)
		at = end
	}
	if from == 0 && g.Note != "" {
		text.WriteString(strings.Repeat(" ", columns-(to-from)) + "  " + l.Say(Faint, ansi.Truncate(g.Note, maxNote, l.Glyphs.More)))
	}
	return text.String()
}

// Lines returns how many lines the cells take, to say how much of it is seen.
func (m *HeatMap) Lines() string {
	columns, all := m.columns(), 0
	for i := range m.groups {
		all += (len(m.groups[i].Cells) + columns - 1) / columns
	}
	if all <= m.height {
		return ""
	}
	return fmt.Sprintf("lines %d to %d of %d", m.first+1, min(m.first+m.height, all), all)
}
