// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/about"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/picture"
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
func (s *listScreen) describe(h *host) tea.Cmd {
	if s.pane.width == 0 || s.pane.writing || h.live.Picture() == nil || s.from == nil {
		return nil
	}
	row, selected := s.table.SelectedRow()
	if !selected {
		return nil
	}
	next := pane{width: s.pane.width, height: s.pane.height, of: s.table.SelectedKey(), from: s.from, version: s.shown.Worked}
	if s.pane.of == next.of && len(s.pane.lines) > 0 {
		same := s.pane.from == next.from && s.pane.version == next.version
		if same || h.now().Sub(s.pane.at) < paneTimes*s.pane.took {
			return nil
		}
	}
	s.pane.writing = true
	content, _ := s.table.Shown()
	ctx, style, now := h.ctx, &h.look, h.now()
	return func() tea.Msg {
		start := time.Now()
		next.lines = about.Row(ctx, next.from, style, content, row, next.width)
		next.at, next.took = now, time.Since(start)
		return paneMsg{s, next}
	}
}

// arrive takes the text, unless there is another place for it by now. What comes next is
// asked for after each message.
//
//nolint:unparam // other results lead to commands
func (msg paneMsg) arrive(*host) tea.Cmd {
	s := msg.list
	if msg.pane.width == s.pane.width && msg.pane.height == s.pane.height {
		s.pane = msg.pane
	}
	s.pane.writing = false
	return nil
}

// besides draws the pane on the right of a list, or under it.
func (s *listScreen) besides(h *host, list string) string {
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
			texts[room-1] = h.look.Say(look.Faint, h.look.Glyphs.More)
		}
	}
	if s.pane.height > 0 {
		lines = append(lines, h.look.Say(look.Faint, strings.Repeat(h.look.Glyphs.Rule, s.pane.width)))
		return strings.Join(append(lines, texts...), "\n")
	}
	between := h.look.Say(look.Faint, " "+h.look.Glyphs.Between+" ")
	width, _ := s.table.Size()
	for i := range lines {
		lines[i] = look.Padded(lines[i], width) + between + texts[i]
	}
	return strings.Join(lines, "\n")
}
