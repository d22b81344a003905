// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Options says how to draw.
type Options struct {
	// Width is how many terminal cells a line may take; 0 means as many as it
	// needs, so that every fact is one line. A word that is longer than the space
	// for it is never cut and sticks out.
	Width int
	// Height is how many lines the terminal has; 0 stands for 24.
	Height int
	// Color allows colors and bold text. They only mark what the text says too.
	Color bool
	// NoBars leaves out bars, which repeat a number, for readers of text alone.
	NoBars bool
	// Wide shows everything that is otherwise sampled or left out: each device, each node,
	// all evidence.
	Wide bool
	// Commands shows the commands of remedies, for a shell.
	Commands bool
	// AllRemedies shows every remedy of an answer.
	AllRemedies bool
	// Screen is for a page to scroll through: the first thing to do stands at the beginning of an
	// answer, and flags are not named.
	Screen bool
}

const (
	minWidth = 20
	// textWidth is the most that text takes on a wider terminal, and tableWidth
	// what a table takes: longer lines are hard to read, and columns far apart hard
	// to follow.
	textWidth  = 120
	tableWidth = 160
	// Unlimited is the width of lines that are not wrapped.
	Unlimited = 1 << 30
	// AlignWidth is how far apart the columns of lines without a limit may stand
	// to be in line with each other.
	AlignWidth = 100
	// longest limits how many characters of a text are shown. It is more than any message
	// of a cluster has: the API server accepts 32 KiB in a condition. A text that exceeds
	// it by less than slack is shown as it is, and slack is how much shorter it may become
	// to end with a whole word.
	longest = 32 << 10
	slack   = 253
	// namesLongest is how many cells a sample of names takes where lines are not
	// wrapped.
	namesLongest = 1000
	// ColumnGap is the number of blanks between two columns.
	ColumnGap = 2
)

// Mark is the highlighting of a piece of text.
type Mark int

// Marks for pieces of text. The zero value is not highlighted.
const (
	Plain Mark = iota
	Strong
	Faint
	Good
	Bad
	Unsure
)

// Cell is one column of a line. Its text is wrapped into width; 0 means all the
// space that is left. A whole one is never shortened, however long it is.
type Cell struct {
	Text  string
	Width int
	// Lines is how many lines it has at most, 0 for all.
	Lines int
	Whole bool
	Right bool
	Mark  Mark
}

// Page collects the lines of an output. Everything that is put on it is escaped
// there, so that callers cannot forget to.
type Page struct {
	Buf  bytes.Buffer
	Opts Options
	// Width is the width of text, Table the width of tables, full the width of lists.
	Width, Table, full int
}

// NewPage makes an empty page.
func NewPage(opts Options) *Page {
	if opts.Width <= 0 {
		return &Page{Opts: opts, Width: Unlimited, Table: Unlimited, full: Unlimited}
	}
	full := max(opts.Width, minWidth)
	return &Page{Opts: opts, Width: min(full, textWidth), Table: min(full, tableWidth), full: full}
}

// Blank adds an empty line, unless there is one already.
func (p *Page) Blank() {
	if p.Buf.Len() > 0 && !bytes.HasSuffix(p.Buf.Bytes(), []byte("\n\n")) {
		p.end()
	}
}

func (p *Page) end() { p.Buf.WriteByte('\n') }

// Text adds a paragraph, wrapped at the width; its lines after the first are
// indented by two more.
func (p *Page) Text(indent int, m Mark, s string) {
	p.paragraph(p.Width-indent, indent, m, Escape(bound(s)))
}

// List adds a paragraph that enumerates: however many there are, all are shown.
func (p *Page) List(indent int, m Mark, items []string) {
	safe := make([]string, len(items))
	for i, item := range items {
		safe[i] = Escape(bound(item))
	}
	p.paragraph(p.full-indent, indent, m, strings.Join(safe, ", "))
}

// paragraph wraps text that is escaped already.
func (p *Page) paragraph(room, indent int, m Mark, s string) {
	for i, line := range wrap(s, room, room-2) {
		margin := indent
		if i > 0 {
			margin += 2
		}
		p.pad(margin)
		p.paint(m, line)
		p.end()
	}
}

// Row adds a line of columns, as wide as text and as many lines high as its
// highest cell.
func (p *Page) Row(indent int, cells ...Cell) { p.rowWithin(p.Width, indent, cells) }

// TableRow adds a line of columns, as wide as a table.
func (p *Page) TableRow(indent int, cells ...Cell) { p.rowWithin(p.Table, indent, cells) }

func (p *Page) rowWithin(width, indent int, cells []Cell) {
	columns := make([][]string, len(cells))
	height, left := 0, indent
	for i, c := range cells {
		room := c.Width
		switch {
		case width == Unlimited:
			room = Unlimited
		case room == 0:
			room = width - left
		}
		text := c.Text
		if !c.Whole {
			text = bound(text)
		}
		columns[i] = firstLines(wrap(Escape(text), room, room), c.Lines, room)
		height = max(height, len(columns[i]))
		left += c.Width + ColumnGap
	}
	for y := range height {
		at, column := 0, indent
		for i, c := range cells {
			if y < len(columns[i]) && columns[i][y] != "" {
				line := columns[i][y]
				start := column
				if c.Right {
					start += max(c.Width-ansi.StringWidth(line), 0)
				}
				if at > 0 {
					// A word that sticks out of its column pushes the next one.
					start = max(start, at+ColumnGap)
				}
				p.pad(start - at)
				p.paint(c.Mark, line)
				at = start + ansi.StringWidth(line)
			}
			column += c.Width + ColumnGap
		}
		p.end()
	}
}

func (p *Page) pad(n int) {
	for range n {
		p.Buf.WriteByte(' ')
	}
}

// paint writes text that is escaped already.
func (p *Page) paint(m Mark, s string) {
	if !p.Opts.Color || m == Plain {
		p.Buf.WriteString(s)
		return
	}
	var style ansi.Style
	switch m {
	case Plain:
	case Strong:
		style = style.Bold()
	case Faint:
		style = style.Faint()
	case Good:
		style = style.Bold().ForegroundColor(ansi.Green)
	case Bad:
		style = style.Bold().ForegroundColor(ansi.Red)
	case Unsure:
		style = style.Bold().ForegroundColor(ansi.Yellow)
	}
	p.Buf.WriteString(style.Styled(s))
}

// LinesOf returns how many lines a text takes at a width.
func LinesOf(s string, width int) int { return len(wrap(Escape(s), width, width)) }

// wrap breaks text at its blanks into lines of at most the given widths, one for
// the first line and one for all others. Words stay whole.
func wrap(s string, first, rest int) []string {
	room := first
	var lines []string
	var line strings.Builder
	used := 0
	for word := range strings.FieldsSeq(s) {
		width := ansi.StringWidth(word)
		if used > 0 && used+1+width > room {
			lines = append(lines, line.String())
			line.Reset()
			used, room = 0, rest
		}
		if used > 0 {
			line.WriteByte(' ')
			used++
		}
		line.WriteString(word)
		used += width
	}
	if used > 0 || len(lines) == 0 {
		lines = append(lines, line.String())
	}
	return lines
}

// firstLines returns at most so many lines; 0 means all. What is cut off begins with a word.
func firstLines(lines []string, most, room int) []string {
	if most == 0 || len(lines) <= most {
		return lines
	}
	last := lines[most-1]
	for ansi.StringWidth(last)+2 > room && strings.Contains(last, " ") {
		last = last[:strings.LastIndexByte(last, ' ')]
	}
	return append(slices.Clone(lines[:most-1]), last+" …")
}

// bound shortens a text that is too long to be read.
func bound(s string) string {
	if len(s) <= longest+slack {
		return s
	}
	runes := []rune(s)
	if len(runes) <= longest+slack {
		return s
	}
	end := longest
	for i := longest; i > longest-slack; i-- {
		if runes[i] == ' ' {
			end = i
			break
		}
	}
	return fmt.Sprintf("%s … and %s more characters", string(runes[:end]), english.Thousands(len(runes)-end))
}

// Widest returns the number of cells that the widest of the texts takes, at most limit.
func Widest(limit int, texts ...string) int {
	w := 0
	for _, s := range texts {
		w = max(w, ansi.StringWidth(Escape(s)))
	}
	return min(w, limit)
}

// Align gives the first columns of rows the width of their widest text, each at most its limit.
func Align(rows [][]Cell, limits ...int) {
	for column, limit := range limits {
		width := 0
		for _, row := range rows {
			width = max(width, Widest(limit, row[column].Text))
		}
		for _, row := range rows {
			row[column].Width = width
		}
	}
}

// Rows adds aligned lines of columns.
func (p *Page) Rows(indent int, rows [][]Cell, limits ...int) {
	Align(rows, limits...)
	for _, row := range rows {
		p.Row(indent, row...)
	}
}

// Heading starts a part of the page under a title.
func (p *Page) Heading(title string) {
	p.Blank()
	p.Text(0, Strong, title)
}

// Items lists texts, each behind a dash.
func (p *Page) Items(texts ...string) {
	for _, text := range texts {
		p.Row(2, Cell{Text: "-", Width: 1}, Cell{Text: text})
	}
}

// Assumptions lists what an answer takes for granted, if there is something.
func (p *Page) Assumptions(texts []string) {
	if len(texts) > 0 {
		p.Heading("Assumptions (not verified)")
		p.Items(texts...)
	}
}

// Qualified returns "namespace/name", or just the name.
func Qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// fieldWidth is the width of the column with the labels of the head.
const fieldWidth = len("Scheduler")

// Field adds labeled lines to the head, one for each text that is not empty.
// Only the first has the label.
func (p *Page) Field(label string, texts ...string) {
	for _, text := range texts {
		if text == "" {
			continue
		}
		p.Row(0, Cell{Text: label, Width: fieldWidth, Mark: Strong}, Cell{Text: text})
		label = ""
	}
}

// Verbatim adds lines to be copied: they are not wrapped.
func (p *Page) Verbatim(indent int, lines string) {
	for line := range strings.Lines(lines) {
		p.pad(indent)
		p.paint(Plain, Escape(strings.TrimSuffix(line, "\n")))
		p.end()
	}
}

// Some joins as many names as there is room for, at least one, and says how many
// more there are of the total. With -o wide it joins all that it is given.
func (p *Page) Some(names []string, total, room int) string {
	total = max(total, len(names))
	more := func(shown int) string {
		if shown == total {
			return ""
		}
		return fmt.Sprintf(" and %d more", total-shown)
	}
	all := strings.Join(names, ", ")
	if p.Opts.Wide || Widest(room+1, all+more(len(names))) <= room {
		return all + more(len(names))
	}
	said, shown := "", 0
	for _, name := range names {
		next := name
		if shown > 0 {
			next = said + ", " + name
		}
		if shown > 0 && Widest(room+1, next+more(shown+1)) > room {
			break
		}
		said, shown = next, shown+1
	}
	return said + more(shown)
}

// Print writes the page.
func (p *Page) Print(w io.Writer) error {
	if _, err := w.Write(p.Buf.Bytes()); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// Lines counts the lines of a page.
func (p *Page) Lines() int { return bytes.Count(p.Buf.Bytes(), []byte("\n")) }

// Sign repeats a mark for terminals without colors.
func (m Mark) Sign() string {
	switch m {
	case Good:
		return "✓"
	case Bad:
		return "✗"
	case Plain, Strong, Faint, Unsure:
	}
	return "?"
}

const (
	// ShownGroups is how many groups of nodes are listed by default.
	ShownGroups = 10
	// NamesWidth is how many cells the column of names takes at most from the column of
	// messages, and namesRoom the width that it needs to stand beside them.
	NamesWidth = 44
	namesRoom  = 24
	// whereWidth limits the width that the column of places takes from the messages,
	// messageWidth is the width that it must leave.
	whereWidth   = 44
	messageWidth = 36
)

// NameColumn writes the names of each group to stand beside the messages. It
// returns the width for these too, or false if there is no room for the names.
func (p *Page) NameColumn(margin int, groups []api.NodeGroup, messages []string) (names []string, message int, beside bool) {
	names = make([]string, len(groups))
	if p.Table == Unlimited {
		for i := range groups {
			names[i] = p.Some(groups[i].Names, groups[i].Count, namesLongest)
		}
		return names, Widest(AlignWidth, messages...), true
	}
	room := p.Table - margin - ColumnGap
	message = Widest(room, messages...)
	width := max(room-message, min(NamesWidth, max(room/3, namesRoom), room-messageWidth))
	if width < namesRoom {
		return nil, 0, false
	}
	for i := range groups {
		names[i] = p.Some(groups[i].Names, groups[i].Count, width)
	}
	if Widest(room, names...) > width {
		return nil, 0, false
	}
	return names, min(message, room-Widest(room, names...)), true
}

// MessageColumn divides the room beside the labels among messages and the places that
// they are about. It returns the width for the messages, or false if the places
// do not fit beside them.
func (p *Page) MessageColumn(margin int, messages, places []string) (message int, beside bool) {
	if p.Table == Unlimited {
		return Widest(AlignWidth, messages...), Widest(1, places...) > 0
	}
	room := p.Table - margin
	message, place := Widest(room, messages...), Widest(room, places...)
	if message+ColumnGap+place <= room {
		return message, place > 0
	}
	if beside := place <= whereWidth && room-ColumnGap-place >= messageWidth; beside {
		return room - ColumnGap - place, place > 0
	}
	return room, false
}
