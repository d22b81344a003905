// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// index returns the row of a section that is selected, negative if none is.
func index[T any](p *Page, section string, rows []T, id func(*T) string) int {
	return slices.IndexFunc(rows, func(row T) bool { return p.selected == section+" "+id(&row) })
}

// about says all that is known of the selected row: a title, and paragraphs.
func (p *Page) about() (title string, text []string) {
	m := &p.model
	if i := index(p, "capacity", m.Classes.Rows, func(c *Class) string { return c.Name }); i >= 0 {
		return "Class " + m.Classes.Rows[i].Name, p.aboutClass(&m.Classes.Rows[i])
	}
	if i := index(p, "stuck", m.Stuck.Rows, func(s *Stuck) string { return s.Key }); i >= 0 {
		return m.Stuck.Rows[i].Name, aboutStuck(&m.Stuck.Rows[i])
	}
	if i := index(p, "teams", m.Teams.Rows, func(t *Team) string { return t.Namespace }); i >= 0 {
		return "Namespace " + m.Teams.Rows[i].Namespace, p.aboutTeam(&m.Teams.Rows[i])
	}
	if i := index(p, "hands", m.Hands.Rows, func(h *Hand) string { return h.Name + " " + h.Text }); i >= 0 {
		return m.Hands.Rows[i].Name, []string{m.Hands.Rows[i].Text}
	}
	if i := index(p, "events", m.Events.Rows, func(e *Event) string { return e.Key }); i >= 0 {
		return "Event", []string{m.Events.Rows[i].At.Format(time.DateTime) + "  " + m.Events.Rows[i].Text}
	}
	return "", nil
}

// remark describes the selected row, on a limited number of lines. The last one is cut.
func (p *Page) remark(most int) []string {
	_, text := p.about()
	if len(text) == 0 || most < 1 {
		return nil
	}
	said := render.Escape(text[0])
	lines := strings.Split(ansi.Wrap(said, max(p.width, 1), ""), "\n")
	if len(lines) > most {
		rest := strings.Join(lines[most-1:], " ")
		lines = append(lines[:most-1], ansi.Truncate(rest, p.width, p.look.Glyphs.More))
	}
	for i := range lines {
		lines[i] = p.look.Say(widget.Faint, lines[i])
	}
	return lines
}

// pane describes the selected row or, without one, the first stuck pod.
func (p *Page) pane(width int) box {
	title, text := p.about()
	var drawn []string
	rows := p.model.Stuck.Rows
	if i := index(p, "stuck", rows, func(s *Stuck) string { return s.Key }); i >= 0 && rows[i].Lines != nil {
		text, drawn = append(aboutWait(&rows[i]), ""), rows[i].Lines(max(width-1, 1))
	}
	var lines []string
	for _, paragraph := range text {
		for _, line := range strings.Split(ansi.Wrap(render.Escape(paragraph), max(width-1, 1), ""), "\n") {
			lines = append(lines, " "+line)
		}
	}
	for _, line := range drawn {
		lines = append(lines, ansi.Truncate(" "+line, width, p.look.Glyphs.More))
	}
	return box{
		name: "pane", title: render.Escape(title), count: len(lines), none: "move the cursor to see more of a row here",
		rows: func(int) (string, []string) { return "", lines },
	}
}

func (p *Page) aboutClass(c *Class) []string {
	text := []string{fmt.Sprintf("%s of %d used, %s free, %s available; %d pods wait", c.Used, c.Counts.Total+c.Counts.Gone, c.Free, c.Available, c.Waiting)}
	if c.Note != "" {
		text = append(text, c.Note)
	}
	for _, part := range []struct {
		n    int
		what string
	}{
		{c.Counts.Allocated, "allocated"},
		{c.Counts.Shared, "shared"},
		{c.Counts.Blocked, "blocked by partitions of the same hardware"},
		{c.Counts.TaintedInUse, "in use although tainted"},
		{c.Counts.Gone, "gone, of claims that have them"},
		{c.Counts.Tainted, "tainted"},
		{c.Counts.Unusable, "not usable"},
		{c.Counts.Free, "free"},
	} {
		if part.n > 0 {
			text = append(text, fmt.Sprintf("%5d  %s", part.n, part.what))
		}
	}
	for i := range p.model.Teams.Rows {
		for _, use := range p.model.Teams.Rows[i].Classes {
			if use.Class == c.Name && use.Used > 0 {
				text = append(text, fmt.Sprintf("%5d  by namespace %s", use.Used, p.model.Teams.Rows[i].Namespace))
			}
		}
	}
	return text
}

func aboutStuck(s *Stuck) []string {
	text := []string{s.Reason}
	if s.Reason == "" {
		text = []string{"not explained yet"}
	}
	text = append(append(text, ""), aboutWait(s)...)
	if s.Outlook != "" {
		text = append(text, "Outlook    "+s.Outlook)
	}
	if len(s.Remedies) > 0 {
		text = append(append(text, ""), s.Remedies...)
	}
	return text
}

// aboutWait returns why the pod of a row waits, in a word, how long, and for what.
func aboutWait(s *Stuck) (text []string) {
	if s.Code != "" {
		text = append(text, "Reason     "+s.Code)
	}
	if s.Wait >= 0 {
		text = append(text, "Waits      "+duration.HumanDuration(s.Wait))
	}
	if s.Asks != "" {
		text = append(text, "Asks       "+s.Asks)
	}
	return text
}

func (p *Page) aboutTeam(t *Team) []string {
	text := []string{fmt.Sprintf("%d pods wait, %d devices are idle", t.Waiting, t.Idle), ""}
	for _, use := range t.Classes {
		line := fmt.Sprintf("%5d  of %s, %.0f %% of what is used of it", use.Used, use.Class, 100*use.Share)
		if use.Waiting > 0 {
			line += fmt.Sprintf(", %d wait", use.Waiting)
		}
		if use.Idle > 0 {
			line += fmt.Sprintf(", %d idle", use.Idle)
		}
		text = append(text, line)
	}
	return text
}

// Plain returns the whole page as text, without frames and a cursor: as wide as width or,
// for 0, as wide as it needs.
func Plain(l *widget.Look, m Model, width int) []string {
	p := New(l)
	p.plain, p.model = true, m
	p.width, p.height = width, 1<<20
	if width <= 0 {
		p.width = 1 << 20
	}
	lines := strings.Split(p.View(), "\n")
	if width > 0 {
		for i := range lines {
			lines[i] = ansi.Truncate(lines[i], width, l.Glyphs.More)
		}
	}
	return lines
}
