// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/sahilm/fuzzy"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
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

// View draws as many lines as the list is high: the input, the choices, and their number.
func (m *Finder) View(l *Look) string {
	lines := []string{ansi.Truncate(m.input.View(), m.width, "")}
	kinds := 0
	shown := min(m.first+m.lines(), m.count())
	for place := m.first; place < shown; place++ {
		item, _ := m.at(place)
		kinds = max(kinds, ansi.StringWidth(item.Kind))
	}
	for place := m.first; place < shown; place++ {
		item, typed := m.at(place)
		kind := ""
		if kinds > 0 {
			kind = l.Say(Faint, Padded(item.Kind, kinds)) + "  "
		}
		text := " " + kind + marked(l, item.Name, typed)
		if place == m.cursor {
			text = l.Select(Padded(ansi.Truncate(l.Glyphs.Cursor+text, m.width, l.Glyphs.More), m.width))
		} else {
			text = ansi.Truncate(" "+text, m.width, l.Glyphs.More)
		}
		lines = append(lines, text)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, l.Say(Faint, ansi.Truncate(m.foot(l), m.width, l.Glyphs.More)))
	return strings.Join(lines[:max(min(len(lines), m.height), 0)], "\n")
}

func (m *Finder) foot(l *Look) string {
	switch {
	case !m.loaded || m.query != m.input.Value():
		return l.Glyphs.More
	case len(m.items) == 0:
		return "nothing to choose"
	default:
		return fmt.Sprintf("%s of %s", english.Thousands(m.count()), english.Thousands(len(m.items)))
	}
}

// marked returns a name with the letters that were typed.
func marked(l *Look, name string, typed []int) string {
	var text strings.Builder
	for at, r := range name {
		letter := render.Escape(string(r))
		if slices.Contains(typed, at) {
			letter = l.Say(Strong, letter)
		}
		text.WriteString(letter)
	}
	return text.String()
}

// names are the searched names.
type names []Found

func (n names) String(i int) string { return n[i].Name }
func (n names) Len() int            { return len(n) }

// match finds the names with the letters of a query in this order, the best first:
// names that have it in one piece stand before others, short ones before long ones.
func match(query string, items []Found) fuzzy.Matches {
	pattern := strings.ReplaceAll(strings.TrimSpace(query), " ", "")
	found := fuzzy.FindFromNoSort(pattern, names(items))
	type rank struct {
		whole bool
		score int
	}
	ranks := make([]rank, len(items))
	lower := strings.ToLower(pattern)
	for i := range found {
		ranks[found[i].Index] = rank{strings.Contains(strings.ToLower(found[i].Str), lower), found[i].Score}
	}
	slices.SortStableFunc(found, func(a, b fuzzy.Match) int {
		left, right := ranks[a.Index], ranks[b.Index]
		if left.whole != right.whole {
			if left.whole {
				return -1
			}
			return 1
		}
		return right.score - left.score
	})
	return found
}
