// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Update takes in what happened. It never waits for anything.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	model, cmd := m.heard(msg)
	if list, ok := m.top().(*listScreen); ok {
		cmd = tea.Batch(cmd, list.describe(m.host))
	}
	return model, cmd
}

// wholeScreen lets all lines of the terminal scroll, and draws them again. The renderer may
// have set the lines that scroll for the size before: then a move to a line below them
// would scroll the others away.
func wholeScreen() tea.Cmd {
	return tea.Sequence(tea.Raw(ansi.SetTopBottomMargins(0, 0)), tea.ClearScreen)
}

func (m *Model) heard(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.resize()
		return m, tea.Batch(m.refresh(), wholeScreen())
	case tea.KeyPressMsg:
		if msg.String() == "alt+esc" {
			// Terminals send Escape twice as this, if it is fast.
			escape := tea.KeyPressMsg{Code: tea.KeyEscape}
			return m, tea.Batch(m.key(escape), m.key(escape))
		}
		return m, m.key(msg)
	case tea.PasteMsg:
		if m.line.Asks() {
			return m, m.line.Update(msg)
		}
		if s, ok := m.top().(typist); ok {
			return m, s.typed(m.host, msg)
		}
	case widget.FinderMessage:
		if s, ok := m.top().(typist); ok {
			return m, s.typed(m.host, msg)
		}
	case tea.MouseClickMsg:
		return m, m.clicked(msg)
	case tea.MouseWheelMsg:
		if msg.Button == tea.MouseWheelUp {
			m.top().wheel(m.host, -3)
		} else {
			m.top().wheel(m.host, 3)
		}
	case live.Message:
		return m, m.heardOf(msg)
	case connectedMsg:
		return m, m.connected(msg)
	case result:
		return m, msg.arrive(m.host)
	}
	return m, nil
}

// heardOf passes on news of the cluster, and shows them.
func (m *Model) heardOf(msg live.Message) tea.Cmd {
	cmd, news := m.live.Update(msg, m.seen())
	switch news {
	case live.NewPicture:
		if !m.sized {
			m.sized = true
			m.first.nodes.mapMany(m.live.Picture())
		}
		return tea.Batch(cmd, m.refresh(), m.first.remember(m.host))
	case live.NewCauses:
		return tea.Batch(m.top().refresh(m.host), cmd)
	default:
		return cmd
	}
}

// key takes in a key: something is typed, or it does something.
func (m *Model) key(msg tea.KeyPressMsg) tea.Cmd {
	m.message = ""
	m.live.Looked()
	if m.line.Asks() {
		return m.line.Update(msg)
	}
	if s, ok := m.top().(typist); ok && msg.String() != "ctrl+c" {
		return s.typed(m.host, msg)
	}
	return m.pressed(msg)
}

// pressed does what a key is for. What the screen does with it comes first.
func (m *Model) pressed(msg tea.KeyPressMsg) tea.Cmd {
	for _, of := range [][]action{m.top().actions(m.host), m.actions()} {
		for _, a := range of {
			if key.Matches(msg, a.Binding) {
				return a.do()
			}
		}
	}
	if id, ok := views.ByKey(msg.String()); ok {
		return m.show(id)
	}
	m.message = fmt.Sprintf("%s does nothing here; %s has the keys", msg.String(), m.keys.help.Help().Key)
	return nil
}

// clicked shows the view whose name was clicked, or passes the click on.
func (m *Model) clicked(msg tea.MouseClickMsg) tea.Cmd {
	switch {
	case msg.Button != tea.MouseLeft:
		return nil
	case msg.Y >= headLines:
		return m.top().click(m.host, msg.X, msg.Y-headLines)
	case msg.Y == headLines-1 && len(m.stack) == 1:
		if id, ok := tabAt(m.view, m.counts(), m.width, msg.X); ok {
			return m.show(id)
		}
	}
	return nil
}
