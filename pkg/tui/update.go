// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/about"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/ask"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/edge"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/find"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/picture"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
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
	case find.Message:
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

// heardOf passes on what is heard of the cluster, and shows what is new.
func (m *Model) heardOf(msg live.Message) tea.Cmd {
	cmd, news := m.live.Update(msg, m.top().seen())
	switch news {
	case live.NewPicture:
		return tea.Batch(cmd, m.refresh(), m.first.remember(m.host))
	case live.Findings:
		return tea.Batch(m.top().refresh(m.host), cmd)
	default:
		return cmd
	}
}

// key takes in a key: something is typed, or it does something.
func (m *Model) key(msg tea.KeyPressMsg) tea.Cmd {
	m.message = ""
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

// askForFilter asks which rows of a list to show.
func (m *Model) askForFilter() {
	if s, ok := m.top().(*listScreen); ok {
		s.askForFilter(m.host)
		return
	}
	m.message = "only lists can be filtered: 2 to 0"
}

// askForNamespace asks for the only namespace whose claims and pods to show.
func (m *Model) askForNamespace() {
	before := m.namespace
	choose := func(name string) tea.Cmd {
		if !m.live.Picture().KnowsNamespace(name) {
			m.message = "namespace " + name + " does not exist"
			return nil
		}
		m.namespace = name
		return m.refresh()
	}
	var names []string
	if p := m.live.Picture(); p != nil {
		for _, namespace := range p.Snap.Namespaces {
			names = append(names, namespace.Name)
		}
	}
	m.line.Open(&ask.Question{
		Prompt: "namespace: ", Value: before, Help: "tab completes; leave empty for all namespaces", Proposed: names,
		Answered: choose, Left: func() tea.Cmd { return choose(before) },
	})
}

// freeze keeps the picture, or goes on.
func (m *Model) freeze() tea.Cmd {
	if m.fixed {
		m.message = "a file does not change"
		return nil
	}
	return m.live.Freeze(m.top().seen())
}

// rows is a screen with a selected row.
type rows interface {
	// row is what the selected one is about and the picture that it is of; nil for nothing.
	row() (item any, from *picture.Picture)
}

// openHelp opens the help about what is shown.
func (m *Model) openHelp() tea.Cmd {
	return m.push(newHelp(m.top(), m.top().actions(m.host), []action{{m.keys.views, keysMove, nil}}, m.actions()))
}

// closer opens a page about the selected item.
func (m *Model) closer(page func(item any) *about.Text, otherwise string) tea.Cmd {
	if s, ok := m.top().(rows); ok {
		item, _ := s.row()
		if next := page(item); next != nil {
			return m.push(newPage(next))
		}
	}
	m.message = otherwise
	return nil
}

// show goes to a view.
func (m *Model) show(id views.ID) tea.Cmd {
	for other, view := range m.views {
		if list, ok := view.(*listScreen); ok && views.ID(other) != id {
			list.letGo(m.host)
		}
	}
	m.line.Close()
	m.view = id
	m.stack = []screen{m.views[id]}
	m.resize()
	return m.refresh()
}

// clicked shows the view whose name was clicked, or passes the click on.
func (m *Model) clicked(msg tea.MouseClickMsg) tea.Cmd {
	switch {
	case msg.Button != tea.MouseLeft:
		return nil
	case msg.Y >= headLines:
		return m.top().click(m.host, msg.X, msg.Y-headLines)
	case msg.Y == headLines-1 && len(m.stack) == 1:
		if id, ok := edge.TabAt(m.view, m.width, msg.X); ok {
			return m.show(id)
		}
	}
	return nil
}

// everyNamespace shows claims and pods of all namespaces.
func (m *Model) everyNamespace() tea.Cmd {
	if m.namespace == "" {
		m.message = "all namespaces are shown already"
		return nil
	}
	m.namespace = ""
	return m.refresh()
}
