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
	paneRoom
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

// paneRoom is the room that a pane gets of a screen.
type paneRoom struct {
	// width is the width of the text; without one there is no pane.
	width int
	// under is true for a pane under the list, height how many lines it has there at least, besides
	// those that the list does not need.
	under  bool
	height int
}

// paneMsg has the text about a row.
type paneMsg struct {
	to   *pane
	text pane
}

// paneChoice is how somebody wants the panes of a view.
type paneChoice struct {
	// closed and opened are true if somebody wants none, or one.
	closed, opened bool
	// wider is by how many tenths of the screen it is wider.
	wider int
}

const (
	// paneUnder is the least height of screens with a pane under the list, where it does not fit
	// beside it. On lower ones the pane has the lines that the list does not need, if there are
	// paneLines of them.
	paneUnder, paneLines = 26, 6
	// paneShare is how many tenths of the screen a pane takes, with the least and the most.
	paneShare, paneLeast, paneMost = 4, 2, 7
	// paneTimes is how much longer than it took to write it a text stays as it is
	// while the cluster changes.
	paneTimes = 20
)

// paneFrom returns the width from which on a view has a pane by itself: a small one where reasons and
// steps are only there, and a large one where it has more columns; 0 for never.
func paneFrom(id views.ID) int {
	switch id {
	case views.Pending, views.Causes, views.Findings, views.Classes, views.Taints:
		return paneBeside
	case views.Overview, views.Nodes, views.Pools, views.Devices, views.Claims, views.Pods:
		return paneWide
	default:
		return 0
	}
}

const paneBeside, paneWide = 110, 150

// paneSize returns what a pane gets of a screen, without the line before it.
func (h *host) paneSize(id views.ID, width, height int) paneRoom {
	from, choice := paneFrom(id), h.panes[id]
	beside := paneBeside
	switch id {
	case views.Causes, views.Findings, views.Classes, views.Taints:
		// Their rows are sentences, or long.
		beside = paneWide
	default:
	}
	share := paneShare + choice.wider
	switch {
	case choice.closed, from == 0 && !choice.opened:
		return paneRoom{}
	case width >= beside && (choice.opened || width >= from):
		return paneRoom{width: width * share / 10}
	case choice.opened, from == paneBeside && height >= paneUnder:
		return paneRoom{width: width, under: true, height: height * share / 10}
	case from == paneBeside:
		return paneRoom{width: width, under: true}
	default:
		return paneRoom{}
	}
}

// paneKeys returns the keys that open, close and size the pane of a view; shows reports whether it is
// there.
func (h *host) paneKeys(id views.ID, shows func() bool) []action {
	change := func(to func(choice *paneChoice, open bool)) func() tea.Cmd {
		return func() tea.Cmd {
			choice := h.panes[id]
			to(&choice, shows())
			h.panes[id] = choice
			h.resize()
			return h.refresh()
		}
	}
	size := func(by int) func() tea.Cmd {
		return change(func(choice *paneChoice, _ bool) {
			choice.closed, choice.opened = false, true
			choice.wider = min(max(choice.wider+by, paneLeast-paneShare), paneMost-paneShare)
		})
	}
	return []action{
		{h.keys.pane, keysCloser, change(func(choice *paneChoice, open bool) { choice.closed, choice.opened = open, !open })},
		{h.keys.wider, keysCloser, size(1)},
		{h.keys.narrower, keysCloser, size(-1)},
	}
}

// resize sets the pane's size, and returns what it leaves of a screen for the list.
func (p *pane) resize(room paneRoom, width, height int) (listWidth, listHeight int) {
	if room != p.paneRoom {
		// What was written is for another place.
		*p = pane{paneRoom: room, writing: p.writing}
	}
	switch {
	case p.under && p.height > 0:
		height -= p.height + 1
	case p.width > 0 && !p.under:
		width -= p.width + len(" | ")
	}
	return width, height
}

// describe writes about the row that is selected in a list, unless that is there already: what the
// list does not show of it.
func (p *pane) describe(h *host, t *widget.Table, shown func() map[int]bool, from *live.Picture, causes *live.Causes) tea.Cmd {
	row, selected := t.SelectedRow()
	if p.width == 0 || p.writing || from == nil || !selected {
		return nil
	}
	next := pane{paneRoom: p.paneRoom, of: t.SelectedKey(), from: from, causes: causes}
	if p.of == next.of && len(p.lines) > 0 {
		same := p.from == next.from && p.causes == next.causes
		if same || h.now().Sub(p.at) < paneTimes*p.took {
			return nil
		}
	}
	p.writing = true
	whole := shown()
	content, _ := t.Shown()
	ctx, style, now := h.ctx, &h.look, h.now()
	return func() tea.Msg {
		start := time.Now()
		next.lines = views.RowText(ctx, next.from, style, content, row, whole, next.width)
		next.at, next.took = now, time.Since(start)
		return paneMsg{p, next}
	}
}

// arrive takes the text, unless there is another place for it by now. What comes next is
// asked for after each message.
//
//nolint:unparam // other results lead to commands
func (msg paneMsg) arrive(*host) tea.Cmd {
	if p := msg.to; msg.text.paneRoom == p.paneRoom {
		*p = msg.text
	}
	msg.to.writing = false
	return nil
}

// shows reports whether there is room for the pane.
func (p *pane) shows(t *widget.Table) bool {
	if !p.under || p.height > 0 {
		return p.width > 0
	}
	_, height := t.Size()
	return height-t.Count()-1 >= paneLines
}

// besides draws the pane on the right of a list, or under it; whole says that the list needs
// all of its lines, also those without a row.
func (p *pane) besides(l *widget.Look, t *widget.Table, list string, whole bool) string {
	if !p.shows(t) {
		return list
	}
	lines := strings.Split(list, "\n")
	room := len(lines)
	if p.under {
		// What the list leaves is for the pane, too.
		if used := t.Used(); !whole && used < room {
			lines = lines[:used]
		}
		room += p.height - len(lines)
		if p.height == 0 {
			// The line between is one of the list.
			room--
		}
	}
	texts := make([]string, room)
	if p.of == t.SelectedKey() && t.Count() > 0 {
		copy(texts, p.lines)
		if len(p.lines) > room {
			texts[room-1] = l.Say(widget.Faint, l.Glyphs.More)
		}
	}
	if p.under {
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
