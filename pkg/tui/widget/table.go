// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// Table shows a window of the rows of a content. Only what is in the window is
// ever made or drawn.
type Table struct {
	tableColumns
	// rows are the wanted rows of the content, in order.
	rows []int
	// cursor is the place in rows that is selected, key the row that is there:
	// it stays selected when rows come and go.
	cursor int
	key    string
	// wanted is the key to select once there is a row with it.
	wanted string
	// first is the place in rows of the uppermost line.
	first  int
	height int
	// changed has the times until which changed rows are marked.
	changed map[string]time.Time
	// unfolds is the column whose texts go on below their rows, counted from 1; 0 for none.
	unfolds int
}

// Resize sets how much of a screen there is.
func (t *Table) Resize(width, height int) {
	t.width, t.height = width, max(height, 1)
	t.Move(0)
}

// Lines returns how many rows fit under the titles.
func (t *Table) Lines() int { return max(t.height-1, 1) }

// markTime is how long a row that changed is marked.
const markTime = 3 * time.Second

// Set shows other rows. The selected row stays selected if it is still there.
// Otherwise the cursor goes to the first row or, if stay is true, stays where it
// is on the screen.
func (t *Table) Set(s Content, rows []int, stay bool) {
	if t.content == nil || len(t.content.Columns()) != len(s.Columns()) {
		t.changed = map[string]time.Time{}
		t.widths = make([]int, len(s.Columns()))
		for i, title := range s.Columns() {
			t.widths[i] = ansi.StringWidth(title)
		}
	}
	t.content, t.rows = s, rows
	if t.wanted != "" {
		if place := slices.IndexFunc(rows, func(row int) bool { return s.Key(row) == t.wanted }); place >= 0 {
			t.cursor, t.key, t.wanted = place, t.wanted, ""
		}
	}
	if t.key != "" && (t.cursor >= len(rows) || s.Key(rows[t.cursor]) != t.key) {
		place := slices.IndexFunc(rows, func(row int) bool { return s.Key(row) == t.key })
		switch {
		case place >= 0:
			t.first += place - t.cursor
			t.cursor = place
		case !stay:
			t.cursor, t.first = 0, 0
		}
	}
	t.Move(0)
}

// Mark marks the rows in the window that are about to look different, or that
// will be new in it.
func (t *Table) Mark(s Content, rows []int, now time.Time) {
	maps.DeleteFunc(t.changed, func(_ string, until time.Time) bool { return until.Before(now) })
	if t.content == nil || len(t.rows) == 0 {
		return
	}
	before := map[string]string{}
	for place := max(t.first-t.height, 0); place < min(t.first+2*t.height, len(t.rows)); place++ {
		before[t.content.Key(t.rows[place])] = rowText(t.content, t.rows[place])
	}
	for place := t.first; place < min(t.first+t.height, len(rows)); place++ {
		key := s.Key(rows[place])
		if text, known := before[key]; !known || text != rowText(s, rows[place]) {
			t.changed[key] = now.Add(markTime)
		}
	}
}

// rowText returns a row without what changes by time alone.
func rowText(s Content, row int) string {
	var text strings.Builder
	for column, title := range s.Columns() {
		if !slices.Contains([]string{"Age", "Next eviction", "Wait", "Longest"}, title) {
			text.WriteString(s.Cell(row, column))
			text.WriteByte('\t')
		}
	}
	return text.String()
}

// Move moves the cursor by so many rows and keeps it in the window.
func (t *Table) Move(by int) {
	if by != 0 {
		t.wanted = ""
	}
	t.cursor = min(max(t.cursor+by, 0), max(len(t.rows)-1, 0))
	if t.cursor < t.first {
		t.first = t.cursor
	}
	if t.cursor >= t.first+t.Lines() {
		t.first = t.cursor - t.Lines() + 1
	}
	t.first = min(max(t.first, 0), max(len(t.rows)-t.Lines(), 0))
	t.key = ""
	if len(t.rows) > 0 {
		t.key = t.content.Key(t.rows[t.cursor])
	}
}

// Shown returns the content and the rows of it, nil if there are none yet.
func (t *Table) Shown() (Content, []int) { return t.content, t.rows }

// Count returns how many rows there are.
func (t *Table) Count() int { return len(t.rows) }

// Size returns the size of the table on the screen.
func (t *Table) Size() (width, height int) { return t.width, t.height }

// SelectedKey returns the key of the row with the cursor.
func (t *Table) SelectedKey() string { return t.key }

// SelectedAt returns the place of the row with the cursor.
func (t *Table) SelectedAt() int { return t.cursor }

// SelectedRow returns the row of the content with the cursor; false if there is none.
func (t *Table) SelectedRow() (row int, ok bool) {
	if len(t.rows) == 0 {
		return 0, false
	}
	return t.rows[t.cursor], true
}

// Keep selects the row with a key among whatever rows come next.
func (t *Table) Keep(key string) { t.key = key }

// LetGo forgets the content, but for which row is selected.
func (t *Table) LetGo() { t.content, t.rows, t.wanted = nil, nil, t.key }

// Click handles a click on a line below the titles: it selects the row there, and reports
// whether it was selected already.
func (t *Table) Click(y int) (again bool) {
	if y > t.Lines() {
		return false
	}
	at, below := t.first, t.below()
	for line := y - 1; line >= max(len(below[at]), 1); at++ {
		line -= max(len(below[at]), 1)
	}
	if at >= len(t.rows) {
		return false
	}
	if at == t.cursor {
		return true
	}
	t.Move(at - t.cursor)
	return false
}

// Home selects the first of whatever rows come next.
func (t *Table) Home() { t.cursor, t.first, t.key = 0, 0, "" }

// Choose selects a row by its key, at the latest when rows with it come.
func (t *Table) Choose(key string) {
	t.wanted = key
	if t.content != nil {
		t.Set(t.content, t.rows, true)
	}
}

// Selected returns the item with the cursor, nil if there is none.
func (t *Table) Selected() any {
	if len(t.rows) == 0 {
		return nil
	}
	return t.content.Item(t.rows[t.cursor])
}

// Remark returns what there is to say about the row with the cursor.
func (t *Table) Remark() string {
	if len(t.rows) == 0 {
		return ""
	}
	return t.content.Remark(t.rows[t.cursor])
}

// Unfold lets the texts of a column that are cut go on below their rows, as far as there are lines
// that no row needs; of a negative column, none do.
func (t *Table) Unfold(column int) { t.unfolds = column + 1 }

// below returns the lines of texts that go on below their rows, by the place of the row.
func (t *Table) below() map[int][]string {
	spare := t.Lines() - len(t.rows)
	if t.unfolds == 0 || spare <= 0 || t.content == nil {
		return nil
	}
	lines := map[int][]string{}
	for _, p := range t.layout() {
		for at := 0; p.column == t.unfolds-1 && at < len(t.rows); at++ {
			text := strings.Split(ansi.Wrap(t.cell(t.rows[at], p.column), p.width, ""), "\n")
			if more := len(text) - 1; more > 0 && more <= spare {
				lines[at] = text
				spare -= more
			}
		}
	}
	return lines
}

// Used returns how many lines there are with titles or rows, or to say that there are no rows.
func (t *Table) Used() int {
	used := 1 + max(len(t.rows), 1)
	for _, lines := range t.below() {
		used += len(lines) - 1
	}
	return min(used, t.height)
}

// Whole returns the columns that show all of their text in the row with the cursor.
func (t *Table) Whole() map[int]bool {
	whole := map[int]bool{}
	row, ok := t.SelectedRow()
	if !ok || t.content == nil {
		return whole
	}
	// The widths stay as they are drawn.
	defer func(widths []int) { t.widths = widths }(slices.Clone(t.widths))
	t.measure(t.window(), -1)
	for _, p := range t.layout() {
		whole[p.column] = ansi.StringWidth(t.cell(row, p.column)) <= p.width
	}
	return whole
}

// window returns the rows that are shown.
func (t *Table) window() []int {
	return t.rows[min(t.first, len(t.rows)):min(t.first+t.Lines(), len(t.rows))]
}

// View draws exactly as many lines as the table is high.
func (t *Table) View(l *Look, sortBy int, descending bool, now time.Time) string {
	lines := make([]string, 0, t.height)
	if t.content == nil {
		return strings.Repeat("\n", t.height-1)
	}
	t.measure(t.window(), sortBy)
	places := t.layout()
	lines = append(lines, t.titles(l, places, sortBy, descending))
	below := t.below()
	for i := t.first; i < min(t.first+t.Lines(), len(t.rows)); i++ {
		lines = append(lines, t.line(l, places, i, now, below[i])...)
	}
	for len(lines) < t.height {
		lines = append(lines, "")
	}
	return strings.Join(lines[:t.height], "\n")
}

// line draws a row, and the lines of a text that goes on below it.
func (t *Table) line(l *Look, places []place, at int, now time.Time, below []string) []string {
	row := t.rows[at]
	mark := " "
	if until, ok := t.changed[t.content.Key(row)]; ok && now.Before(until) {
		mark = l.Glyphs.Changed
	}
	selected := at == t.cursor
	var line strings.Builder
	if selected {
		line.WriteString(l.Glyphs.Cursor)
	} else {
		line.WriteString(" ")
	}
	line.WriteString(mark)
	var lines []string
	for i, p := range places {
		text := t.cell(row, p.column)
		if p.column == t.unfolds-1 && len(below) > 0 {
			text = below[0]
			for _, more := range below[1:] {
				lines = append(lines, strings.Repeat(" ", p.from)+t.content.Paint(l, row, p.column, more))
			}
		}
		text = t.fitted(l, text, p, i == len(places)-1)
		line.WriteString(t.content.Paint(l, row, p.column, text))
		if i < len(places)-1 {
			line.WriteString(strings.Repeat(" ", gap))
		}
	}
	lines = slices.Insert(lines, 0, line.String())
	for i := range lines {
		if selected {
			lines[i] = l.Select(Padded(lines[i], t.width))
		}
	}
	return lines
}
