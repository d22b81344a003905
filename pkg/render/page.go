// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Options says how to draw.
type Options struct {
	// Width is how many terminal cells a line may take; 0 means as many as it
	// needs, so that every fact is one line. A word that is longer than the space
	// for it is never cut and sticks out.
	Width int
	// Color allows colours and bold text. They only mark what the text says too.
	Color bool
	// Wide shows what is otherwise sampled or left out: each device, each node,
	// all evidence.
	Wide bool
	// Commands shows the commands of remedies, for a shell.
	Commands bool
}

const (
	minWidth = 20
	// textWidth is the most that text takes on a wider terminal, and tableWidth
	// what a table takes: longer lines are hard to read, and columns far apart hard
	// to follow.
	textWidth  = 120
	tableWidth = 160
	// unlimited is the width of lines that are not wrapped.
	unlimited = 1 << 30
	// alignWidth is how far apart the columns of lines without a limit may stand
	// to be in line with each other.
	alignWidth = 100
	// longest is how many characters of a text are shown. It is more than any
	// message of a cluster has: the API server accepts 32 KiB in a condition. A
	// text that exceeds it by less than slack is shown as it is, and slack is how
	// much shorter it may become to end with a whole word.
	longest = 32 << 10
	slack   = 253
	// namesLongest is how many cells a sample of names takes where lines are not
	// wrapped.
	namesLongest = 1000
	// columnGap is the number of blanks between two columns.
	columnGap = 2
)

// mark is what a piece of text is highlighted as.
type mark int

const (
	plain mark = iota
	strong
	faint
	good
	bad
	unsure
)

// cell is one column of a line. Its text is wrapped into width; 0 means all the
// space that is left. A whole one is never shortened, however long it is.
type cell struct {
	text  string
	width int
	whole bool
	right bool
	mark  mark
}

// page collects the lines of an output. Everything that is put on it is escaped
// there, so that callers cannot forget to.
type page struct {
	buf  bytes.Buffer
	opts Options
	// width is that of text, table that of tables, full that of lists.
	width, table, full int
	// oneNode is set if all devices are those of one node, so that their names
	// tell more than its name.
	oneNode bool
}

func newPage(opts Options) *page {
	if opts.Width <= 0 {
		return &page{opts: opts, width: unlimited, table: unlimited, full: unlimited}
	}
	full := max(opts.Width, minWidth)
	return &page{opts: opts, width: min(full, textWidth), table: min(full, tableWidth), full: full}
}

// blank adds an empty line, unless there is one already.
func (p *page) blank() {
	if p.buf.Len() > 0 && !bytes.HasSuffix(p.buf.Bytes(), []byte("\n\n")) {
		p.end()
	}
}

func (p *page) end() { p.buf.WriteByte('\n') }

// text adds a paragraph, wrapped at the width; its lines after the first are
// indented by two more.
func (p *page) text(indent int, m mark, s string) {
	p.paragraph(p.width-indent, indent, m, Escape(bound(s)))
}

// list adds a paragraph that enumerates: however many there are, all are shown.
func (p *page) list(indent int, m mark, items []string) {
	safe := make([]string, len(items))
	for i, item := range items {
		safe[i] = Escape(bound(item))
	}
	p.paragraph(p.full-indent, indent, m, strings.Join(safe, ", "))
}

// paragraph wraps text that is escaped already.
func (p *page) paragraph(room, indent int, m mark, s string) {
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

// row adds a line of columns, as wide as text and as many lines high as its
// highest cell.
func (p *page) row(indent int, cells ...cell) { p.rowWithin(p.width, indent, cells) }

// tableRow adds a line of columns, as wide as a table.
func (p *page) tableRow(indent int, cells ...cell) { p.rowWithin(p.table, indent, cells) }

func (p *page) rowWithin(width, indent int, cells []cell) {
	columns := make([][]string, len(cells))
	height, left := 0, indent
	for i, c := range cells {
		room := c.width
		switch {
		case width == unlimited:
			room = unlimited
		case room == 0:
			room = width - left
		}
		text := c.text
		if !c.whole {
			text = bound(text)
		}
		columns[i] = wrap(Escape(text), room, room)
		height = max(height, len(columns[i]))
		left += c.width + columnGap
	}
	for y := range height {
		at, column := 0, indent
		for i, c := range cells {
			if y < len(columns[i]) && columns[i][y] != "" {
				line := columns[i][y]
				start := column
				if c.right {
					start += max(c.width-ansi.StringWidth(line), 0)
				}
				if at > 0 {
					// A word that sticks out of its column pushes the next one.
					start = max(start, at+columnGap)
				}
				p.pad(start - at)
				p.paint(c.mark, line)
				at = start + ansi.StringWidth(line)
			}
			column += c.width + columnGap
		}
		p.end()
	}
}

func (p *page) pad(n int) {
	for range n {
		p.buf.WriteByte(' ')
	}
}

// paint writes text that is escaped already.
func (p *page) paint(m mark, s string) {
	if !p.opts.Color || m == plain {
		p.buf.WriteString(s)
		return
	}
	var style ansi.Style
	switch m {
	case plain:
	case strong:
		style = style.Bold()
	case faint:
		style = style.Faint()
	case good:
		style = style.Bold().ForegroundColor(ansi.Green)
	case bad:
		style = style.Bold().ForegroundColor(ansi.Red)
	case unsure:
		style = style.Bold().ForegroundColor(ansi.Yellow)
	}
	p.buf.WriteString(style.Styled(s))
}

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

// widest is the number of cells that the widest of the texts takes, at most
// limit.
func widest(limit int, texts ...string) int {
	w := 0
	for _, s := range texts {
		w = max(w, ansi.StringWidth(Escape(s)))
	}
	return min(w, limit)
}
