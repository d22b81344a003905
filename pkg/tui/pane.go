// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// pane stands beside a list, or under it, and has what there is to know about the selected
// row. Its text is written in the background, for one row at a time.
type pane struct {
	// width is the width of the text; without one there is no pane. height is how many
	// lines it has under the list, 0 for a pane beside it.
	width, height int
	// of is the row of the text, from the picture and causes the causes that it was written of.
	of      string
	from    *live.Picture
	causes  *live.Causes
	lines   []string
	writing bool
	// at is when the text was written, took how long that took.
	at   time.Time
	took time.Duration
}

// paneMsg has the text about a row.
type paneMsg struct {
	to   *pane
	text pane
}

const (
	// paneFrom is the width from which on lists have a pane beside them. On narrower
	// screens it is under them, if these have at least paneUnder lines.
	paneFrom, paneUnder = 110, 26
	// paneTimes is how much longer than it took to write it a text stays as it is
	// while the cluster changes.
	paneTimes = 20
)

// paneSize returns what a pane gets of a screen: two fifths, without the line before it.
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

// resize sets the pane's part of a screen, and returns the rest for the list.
func (p *pane) resize(width, height int) (listWidth, listHeight int) {
	if wide, high := paneSize(width, height); wide != p.width || high != p.height {
		// What was written is for another place.
		*p = pane{width: wide, height: high, writing: p.writing}
	}
	switch {
	case p.height > 0:
		height -= p.height + 1
	case p.width > 0:
		width -= p.width + len(" | ")
	}
	return width, height
}

// describe writes about the row that is selected in a list, unless that is there already.
func (p *pane) describe(h *host, t *widget.Table, from *live.Picture, causes *live.Causes) tea.Cmd {
	row, selected := t.SelectedRow()
	if p.width == 0 || p.writing || from == nil || !selected {
		return nil
	}
	next := pane{width: p.width, height: p.height, of: t.SelectedKey(), from: from, causes: causes}
	if p.of == next.of && len(p.lines) > 0 {
		same := p.from == next.from && p.causes == next.causes
		if same || h.now().Sub(p.at) < paneTimes*p.took {
			return nil
		}
	}
	p.writing = true
	content, _ := t.Shown()
	ctx, style, now := h.ctx, &h.look, h.now()
	return func() tea.Msg {
		start := time.Now()
		next.lines = views.RowText(ctx, next.from, style, content, row, next.width)
		next.at, next.took = now, time.Since(start)
		return paneMsg{p, next}
	}
}

// arrive takes the text, unless there is another place for it by now. What comes next is
// asked for after each message.
//
//nolint:unparam // other results lead to commands
func (msg paneMsg) arrive(*host) tea.Cmd {
	if p := msg.to; msg.text.width == p.width && msg.text.height == p.height {
		*p = msg.text
	}
	msg.to.writing = false
	return nil
}

// besides draws the pane on the right of a list, or under it; whole says that the list needs
// all of its lines, also those without a row.
func (p *pane) besides(l *widget.Look, t *widget.Table, list string, whole bool) string {
	if p.width == 0 {
		return list
	}
	lines := strings.Split(list, "\n")
	room := len(lines)
	if p.height > 0 {
		// What the list leaves is for the pane, too.
		if used := t.Count() + 1; !whole && used < room {
			lines = lines[:used]
		}
		room += p.height - len(lines)
	}
	texts := make([]string, room)
	if p.of == t.SelectedKey() && t.Count() > 0 {
		copy(texts, p.lines)
		if len(p.lines) > room {
			texts[room-1] = l.Say(widget.Faint, l.Glyphs.More)
		}
	}
	if p.height > 0 {
		lines = append(lines, l.Say(widget.Faint, strings.Repeat(l.Glyphs.Rule, p.width)))
		return strings.Join(append(lines, texts...), "\n")
	}
	between := l.Say(widget.Faint, " "+l.Glyphs.Between+" ")
	width, _ := t.Size()
	for i := range lines {
		lines[i] = widget.Padded(lines[i], width) + between + texts[i]
	}
	return strings.Join(lines, "\n")
}
