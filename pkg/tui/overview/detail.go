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

// remark describes the selected row, on a limited number of lines. What is too long is cut: the
// description rather than the step after it, since the row has most of the description.
func (p *Page) remark(l *screen, most int) []string {
	b, at := l.selected(p.selected)
	if at < 0 || b.about == nil || most < 1 {
		return nil
	}
	_, text := b.about(at)
	var paragraphs [2][]string
	for i, paragraph := range text[:min(len(text), len(paragraphs))] {
		if paragraph != "" {
			paragraphs[i] = strings.Split(ansi.Wrap(render.Escape(paragraph), max(p.width, 1), ""), "\n")
		}
	}
	description, step := paragraphs[0], paragraphs[1]
	if b.name == "causes" && len(step) > 0 && p.showsAll(b, at) {
		description = nil
	}
	least := 1
	if most == 1 && len(step) > 0 {
		least = 0
	}
	described := p.cut(description, max(most-len(step), least))
	step = p.cut(step, most-len(described))
	for i := range described {
		described[i] = p.look.Say(widget.Faint, described[i])
	}
	for i := range step {
		step[i] = p.look.Actor(step[i])
	}
	return slices.Concat(described, step)
}

// cut cuts the last of so many lines if there are more.
func (p *Page) cut(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	if most < 1 {
		return nil
	}
	return append(lines[:most-1:most-1], ansi.Truncate(strings.Join(lines[most-1:], " "), p.width, p.look.Glyphs.More))
}

// details describe the row of a box, or say that none is selected.
func (p *Page) details(b *box, at, width int) box {
	title, lines := "", []string{}
	if at >= 0 && b.about != nil {
		var text []string
		title, text = b.about(at)
		if b.lines != nil && b.lines(at) != nil {
			text = nil
			for _, line := range b.lines(at)(max(width-1, 1)) {
				for _, part := range p.look.Whole(line, width-1) {
					lines = append(lines, " "+part)
				}
			}
		}
		for _, paragraph := range text {
			for _, line := range strings.Split(ansi.Wrap(render.Escape(paragraph), max(width-1, 1), ""), "\n") {
				lines = append(lines, " "+line)
			}
		}
	}
	return box{
		name: "pane", title: render.Escape(title), count: len(lines), none: "move the cursor to see more of a row here",
		rows: func(int) (string, []string) { return "", lines },
	}
}

func (d *drawing) aboutClass(c *Class) []string {
	text := []string{fmt.Sprintf("%s of %s used, %s free, %s placeable; %s %s", c.Used, english.Thousands(c.Counts.Total+c.Counts.Gone), c.Free, c.Placeable, english.Count(c.Waiting, "pod"), english.Plural(c.Waiting, "waits", "wait"))}
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
	for i := range d.model.Teams.Rows {
		for _, use := range d.model.Teams.Rows[i].Classes {
			if use.Class == c.Name && use.Used > 0 {
				text = append(text, fmt.Sprintf("%5d  by namespace %s", use.Used, d.model.Teams.Rows[i].Namespace))
			}
		}
	}
	return text
}

func aboutStuck(s *Stuck) []string {
	return []string{cmp.Or(s.Summary, "not explained yet"), s.Step}
}

func (d *drawing) aboutTeam(t *Team) []string {
	text := []string{fmt.Sprintf("%s %s, %s %s idle", english.Count(t.Waiting, "pod"), english.Plural(t.Waiting, "waits", "wait"), english.Count(t.Idle, "device"), english.Plural(t.Idle, "is", "are")), ""}
	for _, use := range t.Classes {
		line := fmt.Sprintf("%5d  of %s, %.0f %% of what is used of it", use.Used, use.Class, 100*use.Share)
		if use.Waiting > 0 {
			line += fmt.Sprintf(", %s %s", english.Thousands(use.Waiting), english.Plural(use.Waiting, "waits", "wait"))
		}
		if use.Idle > 0 {
			line += ", " + english.Thousands(use.Idle) + " idle"
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
