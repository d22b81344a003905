// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/sahilm/fuzzy"
)

// Found is something to choose.
type Found struct {
	// Kind is said before the name and not searched.
	Kind, Name string
}

// Finder is the state of a list to choose from.
type Finder struct {
	items   []Found
	loaded  bool
	input   textinput.Model
	matches fuzzy.Matches
	// query is the text of the matches, searching is true while others are on the way.
	query     string
	searching bool
	// cursor is the match that is selected, first the uppermost that is shown.
	cursor, first int
	width, height int
}

// Outcome is the effect of a message.
type Outcome struct {
	// Chosen is the item that was chosen; nil if none was yet.
	Chosen *Found
	// Left is true if nothing will be.
	Left bool
}

// FinderMessage has to be passed back to the model.
type FinderMessage interface{ of() *Finder }

type itemsMsg struct {
	model *Finder
	items []Found
}

type matchesMsg struct {
	model   *Finder
	query   string
	matches fuzzy.Matches
}

func (m itemsMsg) of() *Finder   { return m.model }
func (m matchesMsg) of() *Finder { return m.model }

// NewFinder makes a list without items, see [Finder.Load].
func NewFinder(prompt string) *Finder {
	return &Finder{input: NewInput(prompt)}
}

// Load lists the items in the background.
func (m *Finder) Load(items func() []Found) tea.Cmd {
	return func() tea.Msg { return itemsMsg{m, items()} }
}

// SetSize sets how much of a screen there is.
func (m *Finder) SetSize(width, height int) {
	m.width, m.height = width, height
	m.input.SetWidth(max(width-len(m.input.Prompt)-1, 1))
	m.move(0)
}

// Update takes in a key, a text that was pasted, or a [Message].
func (m *Finder) Update(msg tea.Msg) (tea.Cmd, Outcome) {
	switch msg := msg.(type) {
	case FinderMessage:
		if msg.of() == m {
			return m.arrived(msg), Outcome{}
		}
		return nil, Outcome{}
	case tea.KeyPressMsg:
		switch msg.String() {
		case "esc":
			return nil, Outcome{Left: true}
		case "enter":
			return nil, Outcome{Chosen: m.selected()}
		case "up", "ctrl+p", "shift+tab":
			m.move(-1)
			return nil, Outcome{}
		case "down", "ctrl+n", "tab":
			m.move(1)
			return nil, Outcome{}
		case "pgup":
			m.move(-m.lines())
			return nil, Outcome{}
		case "pgdown":
			m.move(m.lines())
			return nil, Outcome{}
		case "backspace":
			if m.input.Value() == "" {
				return nil, Outcome{Left: true}
			}
		}
	}
	m.input, _ = m.input.Update(msg)
	return m.search(), Outcome{}
}

func (m *Finder) arrived(msg FinderMessage) tea.Cmd {
	switch msg := msg.(type) {
	case itemsMsg:
		m.items, m.loaded = msg.items, true
		return m.search()
	case matchesMsg:
		m.searching = false
		m.query, m.matches = msg.query, msg.matches
		m.cursor, m.first = 0, 0
		return m.search()
	}
	return nil
}

// search compares the names with the typed text, one search at a time.
func (m *Finder) search() tea.Cmd {
	query := m.input.Value()
	if !m.loaded || m.searching || query == m.query {
		return nil
	}
	m.searching = true
	items := m.items
	return func() tea.Msg { return matchesMsg{m, query, match(query, items)} }
}

// count returns how many can be chosen.
func (m *Finder) count() int {
	if m.query == "" {
		return len(m.items)
	}
	return len(m.matches)
}

// at returns a choice, with the indices of its bytes that were typed.
func (m *Finder) at(place int) (*Found, []int) {
	if m.query == "" {
		return &m.items[place], nil
	}
	return &m.items[m.matches[place].Index], m.matches[place].MatchedIndexes
}

func (m *Finder) selected() *Found {
	if m.count() == 0 {
		return nil
	}
	item, _ := m.at(m.cursor)
	return item
}

func (m *Finder) move(by int) {
	m.cursor = min(max(m.cursor+by, 0), max(m.count()-1, 0))
	m.first = min(m.first, m.cursor)
	m.first = max(m.first, m.cursor-m.lines()+1)
}

// lines returns how many items fit under the line that is typed and over the count.
func (m *Finder) lines() int { return max(m.height-2, 1) }
