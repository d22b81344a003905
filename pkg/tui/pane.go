// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/picture"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/table"
)

// pane stands beside a list, or under it, and has what there is to know about the selected
// row. Its text is written in the background, for one row at a time.
type pane struct {
	// width is that of the text; without one there is no pane. height is how many lines it
	// has under the list, 0 for one beside it.
	width, height int
	// of is the row that the text is about, from the picture that it was written of,
	// version that of the reasons.
	of      string
	from    *picture.Picture
	version int
	lines   []string
	writing bool
	// at is when the text was written, took how long that took.
	at   time.Time
	took time.Duration
}

// paneMsg has the text about a row.
type paneMsg struct {
	list *listScreen
	pane pane
}

const (
	// paneFrom is the width from which on lists have a pane beside them. On narrower
	// screens it is under them, if these have at least paneUnder lines.
	paneFrom, paneUnder = 110, 26
	// paneTimes is how much longer than it took to write it a text stays as it is
	// while the cluster changes.
	paneTimes = 20
)

// paneSize is what a pane gets of a screen: two fifths, without the line before it.
func paneSize(width, height int) (int, int) {
	switch {
	case width >= paneFrom:
		return width * 2 / 5, 0
	case height >= paneUnder:
		return width, height * 2 / 5
	default:
		return 0, 0
	}
}

// describe writes about the row that is selected, unless that is there already.
func (m *Model) describe() tea.Cmd {
	s, ok := m.top().(*listScreen)
	if !ok || s.pane.width == 0 || s.pane.writing || m.picture == nil || s.from == nil {
		return nil
	}
	row, selected := s.table.SelectedRow()
	if !selected {
		return nil
	}
	next := pane{width: s.pane.width, height: s.pane.height, of: s.table.SelectedKey(), from: s.from, version: s.shown.worked}
	if s.pane.of == next.of && len(s.pane.lines) > 0 {
		same := s.pane.from == next.from && s.pane.version == next.version
		if same || m.now().Sub(s.pane.at) < paneTimes*s.pane.took {
			return nil
		}
	}
	s.pane.writing = true
	content, _ := s.table.Shown()
	ctx, style, now := m.ctx, &m.look, m.now()
	return func() tea.Msg {
		start := time.Now()
		next.lines = describeRow(ctx, next.from, style, content, row, next.width)
		next.at, next.took = now, time.Since(start)
		return paneMsg{s, next}
	}
}

// described takes the text, unless there is another place for it by now.
func (s *listScreen) described(msg paneMsg) {
	if msg.pane.width == s.pane.width && msg.pane.height == s.pane.height {
		s.pane = msg.pane
	}
	s.pane.writing = false
}

// describeRow has all columns of a row, and what is behind it.
func describeRow(ctx context.Context, p *picture.Picture, l *look.Look, c table.Content, row, width int) []string {
	var lines []string
	if pending, ok := c.(*pendingContent); ok {
		for _, line := range pending.reasonLines(l, row, width) {
			lines = append(lines, ansi.Truncate(line, width, l.Glyphs.More))
		}
		return lines
	}
	more, known := behind(ctx, p, l, c.Item(row), width)
	more = l.Recolor(more)
	if !known {
		lines = append(columnLines(l, c, row, width), "")
	}
	for line := range strings.SplitSeq(strings.TrimRight(more, "\n"), "\n") {
		lines = append(lines, ansi.Truncate(line, width, l.Glyphs.More))
	}
	return lines
}

// columnLines are the columns of a row with values, one below the other.
func columnLines(l *look.Look, c table.Content, row, width int) []string {
	titles := c.Columns()
	widest := 0
	for _, title := range titles {
		widest = max(widest, ansi.StringWidth(title))
	}
	var lines []string
	for column, title := range titles {
		text := c.Cell(row, column)
		if text == "" || text == "-" {
			continue
		}
		for i, line := range strings.Split(ansi.Wrap(text, max(width-widest-2, 1), ""), "\n") {
			if i > 0 {
				title = ""
			}
			lines = append(lines, l.Say(look.Faint, look.Padded(title, widest))+"  "+c.Paint(l, row, column, line))
		}
	}
	return lines
}

// behind is the text about an item; known is true if it says all that the columns say.
func behind(ctx context.Context, p *picture.Picture, l *look.Look, item any, width int) (text string, known bool) {
	options := render.Options{Width: width, Color: true}
	var page screen
	switch x := item.(type) {
	case *api.Finding:
		page, known = findingPage(x), true
	case *api.Device:
		return deviceText(l, x), false
	case *api.Claim:
		var text bytes.Buffer
		if err := render.ClaimDetails(&text, []*api.Claim{x}, options); err != nil {
			return err.Error(), false
		}
		return treeText(ctx, p, item, width) + "\n" + text.String(), false
	case *api.Pool:
		var text bytes.Buffer
		if err := render.PoolDetails(&text, []*api.Pool{x}, options); err != nil {
			return err.Error(), false
		}
		return text.String() + "\n" + treeText(ctx, p, item, width), false
	case *api.Taint:
		return strings.Join(x.Devices, "\n"), false
	default:
		return treeText(ctx, p, item, width), false
	}
	if s, ok := page.(*pageScreen); ok {
		text, err := s.write(ctx, p, width)
		if err != nil {
			return err.Error(), known
		}
		return text, known
	}
	return "", known
}

func treeText(ctx context.Context, p *picture.Picture, item any, width int) string {
	s, ok := treePage(item).(*pageScreen)
	if !ok {
		return ""
	}
	text, err := s.write(ctx, p, width)
	if err != nil {
		return err.Error()
	}
	return text
}

// deviceText has what a device publishes.
func deviceText(l *look.Look, d *api.Device) string {
	var lines []string
	section := func(title string, of map[string]string) {
		if len(of) == 0 {
			return
		}
		lines = append(lines, l.Say(look.Strong, title))
		names := make([]string, 0, len(of))
		for name := range of {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			lines = append(lines, "  "+render.Escape(name)+"  "+render.Escape(of[name]))
		}
	}
	section("Attributes", d.Attributes)
	section("Counters", d.Counters)
	return strings.Join(lines, "\n")
}

// besides draws the pane on the right of a list, or under it.
func (s *listScreen) besides(m *Model, list string) string {
	if s.pane.width == 0 {
		return list
	}
	lines := strings.Split(list, "\n")
	room := len(lines)
	if s.pane.height > 0 {
		// What the list leaves is for the pane, too.
		if used := s.table.Count() + 1; s.chart == nil && used < room {
			lines = lines[:used]
		}
		room += s.pane.height - len(lines)
	}
	texts := make([]string, room)
	if s.pane.of == s.table.SelectedKey() && s.table.Count() > 0 {
		copy(texts, s.pane.lines)
		if len(s.pane.lines) > room {
			texts[room-1] = m.look.Say(look.Faint, m.look.Glyphs.More)
		}
	}
	if s.pane.height > 0 {
		lines = append(lines, m.look.Say(look.Faint, strings.Repeat(m.look.Glyphs.Rule, s.pane.width)))
		return strings.Join(append(lines, texts...), "\n")
	}
	between := m.look.Say(look.Faint, " "+m.look.Glyphs.Between+" ")
	width, _ := s.table.Size()
	for i := range lines {
		lines[i] = look.Padded(lines[i], width) + between + texts[i]
	}
	return strings.Join(lines, "\n")
}
