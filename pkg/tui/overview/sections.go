// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// drawing makes the sections of a page of a model.
type drawing struct {
	look  *widget.Look
	model Model
	// width is the width of the page, pane the width of the pane on its right; 0 for none.
	width, pane int
	// plain is true for text that is printed: no frames, and no cursor.
	plain bool
}

// column is a column of numbers or words with its title.
type column struct {
	title string
	width int
	// left is true for words.
	left bool
}

const gap = "  "

// head returns the titles of columns at their places.
func (d *drawing) head(columns []column) string {
	var titles []string
	for _, c := range columns {
		if c.width > 0 {
			titles = append(titles, d.cell(c, c.title))
		}
	}
	return strings.TrimLeft(strings.Join(titles, gap), " ")
}

// cell brings a text to the width of its column.
func (d *drawing) cell(c column, text string) string {
	if !d.plain || !c.left {
		text = ansi.Truncate(text, c.width, d.look.Glyphs.More)
	}
	if c.left {
		return widget.Padded(text, c.width)
	}
	return strings.Repeat(" ", max(c.width-ansi.StringWidth(text), 0)) + text
}

// widest returns the width of the widest text, with bounds.
func widest[T any](rows []T, text func(*T) string, least, most int) int {
	width := least
	for i := range rows {
		width = max(width, ansi.StringWidth(text(&rows[i])))
	}
	return min(width, most)
}

// short returns how a class is called where there is little room.
func (d *drawing) short(class string) string {
	if name := d.model.Names[class]; name != "" {
		return render.Escape(name)
	}
	return render.Escape(class)
}

// maxName limits the width of names if other columns need room.
const maxName = 28

func (d *drawing) capacity() box {
	rows := d.model.Classes.Rows
	return box{
		name: "capacity", title: "Capacity", remarks: d.legend(), count: len(rows), none: d.model.Classes.None, all: d.model.Classes.All,
		id:    func(i int) string { return rows[i].Name },
		open:  func(i int) any { return rows[i].Open },
		item:  func(i int) any { return rows[i].Item },
		about: func(i int) (string, []string) { return "Class " + rows[i].Name, d.aboutClass(&rows[i]) },
		rows:  d.capacityRows,
	}
}

// numberOfClass is a column of the classes.
type numberOfClass struct {
	column
	tone widget.Tone
	text func(c *Class) string
}

// capacityColumns returns the numbers beside the bars: on a narrow page the most important
// ones.
func (d *drawing) capacityColumns(width int) []numberOfClass {
	rows := d.model.Classes.Rows
	waiting := func(c *Class) string {
		if c.Waiting == 0 {
			return ""
		}
		return english.Thousands(c.Waiting)
	}
	used, free, placeable := func(c *Class) string { return c.Used }, func(c *Class) string { return c.Free }, func(c *Class) string { return c.Placeable }
	columns := []numberOfClass{
		{column{"used", widest(rows, used, 5, 8), false}, widget.Plain, used},
		{column{"free", widest(rows, free, 5, 12), false}, widget.Plain, free},
		{column{"placeable", 9, false}, widget.Plain, placeable},
		{column{"waiting", 7, false}, widget.Warning, waiting},
	}
	if width < 70 {
		columns[3].title, columns[3].width = "wait", 4
	}
	for _, dropped := range []int{2, 1, 1} {
		if 1+leastName+len(gap)+leastBar+totalWidth(columns) > width {
			columns = slices.Delete(columns, dropped, dropped+1)
		}
	}
	return columns
}

// leastName and leastBar are the least widths of a name and of the bar of a class.
const leastName, leastBar = 8, 8

func totalWidth(columns []numberOfClass) int {
	total := 0
	for i := range columns {
		total += columns[i].width + len(gap)
	}
	return total
}

// capacityRows gives the bars what the numbers leave.
func (d *drawing) capacityRows(width int) (titles string, lines []string) {
	rows := d.model.Classes.Rows
	if d.plain {
		return "", d.plainCapacity()
	}
	columns := d.capacityColumns(width)
	history := 0
	switch {
	case !d.hasHistory():
	case width >= 140:
		history = 30
	case width >= 96:
		history = 16
	}
	if history > 0 {
		columns = append(columns, numberOfClass{column{"last hour", history, true}, widget.Busy, func(c *Class) string { return d.look.History(c.History, history) }})
	}
	numbers := totalWidth(columns)
	name := widest(rows, func(c *Class) string { return render.Escape(c.Name) }, 6, maxName)
	name = min(name, max(width-1-len(gap)-leastBar-numbers, leastName))
	bar := max(width-1-name-len(gap)-numbers, leastBar)
	lines = make([]string, 0, len(rows))
	for i := range rows {
		c := &rows[i]
		line := " " + d.cell(column{"", name, true}, render.Escape(c.Name)) + gap + d.look.Bar(c.Counts, bar)
		for j := range columns {
			line += gap + d.look.Say(columns[j].tone, d.cell(columns[j].column, columns[j].text(c)))
		}
		if c.Note != "" {
			line += gap + d.look.Say(widget.Bad, render.Escape(c.Note))
		}
		lines = append(lines, line)
	}
	shown := make([]column, 0, len(columns))
	for i := range columns {
		shown = append(shown, columns[i].column)
	}
	return d.head(shown), lines
}

// plainCapacity returns the numbers with their names.
func (d *drawing) plainCapacity() []string {
	rows := d.model.Classes.Rows
	number := func(least int, text func(c *Class) string) column {
		return column{"", widest(rows, text, least, 12), false}
	}
	name := column{"", widest(rows, func(c *Class) string { return render.Escape(c.Name) }, 6, maxName), true}
	used, free := number(5, func(c *Class) string { return c.Used }), number(5, func(c *Class) string { return c.Free })
	placeable := number(3, func(c *Class) string { return c.Placeable })
	lines := make([]string, 0, len(rows))
	for i := range rows {
		c := &rows[i]
		lines = append(lines, fmt.Sprintf("  %s  %s  %s used  %s free  %s placeable  %d waiting%s", d.cell(name, render.Escape(c.Name)), d.look.Bar(c.Counts, 20),
			d.cell(used, c.Used), d.cell(free, c.Free), d.cell(placeable, c.Placeable), c.Waiting, noteAfter(c.Note)))
	}
	return lines
}

func noteAfter(note string) string {
	if note == "" {
		return ""
	}
	return gap + render.Escape(note)
}

// legend explains the signs of the bars that are on the page.
func (d *drawing) legend() []string {
	if d.plain {
		return nil
	}
	used := map[string]bool{}
	for i := range d.model.Classes.Rows {
		c := &d.model.Classes.Rows[i].Counts
		g := &d.look.Glyphs
		for glyph, n := range map[string]int{
			g.Free: c.Free, g.Allocated: c.Allocated, g.Shared: c.Shared, g.TaintedInUse: c.TaintedInUse, g.Blocked: c.Blocked, g.Tainted: c.Tainted, g.Unusable: c.Unusable,
		} {
			used[glyph] = used[glyph] || n > 0
		}
	}
	var parts []string
	// Signs of trouble come first: there may be no room for all.
	for _, sign := range slices.Backward(d.look.Signs()) {
		if used[sign.Glyph] {
			parts = append(parts, d.look.Say(sign.Tone, sign.Glyph)+" "+d.look.Say(widget.Faint, sign.Means))
		}
	}
	return parts
}

func (d *drawing) hasHistory() bool {
	for i := range d.model.Classes.Rows {
		if len(d.model.Classes.Rows[i].History) > 0 {
			return !d.plain
		}
	}
	return false
}

func (d *drawing) teams() box {
	s := &d.model.Teams
	return box{
		name: "teams", title: "Teams", count: len(s.Rows), none: s.None, all: s.All,
		id:    func(i int) string { return s.Rows[i].Namespace },
		open:  func(i int) any { return s.Rows[i].Open },
		about: func(i int) (string, []string) { return "Namespace " + s.Rows[i].Namespace, d.aboutTeam(&s.Rows[i]) },
		rows:  d.teamRows,
	}
}

// leastTeam is the least room for the name of a namespace: the title of the next column
// stands beside the title of the box.
const leastTeam = 8

func (d *drawing) teamRows(width int) (titles string, lines []string) {
	rows := d.model.Teams.Rows
	columns := []column{
		{"", widest(rows, func(t *Team) string { return render.Escape(t.Namespace) }, leastTeam, 16), true},
		{"used", 0, true},
		{"share", 5, false},
		{"", 0, true},
		{"waits", 5, false},
		{"idle", 4, false},
	}
	taken := 1 + columns[0].width + 3*len(gap) + 5 + 5 + 4 + len(gap)
	if width-taken >= 40 {
		columns[3].width = min(20, (width-taken)/3)
		taken += columns[3].width + len(gap)
	}
	const leastUses = 6
	for _, dropped := range []int{5, 2} {
		if width-taken < leastUses && !d.plain {
			taken -= columns[dropped].width + len(gap)
			columns[dropped].width = 0
		}
	}
	columns[1].width = max(width-taken, leastUses)
	if d.plain {
		columns[1].width = widest(rows, func(t *Team) string { return d.uses(t) }, 4, 60)
		columns[3].width = 0
	}
	for i := range rows {
		t := &rows[i]
		share, bar := "?", ""
		if t.Share != nil {
			share = fmt.Sprintf("%.0f %%", 100**t.Share)
			bar = d.look.Share(*t.Share, columns[3].width)
		}
		texts := []string{render.Escape(t.Namespace), d.uses(t), share, bar, someOrNone(t.Waiting), someOrNone(t.Idle)}
		if d.plain {
			lines = append(lines, fmt.Sprintf("  %s  %s  %s of what is used  %d waiting  %d idle", d.cell(columns[0], texts[0]), d.cell(columns[1], texts[1]), d.cell(columns[2], share), t.Waiting, t.Idle))
			continue
		}
		var line strings.Builder
		line.WriteString(" ")
		for j, text := range texts {
			if columns[j].width == 0 {
				continue
			}
			if j > 0 {
				line.WriteString(gap)
			}
			text = d.cell(columns[j], text)
			if j >= 4 {
				text = d.look.Say(widget.Warning, text)
			}
			line.WriteString(text)
		}
		lines = append(lines, line.String())
	}
	return d.head(columns[1:]), lines
}

// uses returns "gpu 10 nic 2".
func (d *drawing) uses(t *Team) string {
	var parts []string
	bound, none := "", "-"
	if t.Share == nil {
		bound, none = "≥", "?"
	}
	for _, use := range t.Classes {
		if use.Used > 0 {
			parts = append(parts, d.short(use.Class)+" "+bound+english.Thousands(use.Used))
		}
	}
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, gap)
}

func someOrNone(n int) string {
	if n == 0 {
		return ""
	}
	return english.Thousands(n)
}

func (d *drawing) events() box {
	s := &d.model.Events
	return box{
		name: "events", title: "Events", count: len(s.Rows), none: s.None, all: s.All,
		id:   func(i int) string { return s.Rows[i].Key },
		open: func(i int) any { return s.Rows[i].Open },
		item: func(i int) any { return s.Rows[i].Item },
		about: func(i int) (string, []string) {
			return "Event", []string{s.Rows[i].At.Format(time.DateTime) + "  " + s.Rows[i].Text}
		},
		rows: func(int) (string, []string) {
			var lines []string
			for i := range s.Rows {
				e := &s.Rows[i]
				lines = append(lines, " "+d.look.Say(widget.Faint, widget.Padded(e.When, len(time.TimeOnly)))+gap+d.look.Say(e.Tone, render.Escape(e.Text)))
			}
			return "", lines
		},
	}
}
