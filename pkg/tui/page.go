// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/about"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
)

// pageScreen is a text to scroll through: an explanation, YAML, a tree, help.
type pageScreen struct {
	text  *about.Text
	pager viewport.Model
	// written is the width that the text was made for, 0 while there is none.
	written int
	// widest is the length of the longest line.
	widest int
	height int
}

// pageMsg has the text of a page.
type pageMsg struct {
	page  *pageScreen
	text  string
	width int
}

func newPage(text *about.Text) *pageScreen {
	s := &pageScreen{text: text, pager: viewport.New()}
	s.pager.SetContent("One moment")
	return s
}

func (s *pageScreen) title() string { return s.text.Name }

func (*pageScreen) seen() live.Seen { return live.Seen{} }

func (s *pageScreen) resize(width, height int) {
	s.pager.SetWidth(width)
	s.pager.SetHeight(max(height-1, 1))
	s.height = height
}

// refresh writes the text again only if it has to be of another width: what is
// read should not move.
func (s *pageScreen) refresh(m *Model) tea.Cmd {
	if m.live.Picture() == nil || s.written == s.pager.Width() {
		return nil
	}
	return s.load(m)
}

func (s *pageScreen) load(m *Model) tea.Cmd {
	ctx, p, width, style := m.ctx, m.live.Picture(), s.pager.Width(), &m.look
	return func() tea.Msg {
		text, err := s.text.Write(ctx, p, width)
		if err != nil {
			text = err.Error()
		}
		return pageMsg{s, style.Recolor(text), width}
	}
}

func (s *pageScreen) set(msg pageMsg) {
	at := s.pager.YOffset()
	s.written = msg.width
	s.widest = lipgloss.Width(msg.text)
	s.pager.SetContent(msg.text)
	s.pager.SetYOffset(at)
}

func (s *pageScreen) actions(m *Model) []action {
	k := &m.keys
	actions := []action{
		{k.down, keysMove, just(func() { s.pager.ScrollDown(1) })},
		{k.up, keysMove, just(func() { s.pager.ScrollUp(1) })},
		{k.pageDown, keysMove, just(s.pager.PageDown)},
		{k.pageUp, keysMove, just(s.pager.PageUp)},
		{k.top, keysMove, just(func() { s.pager.GotoTop() })},
		{k.end, keysMove, just(func() { s.pager.GotoBottom() })},
		{k.left, keysMove, just(func() { s.pager.ScrollLeft(8) })},
		{k.right, keysMove, just(func() { s.pager.ScrollRight(8) })},
	}
	if s.text.Again {
		actions = append(actions, action{k.again, keysCloser, func() tea.Cmd { return s.load(m) }})
	}
	return actions
}

func (s *pageScreen) wheel(_ *Model, by int) {
	s.pager.SetYOffset(s.pager.YOffset() + by)
}

func (*pageScreen) click(*Model, int, int) tea.Cmd { return nil }

func (s *pageScreen) view(m *Model) string {
	return s.pager.View() + "\n" + m.look.Say(look.Faint, m.oneLine(s.foot(m)))
}

// foot says where in the text one is, and whether there is more of it.
func (s *pageScreen) foot(m *Model) string {
	all, first := s.pager.TotalLineCount(), s.pager.YOffset()
	last := min(first+s.pager.Height(), all)
	text := fmt.Sprintf("lines %d to %d of %d", min(first+1, all), last, all)
	if s.widest > s.pager.Width()+s.pager.XOffset() {
		text += "; " + m.keys.right.Keys()[len(m.keys.right.Keys())-1] + " shows what is on the right"
	}
	return text
}

func (s *pageScreen) bindings(m *Model) []key.Binding {
	keys := []key.Binding{m.keys.down, m.keys.pageDown}
	if s.text.Again {
		keys = append(keys, m.keys.again)
	}
	return keys
}
