// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// typist is a screen that takes every key for itself.
type typist interface {
	typed(h *host, msg tea.Msg) tea.Cmd
}

// chooseScreen is a list to choose from by typing: a view, an object, a column.
type chooseScreen struct {
	name   string
	list   *widget.Finder
	chosen func(item widget.Found) tea.Cmd
}

// choose opens a list to choose from. Its items are listed in the background.
func choose(h *host, name string, items func() []widget.Found, chosen func(item widget.Found) tea.Cmd) tea.Cmd {
	s := &chooseScreen{name: name, list: widget.NewFinder(name + ": "), chosen: chosen}
	return tea.Batch(h.push(s), s.list.Load(items))
}

func (s *chooseScreen) title() string                     { return s.name }
func (*chooseScreen) hasCauses() bool                     { return false }
func (s *chooseScreen) resize(_ *host, width, height int) { s.list.SetSize(width, height) }
func (*chooseScreen) refresh(*host) tea.Cmd               { return nil }
func (*chooseScreen) actions(*host) []action              { return nil }
func (*chooseScreen) click(*host, int, int) tea.Cmd       { return nil }

func (s *chooseScreen) wheel(h *host, by int) {
	press := tea.KeyPressMsg{Code: tea.KeyDown}
	if by < 0 {
		press.Code = tea.KeyUp
	}
	s.typed(h, press)
}

func (s *chooseScreen) view(h *host) string { return s.list.View(&h.look) }

func (*chooseScreen) bindings(h *host) []key.Binding {
	enter := h.keys.enter
	enter.SetHelp("enter", "choose")
	return []key.Binding{enter, h.keys.back}
}

// typed passes input to the list. The chosen item replaces the list.
func (s *chooseScreen) typed(h *host, msg tea.Msg) tea.Cmd {
	cmd, outcome := s.list.Update(msg)
	switch {
	case outcome.Left:
		return h.back()
	case outcome.Chosen != nil:
		return tea.Batch(h.back(), s.chosen(*outcome.Chosen))
	}
	return cmd
}
