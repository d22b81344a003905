// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
)

// table shows a window of the rows of a content. Only what is in the window is
// ever made or drawn.
type table struct {
	content content
	// rows are those of the content that are wanted, in order.
	rows []int
	// cursor is the place in rows that is selected, key the row that is there:
	// it stays selected when rows come and go.
	cursor int
	key    string
	// wanted is the key to select once there is a row with it.
	wanted string
	// first is the place in rows of the uppermost line.
	first int
	// leftmost is the first column after the pinned one that is shown.
	leftmost      int
	width, height int
	// widths are the widest cells seen so far, so that columns do not jump.
	widths []int
	// changed is until when rows are marked, because they differ from what was
	// shown before.
	changed map[string]time.Time
}

const (
	// gutter is the space before each row, for the cursor and the mark of what
	// changed.
	gutter = 2
	gap    = 2
)

func (t *table) resize(width, height int) {
	t.width, t.height = width, max(height, 1)
	t.move(0)
}

// lines is how many rows fit under the titles.
func (t *table) lines() int { return max(t.height-1, 1) }

// markTime is how long a row that changed is marked.
const markTime = 3 * time.Second

// set shows other rows. The selected row stays selected if it is still there.
// Otherwise the cursor goes to the first row or, if stay is true, stays where it
// is on the screen.
func (t *table) set(s content, rows []int, stay bool) {
	if t.content == nil || len(t.content.columns()) != len(s.columns()) {
		t.changed = map[string]time.Time{}
		t.widths = make([]int, len(s.columns()))
		for i, title := range s.columns() {
			t.widths[i] = ansi.StringWidth(title)
		}
	}
	t.content, t.rows = s, rows
	if t.wanted != "" {
		if place := slices.IndexFunc(rows, func(row int) bool { return s.key(row) == t.wanted }); place >= 0 {
			t.cursor, t.key, t.wanted = place, t.wanted, ""
		}
	}
	if t.key != "" && !t.at(t.cursor, t.key) {
		place := slices.IndexFunc(rows, func(row int) bool { return s.key(row) == t.key })
		switch {
		case place >= 0:
			t.first += place - t.cursor
			t.cursor = place
		case !stay:
			t.cursor, t.first = 0, 0
		}
	}
	t.move(0)
}

func (t *table) at(place int, key string) bool {
	return place < len(t.rows) && t.content.key(t.rows[place]) == key
}

// mark marks the rows in the window that are about to look different, or that
// will be new in it.
func (t *table) mark(s content, rows []int, now time.Time) {
	maps.DeleteFunc(t.changed, func(_ string, until time.Time) bool { return until.Before(now) })
	if t.content == nil || len(t.rows) == 0 {
		return
	}
	before := map[string]string{}
	for place := max(t.first-t.height, 0); place < min(t.first+2*t.height, len(t.rows)); place++ {
		before[t.content.key(t.rows[place])] = rowText(t.content, t.rows[place])
	}
	for place := t.first; place < min(t.first+t.height, len(rows)); place++ {
		key := s.key(rows[place])
		if text, known := before[key]; !known || text != rowText(s, rows[place]) {
			t.changed[key] = now.Add(markTime)
		}
	}
}

// rowText is a row without what changes by time alone.
func rowText(s content, row int) string {
	var text strings.Builder
	for column, title := range s.columns() {
		if !slices.Contains([]string{"Age", "Next eviction", "Wait", "Longest"}, title) {
			text.WriteString(s.cell(row, column))
			text.WriteByte('\t')
		}
	}
	return text.String()
}

// move moves the cursor by so many rows and keeps it in the window.
func (t *table) move(by int) {
	if by != 0 {
		t.wanted = ""
	}
	t.cursor = min(max(t.cursor+by, 0), max(len(t.rows)-1, 0))
	if t.cursor < t.first {
		t.first = t.cursor
	}
	if t.cursor >= t.first+t.lines() {
		t.first = t.cursor - t.lines() + 1
	}
	t.first = min(max(t.first, 0), max(len(t.rows)-t.lines(), 0))
	t.key = ""
	if len(t.rows) > 0 {
		t.key = t.content.key(t.rows[t.cursor])
	}
}

// home selects the first of whatever rows come next.
func (t *table) home() { t.cursor, t.first, t.key = 0, 0, "" }

// choose selects a row by its key, at the latest when rows with it come.
func (t *table) choose(key string) {
	t.wanted = key
	if t.content != nil {
		t.set(t.content, t.rows, true)
	}
}

// selected is the item with the cursor, nil if there is none.
func (t *table) selected() any {
	if len(t.rows) == 0 {
		return nil
	}
	return t.content.item(t.rows[t.cursor])
}

// remark is what there is to say about the row with the cursor.
func (t *table) remark() string {
	if len(t.rows) == 0 {
		return ""
	}
	return t.content.remark(t.rows[t.cursor])
}

// scroll shows other columns, as far as there are any that are not shown.
func (t *table) scroll(by int) {
	if t.content == nil {
		return
	}
	if places := t.layout(); by > 0 && t.whole(places) {
		return
	}
	t.leftmost = min(max(t.leftmost+by, 0), max(len(t.content.columns())-t.content.pinned()-1, 0))
}

// whole reports whether the last column is shown in full.
func (t *table) whole(places []place) bool {
	last := places[len(places)-1]
	return last.column == len(t.content.columns())-1 && last.width >= t.widths[last.column]
}

// place is a column on the screen.
type place struct{ column, from, width int }

// layout chooses the columns that fit. Those that are pinned are always there, but
// never take more than half of the screen together; the last one that begins on
// the screen takes the room that is left.
func (t *table) layout() []place {
	var places []place
	from, used := gutter, 0
	for column := range t.content.columns() {
		pinned := t.content.pinned()
		if column >= pinned && column < pinned+t.leftmost {
			continue
		}
		left := t.width - from
		width := t.widths[column]
		if column < pinned {
			width = min(width, max((t.width/2-used)/(pinned-column), minCell))
			used += width
		}
		if column > 0 && width > left && left < minCell {
			break
		}
		width = max(min(width, left), 1)
		places = append(places, place{column, from, width})
		from += width + gap
		if from >= t.width {
			break
		}
	}
	return places
}

// minCell is the least room worth to begin a column in.
const minCell = 12

// measure takes the widths of what is in the window.
func (t *table) measure(sortBy int) {
	if sortBy >= 0 && sortBy < len(t.widths) {
		// There is an arrow behind the title.
		t.widths[sortBy] = max(t.widths[sortBy], ansi.StringWidth(t.content.columns()[sortBy])+2)
	}
	for place := t.first; place < min(t.first+t.lines(), len(t.rows)); place++ {
		for column := range t.widths {
			t.widths[column] = max(t.widths[column], ansi.StringWidth(t.content.cell(t.rows[place], column)))
		}
	}
}

// view draws exactly as many lines as the table is high.
func (t *table) view(l *look.Look, sortBy int, descending bool, now time.Time) string {
	lines := make([]string, 0, t.height)
	if t.content == nil {
		return strings.Repeat("\n", t.height-1)
	}
	t.measure(sortBy)
	places := t.layout()
	lines = append(lines, t.titles(l, places, sortBy, descending))
	for i := t.first; i < min(t.first+t.lines(), len(t.rows)); i++ {
		lines = append(lines, t.line(l, places, i, now))
	}
	for len(lines) < t.height {
		lines = append(lines, "")
	}
	return strings.Join(lines[:t.height], "\n")
}

func (t *table) titles(l *look.Look, places []place, sortBy int, descending bool) string {
	titles := t.content.columns()
	var line strings.Builder
	line.WriteString(strings.Repeat(" ", gutter))
	for i, p := range places {
		title := strings.ToUpper(titles[p.column])
		if p.column == sortBy {
			arrow := l.Glyphs.Up
			if descending {
				arrow = l.Glyphs.Down
			}
			title += " " + arrow
		}
		line.WriteString(t.fitted(l, title, p, i == len(places)-1))
		if i < len(places)-1 {
			line.WriteString(strings.Repeat(" ", gap))
		}
	}
	if !t.whole(places) && t.width > 1 {
		// There are columns on the right, or more of the last one.
		return l.Header.Render(look.Padded(ansi.Truncate(line.String(), t.width-1, ""), t.width-1) + l.Glyphs.More)
	}
	return l.Header.Render(ansi.Truncate(line.String(), t.width, ""))
}

func (t *table) line(l *look.Look, places []place, at int, now time.Time) string {
	row := t.rows[at]
	mark := " "
	if until, ok := t.changed[t.content.key(row)]; ok && now.Before(until) {
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
	for i, p := range places {
		text := t.fitted(l, t.content.cell(row, p.column), p, i == len(places)-1)
		line.WriteString(t.content.paint(l, row, p.column, text))
		if i < len(places)-1 {
			line.WriteString(strings.Repeat(" ", gap))
		}
	}
	if !selected {
		return line.String()
	}
	return l.Select(look.Padded(line.String(), t.width))
}

// fitted cuts a text, or fills it up, to the width of its column; numbers stand
// on the right. The last of a line is not filled.
func (t *table) fitted(l *look.Look, text string, p place, last bool) string {
	text = ansi.Truncate(text, p.width, l.Glyphs.More)
	switch {
	case t.content.numeric(p.column):
		return strings.Repeat(" ", max(p.width-ansi.StringWidth(text), 0)) + text
	case last:
		return text
	default:
		return look.Padded(text, p.width)
	}
}

// titleAt is the column whose title is at a place of the first line.
func (t *table) titleAt(x int) (column int, ok bool) {
	if t.content == nil {
		return 0, false
	}
	for _, p := range t.layout() {
		if x >= p.from && x < p.from+p.width+gap {
			return p.column, true
		}
	}
	return 0, false
}
