// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// pageScreen is a text to scroll through: an explanation, YAML, a tree, help.
type pageScreen struct {
	text  *views.Text
	pager viewport.Model
	// written is the width that the text was made for, 0 while there is none, change and at what the
	// cluster was like then.
	written int
	change  int
	at      time.Time
	// widest is the length of the longest line.
	widest int
	height int
}

// pageMsg has the text of a page, and the change and the time of the picture that it is of.
type pageMsg struct {
	page          *pageScreen
	text          string
	width, change int
	at            time.Time
}

func (msg pageMsg) arrive(h *host) tea.Cmd {
	msg.page.set(msg)
	// The width may be another one by now.
	return msg.page.refresh(h)
}

func newPage(text *views.Text) *pageScreen {
	s := &pageScreen{text: text, pager: viewport.New()}
	s.pager.SetContent("One moment")
	return s
}

func (s *pageScreen) title() string { return s.text.Name }

func (*pageScreen) hasCauses() bool { return false }

func (s *pageScreen) resize(_ *host, width, height int) {
	s.pager.SetWidth(width)
	s.pager.SetHeight(max(height-1, 1))
	s.height = height
}

// refresh writes the text again only if its width has to change: text should not move while
// it is read.
func (s *pageScreen) refresh(h *host) tea.Cmd {
	if h.live.Picture() == nil || s.written == s.pager.Width() {
		return nil
	}
	return s.load(h)
}

func (s *pageScreen) load(h *host) tea.Cmd {
	ctx, p, width, style := h.ctx, h.live.Picture(), s.pager.Width(), &h.look
	held := ""
	if s.text.Of != nil {
		held = views.HeldBack(h.causes(), *s.text.Of, width)
	}
	return func() tea.Msg {
		text, err := s.text.Write(ctx, p, width)
		if err != nil {
			text = err.Error()
		}
		text = held + text
		return pageMsg{s, style.Recolor(text), width, p.Change(), p.Cluster.Snapshot.Now()}
	}
}

func (s *pageScreen) set(msg pageMsg) {
	at := s.pager.YOffset()
	s.written, s.change, s.at = msg.width, msg.change, msg.at
	s.widest = lipgloss.Width(msg.text)
	s.pager.SetContent(msg.text)
	s.pager.SetYOffset(at)
}

func (s *pageScreen) actions(h *host) []action {
	k := &h.keys
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
	if s.text.Of != nil {
		actions = append(actions, action{k.copy, keysCloser, func() tea.Cmd { return copyStep(h, s.text.Of) }})
	}
	if s.text.Again {
		actions = append(actions, action{k.again, keysCloser, func() tea.Cmd { return s.load(h) }})
	}
	return actions
}

func (s *pageScreen) wheel(_ *host, by int) {
	s.pager.SetYOffset(s.pager.YOffset() + by)
}

func (*pageScreen) click(*host, int, int) tea.Cmd { return nil }

func (s *pageScreen) view(h *host) string {
	return s.pager.View() + "\n" + h.look.Say(widget.Faint, h.oneLine(s.foot(h)))
}

// foot says where in the text one is, and whether there is more of it.
func (s *pageScreen) foot(h *host) string {
	all, first := s.pager.TotalLineCount(), s.pager.YOffset()
	last := min(first+s.pager.Height(), all)
	text := fmt.Sprintf("lines %s to %s of %s", english.Thousands(min(first+1, all)), english.Thousands(last), english.Thousands(all))
	if s.widest > s.pager.Width()+s.pager.XOffset() {
		text += "; " + h.keys.right.Keys()[len(h.keys.right.Keys())-1] + " shows what is on the right"
	}
	if s.written > 0 && s.change != h.live.Picture().Change() {
		text += "; as of " + s.at.Format(time.TimeOnly)
		if s.text.Again {
			text += ", " + h.keys.again.Help().Key + " looks again"
		}
	}
	return text
}

func (s *pageScreen) bindings(h *host) []key.Binding {
	keys := []key.Binding{h.keys.down, h.keys.pageDown}
	if s.text.Of != nil {
		keys = append(keys, h.keys.copy)
	}
	if s.text.Again {
		keys = append(keys, h.keys.again)
	}
	return keys
}

// gapsPage lists what could not be read.
func gapsPage(gaps []string) *pageScreen {
	return newPage(&views.Text{Name: "what could not be read", Write: func(_ context.Context, _ *live.Picture, width int) (string, error) {
		if len(gaps) == 0 {
			return "Everything could be read.", nil
		}
		var text strings.Builder
		for _, gap := range gaps {
			text.WriteString(ansi.Wrap(render.Escape(gap), width, "") + "\n")
		}
		return text.String(), nil
	}})
}
