// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// tableColumns are the columns of a table that are shown, and how wide they are.
type tableColumns struct {
	content Content
	width   int
	// widths are the widest cells seen so far, so that columns do not jump.
	widths []int
	// leftmost is the first shown column after the pinned ones.
	leftmost int
}

const (
	// gutter is the space before each row, for the cursor and the mark of what
	// changed.
	gutter = 2
	gap    = 2
)

// place is a column on the screen.
type place struct{ column, from, width int }

// Scroll shows other columns, as far as there are any that are not shown.
func (c *tableColumns) Scroll(by int) {
	if c.content == nil {
		return
	}
	if places := c.layout(); by > 0 && c.whole(places) {
		return
	}
	c.leftmost = min(max(c.leftmost+by, 0), max(len(c.content.Columns())-c.content.Pinned()-1, 0))
}

// HasMore reports whether there are columns on the right that are not shown, or more of the last one.
func (c *tableColumns) HasMore() bool { return c.content != nil && !c.whole(c.layout()) }

// TitleAt returns the column whose title is at a place of the first line.
func (c *tableColumns) TitleAt(x int) (column int, ok bool) {
	if c.content == nil {
		return 0, false
	}
	for _, p := range c.layout() {
		if x >= p.from && x < p.from+p.width+gap {
			return p.column, true
		}
	}
	return 0, false
}

// layout chooses the columns that fit. Those that are pinned are always there, but
// take more than half of the screen together only where the others leave room; the last column
// that begins on the screen takes the room that is left.
func (c *tableColumns) layout() []place {
	var places []place
	from, used := gutter, 0
	titles := c.content.Columns()
	for column, title := range titles {
		pinned := c.content.Pinned()
		if column >= pinned && column < pinned+c.leftmost {
			continue
		}
		left := c.width - from
		width := c.widths[column]
		if column < pinned {
			width = min(width, max((c.width/2-used)/(pinned-column), minCell))
			used += width
		}
		// The sign for more columns takes a place of the title. A title on the right of its column is
		// as far to the right as the column.
		needed := ansi.StringWidth(title) + 1
		if c.content.Numeric(column) {
			needed = width + 1
		}
		if more := width > left || width == left && column < len(titles)-1; column > 0 && (more && left < needed || width > left && left < minCell) {
			break
		}
		width = max(min(width, left), 1)
		places = append(places, place{column, from, width})
		from += width + gap
		if from >= c.width {
			break
		}
	}
	return c.widened(places)
}

// minCell is the least room worth to begin a column in.
const minCell = 12

// widened gives columns that are cut the room on the right that none of them needs.
func (c *tableColumns) widened(places []place) []place {
	last := places[len(places)-1]
	spare := c.width - last.from - last.width
	if last.column < len(c.content.Columns())-1 && c.content.Numeric(last.column) {
		// The sign for more columns stands behind the title.
		spare--
	}
	given := 0
	for i := range places {
		p := &places[i]
		p.from += given
		more := max(min(c.widths[p.column]-p.width, spare-given), 0)
		p.width += more
		given += more
	}
	return places
}

// whole reports whether the last column is shown in full.
func (c *tableColumns) whole(places []place) bool {
	last := places[len(places)-1]
	return last.column == len(c.content.Columns())-1 && last.width >= c.widths[last.column]
}

// measure measures the columns in rows.
func (c *tableColumns) measure(rows []int, sortBy int) {
	if sortBy >= 0 && sortBy < len(c.widths) {
		// There is an arrow behind the title.
		c.widths[sortBy] = max(c.widths[sortBy], ansi.StringWidth(c.content.Columns()[sortBy])+2)
	}
	for _, row := range rows {
		for column := range c.widths {
			c.widths[column] = max(c.widths[column], ansi.StringWidth(c.cell(row, column)))
		}
	}
}

// cell returns the text of a column as it is drawn.
func (c *tableColumns) cell(row, column int) string {
	text := c.content.Cell(row, column)
	if c.content.Numeric(column) {
		return english.Grouped(text)
	}
	return text
}

func (c *tableColumns) titles(l *Look, places []place, sortBy int, descending bool) string {
	titles := c.content.Columns()
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
		line.WriteString(c.fitted(l, title, p, i == len(places)-1))
		if i < len(places)-1 {
			line.WriteString(strings.Repeat(" ", gap))
		}
	}
	if !c.whole(places) && c.width > 1 {
		// There are columns on the right, or more of the last one.
		return l.Header.Render(Padded(ansi.Truncate(line.String(), c.width-1, ""), c.width-1) + l.Glyphs.More)
	}
	return l.Header.Render(ansi.Truncate(line.String(), c.width, ""))
}

// fitted cuts a text, or fills it up, to the width of its column; numbers stand
// on the right. The last of a line is not filled.
func (c *tableColumns) fitted(l *Look, text string, p place, last bool) string {
	text = ansi.Truncate(text, p.width, l.Glyphs.More)
	switch {
	case c.content.Numeric(p.column):
		return strings.Repeat(" ", max(p.width-ansi.StringWidth(text), 0)) + text
	case last:
		return text
	default:
		return Padded(text, p.width)
	}
}
