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

func (p *Page) causes() box {
	rows := p.model.Causes.Rows
	present := 0
	for i := range rows {
		if rows[i].Number != "" {
			present++
		}
	}
	return box{
		name: "causes", title: counted("Causes", present), remarks: append([]string{p.look.Say(widget.Warning, p.model.Changes)}, p.model.Severities...), count: len(rows), none: p.model.Causes.None, all: p.model.Causes.All,
		id:   func(i int) string { return rows[i].Key },
		open: func(i int) any { return rows[i].Open },
		item: func(i int) any { return rows[i].Item },
		about: func(i int) (string, []string) {
			return "Cause " + rows[i].Number, []string{rows[i].Message, rows[i].Step}
		},
		lines: func(i int) func(int) []string { return rows[i].Lines },
		rows:  p.causeRows,
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

func (p *Page) causeRows(width int) (titles string, lines []string) {
	rows := p.model.Causes.Rows
	last := widest(rows, func(c *Cause) string { return c.Number }, 1, 4)
	number := func(c *Cause) string {
		return c.Mark + cmp.Or(c.Sign, " ") + strings.Repeat(" ", max(last+1-len(c.Number), 0)) + c.Number
	}
	columns := []column{
		{"", widest(rows, number, 2, 7), false},
		{"since", widest(rows, func(c *Cause) string { return c.Age }, 5, 6), false},
		{"", 0, true},
		{"pods", 4, false},
		{"who", widest(rows, func(c *Cause) string { return c.Who }, 3, 5), true},
		{"then", widest(rows, func(c *Cause) string { return c.Then }, 4, width/4), true},
	}
	if p.plain {
		return "", p.plainCauses(width)
	}
	// The causes matter more than what changes then.
	longest := widest(rows, func(c *Cause) string { return render.Escape(c.Message) }, 0, width)
	if width < withThen || p.pane > 0 || totalOf(columns)+longest > width {
		columns = columns[:5]
	}
	if width < withPods {
		columns[3].width = 0
	}
	return p.table(width, columns, 2, len(rows), func(i int) []cellText {
		c := &rows[i]
		return []cellText{
			{number(c), c.Tone},
			{c.Age, widget.Plain},
			{c.Message, widget.Plain},
			{someOrNone(c.Pods), widget.Plain},
			{c.Who, widget.Plain},
			{c.Then, widget.Faint},
		}
	})
}

// plainCauses returns causes as a status has them: nothing of them is cut.
func (p *Page) plainCauses(width int) []string {
	const margin = 5
	var lines []string
	for i := range p.model.Causes.Rows {
		c := &p.model.Causes.Rows[i]
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

func (p *Page) stuck() box {
	s := &p.model.Stuck
	var remarks []string
	if len(p.model.Waiting) > 0 && p.width >= pair && !p.plain {
		remarks = []string{p.look.Say(widget.Faint, "last hour ") + p.look.Say(widget.Warning, p.look.History(p.model.Waiting, 20))}
	}
	return box{
		name: "stuck", title: counted("Waiting", p.model.Pods), remarks: remarks, count: len(s.Rows), none: s.None, all: s.All,
		id:    func(i int) string { return s.Rows[i].Key },
		open:  func(i int) any { return s.Rows[i].Open },
		item:  func(i int) any { return s.Rows[i].Item },
		about: func(i int) (string, []string) { return s.Rows[i].Name, aboutStuck(&s.Rows[i]) },
		lines: func(i int) func(int) []string { return s.Rows[i].Lines },
		rows:  p.stuckRows,
		rest: func(shown int) string {
			pods := 0
			for i := range s.Rows[shown:] {
				pods += s.Rows[shown+i].Count
			}
			if pods == len(s.Rows)-shown {
				return ""
			}
			return " rows, " + english.Count(pods, "pod")
		},
	}
}

// leastAnswer is the room that an answer needs before a line says what pods ask for.
const leastAnswer = 30

func (p *Page) stuckRows(width int) (titles string, lines []string) {
	rows := p.model.Stuck.Rows
	answer := func(s *Stuck) string { return cmp.Or(s.Answer, p.look.Glyphs.More) }
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
	if width < withThen || p.plain || !slices.ContainsFunc(rows, func(s Stuck) bool { return s.Reason != "" }) {
		columns, wide = columns[:4], 3
	}
	if columns[wide].width = 0; width-totalOf(columns) < leastAnswer && !p.plain {
		asks = func(s *Stuck) string {
			if s.Count < 2 {
				return ""
			}
			return english.Count(s.Count, "pod")
		}
		columns[2].width = widest(rows, asks, 0, 10)
	}
	return p.table(width, columns, wide, len(rows), func(i int) []cellText {
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
func (p *Page) table(width int, columns []column, wide, count int, row func(i int) []cellText) (titles string, lines []string) {
	texts, longest := make([][]cellText, count), leastName
	for i := range texts {
		texts[i] = row(i)
		for j := range texts[i] {
			texts[i][j].text = render.Escape(texts[i][j].text)
		}
		longest = max(longest, ansi.StringWidth(texts[i][wide].text))
	}
	if columns[wide].width = max(width-totalOf(columns), leastName); p.plain {
		columns[wide].width = longest
	}
	for i := range texts {
		var cells []string
		for j, c := range columns {
			if c.width > 0 {
				cells = append(cells, p.look.Say(texts[i][j].tone, p.cell(c, texts[i][j].text)))
			}
		}
		lines = append(lines, " "+strings.Join(cells, gap))
	}
	return p.head(columns[wide:]), lines
}
