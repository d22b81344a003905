// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

func (d *drawing) causes() box {
	rows := d.model.Causes.Rows
	present := 0
	for i := range rows {
		if rows[i].Number != "" {
			present++
		}
	}
	return box{
		name: "causes", title: counted("Causes", present), remarks: append([]string{d.look.Say(widget.Warning, d.model.Changes)}, d.model.Severities...), count: len(rows), none: d.model.Causes.None, all: d.model.Causes.All,
		id:   func(i int) string { return rows[i].Key },
		open: func(i int) any { return rows[i].Open },
		item: func(i int) any { return rows[i].Item },
		about: func(i int) (string, []string) {
			return "Cause " + rows[i].Number, []string{rows[i].Message, rows[i].Step}
		},
		lines: func(i int) func(int) []string { return rows[i].Lines },
		rows:  func(width int) (string, []string) { return d.causeRows(width, nil) },
		rest: func(shown int) string {
			// Those that ended come last.
			ended := len(rows) - max(shown, present)
			switch more := len(rows) - shown - ended; {
			case ended == 0:
				return english.Thousands(more) + " more"
			case more == 0:
				return english.Thousands(ended) + " ended"
			default:
				return english.Thousands(more) + " more, " + english.Thousands(ended) + " ended"
			}
		},
	}
}

// counted returns the title of a section with so many rows.
func counted(title string, n int) string {
	if n == 0 {
		return title
	}
	return title + " " + english.Thousands(n)
}

// withPods is the width from which on a line of a cause counts pods.
const withPods = 40

// withThen is the width from which on a line of a cause says what changes when it is mended, and a
// line of pods gives a reason, if there is room.
const withThen = 100

// causeNumber returns the signs and the number of a cause.
func (d *drawing) causeNumber(c *Cause) string {
	last := widest(d.model.Causes.Rows, func(c *Cause) string { return c.Number }, 1, 4)
	return c.Mark + cmp.Or(c.Sign, " ") + strings.Repeat(" ", max(last+1-len(c.Number), 0)) + c.Number
}

// messageColumn is the place of the message among the columns of causes.
const messageColumn = 2

func (d *drawing) causeColumns(width int) []column {
	rows := d.model.Causes.Rows
	columns := []column{
		{"", widest(rows, d.causeNumber, 2, 7), false},
		{"since", widest(rows, func(c *Cause) string { return c.Age }, 5, 6), false},
		{"", 0, true},
		{"pods", 4, false},
		{"who", widest(rows, func(c *Cause) string { return c.Who }, 3, 5), true},
		{"then", widest(rows, func(c *Cause) string { return c.Then }, 4, width/4), true},
	}
	// The causes matter more than what changes then.
	longest := widest(rows, func(c *Cause) string { return render.Escape(c.Message) }, 0, width)
	if width < withThen || d.pane > 0 || totalOf(columns)+longest > width {
		columns = columns[:5]
	}
	if width < withPods {
		columns[3].width = 0
	}
	return columns
}

// causeRows draws causes: of those in whole, the first line of the message.
func (d *drawing) causeRows(width int, whole map[int][]string) (titles string, lines []string) {
	rows := d.model.Causes.Rows
	if d.plain {
		return "", d.plainCauses(width)
	}
	return d.table(width, d.causeColumns(width), messageColumn, len(rows), func(i int) []cellText {
		c := &rows[i]
		message := c.Message
		if lines := whole[i]; lines != nil {
			message = strings.TrimSpace(lines[0])
		}
		return []cellText{
			{d.causeNumber(c), c.Tone},
			{c.Age, widget.Plain},
			{message, widget.Plain},
			{someOrNone(c.Pods), widget.Plain},
			{c.Who, widget.Plain},
			{c.Then, widget.Faint},
		}
	})
}

// messageRoom returns the width of the messages of causes.
func (d *drawing) messageRoom(width int) int {
	return max(width-totalOf(d.causeColumns(width)), leastName)
}

// showsAll reports whether a row of the causes has its whole message.
func (d *drawing) showsAll(b *box, at int) bool {
	message := render.Escape(d.model.Causes.Rows[at].Message)
	return b.under[at] != nil || ansi.StringWidth(message) <= d.messageRoom(b.width)
}

// unfold shows the ends of causes that are cut, as far as groups leave lines for them.
func (d *drawing) unfold(groups []group, height int) {
	for i := range groups {
		height -= groups[i].height + 1
	}
	at := slices.IndexFunc(groups, func(g group) bool { return g.boxes[0].name == "causes" })
	if at < 0 || height <= 0 {
		return
	}
	b := &groups[at].boxes[0]
	room := d.messageRoom(b.width)
	columns := d.causeColumns(b.width)
	margin := strings.Repeat(" ", totalOf(columns[:messageColumn]))
	b.under = map[int][]string{}
	for i := range d.model.Causes.Rows {
		lines := strings.Split(ansi.Wrap(render.Escape(d.model.Causes.Rows[i].Message), room, ""), "\n")
		more := len(lines) - 1
		if more == 0 || more > height {
			continue
		}
		for j := range lines {
			lines[j] = margin + lines[j]
		}
		b.under[i] = lines
		height, b.height, groups[at].height = height-more, b.height+more, groups[at].height+more
	}
	b.rows = func(width int) (string, []string) { return d.causeRows(width, b.under) }
}

// plainCauses returns causes as a status has them: nothing of them is cut.
func (d *drawing) plainCauses(width int) []string {
	const margin = 5
	var lines []string
	for i := range d.model.Causes.Rows {
		c := &d.model.Causes.Rows[i]
		number := fmt.Sprintf("%*s  ", margin-len(gap), c.Number)
		for _, text := range []string{c.Message, c.Affected, c.Step} {
			if text == "" {
				continue
			}
			for _, line := range strings.Split(ansi.Wrap(render.Escape(text), max(width-margin, 1), ""), "\n") {
				lines = append(lines, number+line)
				number = strings.Repeat(" ", margin)
			}
		}
	}
	return lines
}

func (d *drawing) stuck() box {
	s := &d.model.Stuck
	var remarks []string
	if len(d.model.Waiting) > 0 && d.width >= pair && !d.plain {
		remarks = []string{d.look.Say(widget.Faint, "last hour ") + d.look.Say(widget.Warning, d.look.History(d.model.Waiting, 20))}
	}
	return box{
		name: "stuck", title: counted("Waiting", d.model.Pods), remarks: remarks, count: len(s.Rows), none: s.None, all: s.All,
		id:    func(i int) string { return s.Rows[i].Key },
		open:  func(i int) any { return s.Rows[i].Open },
		item:  func(i int) any { return s.Rows[i].Item },
		about: func(i int) (string, []string) { return s.Rows[i].Name, aboutStuck(&s.Rows[i]) },
		lines: func(i int) func(int) []string { return s.Rows[i].Lines },
		rows:  d.stuckRows,
		rest: func(shown int) string {
			pods := 0
			for i := range s.Rows[shown:] {
				pods += s.Rows[shown+i].Count
			}
			text := english.Thousands(len(s.Rows)-shown) + " more"
			if pods != len(s.Rows)-shown {
				text += " rows, " + english.Count(pods, "pod")
			}
			return text
		},
	}
}

// leastAnswer is the room that an answer needs before a line says what pods ask for.
const leastAnswer = 30

func (d *drawing) stuckRows(width int) (titles string, lines []string) {
	rows := d.model.Stuck.Rows
	answer := func(s *Stuck) string { return cmp.Or(s.Answer, d.look.Glyphs.More) }
	asks := func(s *Stuck) string {
		switch asks := render.Escape(s.Asks); {
		case s.Count < 2:
			return asks
		case asks == "":
			return english.Count(s.Count, "pod")
		default:
			return english.Thousands(s.Count) + " × " + asks
		}
	}
	columns := []column{
		{"wait", 5, false},
		{"", widest(rows, func(s *Stuck) string { return render.Escape(s.Name) }, leastName, max(maxName, width/4)), true},
		{"asks", widest(rows, asks, 4, 20), true},
		{"answer", widest(rows, answer, 6, width/3), true},
		{"reason", 0, true},
	}
	wide := 4
	if width < withThen || d.plain || !slices.ContainsFunc(rows, func(s Stuck) bool { return s.Reason != "" }) {
		columns, wide = columns[:4], 3
	}
	if columns[wide].width = 0; width-totalOf(columns) < leastAnswer && !d.plain {
		asks = func(s *Stuck) string {
			if s.Count < 2 {
				return ""
			}
			return english.Count(s.Count, "pod")
		}
		columns[2].width = widest(rows, asks, 0, 10)
	}
	return d.table(width, columns, wide, len(rows), func(i int) []cellText {
		s := &rows[i]
		return []cellText{{s.Wait, s.Tone}, {s.Name, widget.Plain}, {asks(s), widget.Plain}, {answer(s), widget.Plain}, {s.Reason, widget.Faint}}
	})
}

// cellText is the text of a cell with its color.
type cellText struct {
	text string
	tone widget.Tone
}

// totalOf returns the width of columns with a gap after each.
func totalOf(columns []column) int {
	total := 1
	for _, c := range columns {
		if c.width > 0 {
			total += c.width + len(gap)
		}
	}
	return total
}

// table draws rows in columns, with the titles from the column on that takes the remaining room.
// Printed lines are as long as their texts.
func (d *drawing) table(width int, columns []column, wide, count int, row func(i int) []cellText) (titles string, lines []string) {
	texts, longest := make([][]cellText, count), leastName
	for i := range texts {
		texts[i] = row(i)
		for j := range texts[i] {
			texts[i][j].text = render.Escape(texts[i][j].text)
		}
		longest = max(longest, ansi.StringWidth(texts[i][wide].text))
	}
	if columns[wide].width = max(width-totalOf(columns), leastName); d.plain {
		columns[wide].width = longest
	}
	for i := range texts {
		var cells []string
		for j, c := range columns {
			if c.width > 0 {
				cells = append(cells, d.look.Say(texts[i][j].tone, d.cell(c, texts[i][j].text)))
			}
		}
		lines = append(lines, " "+strings.Join(cells, gap))
	}
	return d.head(columns[wide:]), lines
}
