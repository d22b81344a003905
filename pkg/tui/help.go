// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// helpScreen has the keys of the screen that it was opened from, and what its signs mean.
// What is typed searches the keys.
type helpScreen struct {
	// groups has the keys of that screen, whose name is before it. list is true if it is a list.
	groups [][]key.Binding
	list   bool
	// hasMap is true if the screen has a map of nodes.
	hasMap bool
	input  textinput.Model
	// first is the uppermost line that is shown.
	first         int
	width, height int
}

// newHelp returns the help for a screen: the keys of the screen come before global keys.
func newHelp(about screen, keys ...[]action) *helpScreen {
	_, list := about.(*listScreen)
	s := &helpScreen{groups: keyGroups(keys), list: list, input: widget.NewInput("search the keys: ")}
	if of, ok := about.(interface{ showsMap() bool }); ok {
		s.hasMap = of.showsMap()
	}
	return s
}

func (*helpScreen) title() string                 { return "keys" }
func (*helpScreen) hasCauses() bool               { return false }
func (*helpScreen) refresh(*host) tea.Cmd         { return nil }
func (*helpScreen) actions(*host) []action        { return nil }
func (*helpScreen) click(*host, int, int) tea.Cmd { return nil }

func (s *helpScreen) resize(_ *host, width, height int) {
	s.width, s.height = width, height
	s.input.SetWidth(max(width-len(s.input.Prompt)-1, 1))
}

func (s *helpScreen) wheel(h *host, by int) { s.scroll(h, by) }

// scroll moves the lines that are shown, as far as there are more.
func (s *helpScreen) scroll(h *host, by int) {
	s.first = min(max(s.first+by, 0), max(len(s.lines(h))-s.room(), 0))
}

// room returns how many lines there are above the last one.
func (s *helpScreen) room() int { return max(s.height-1, 1) }

func (*helpScreen) bindings(h *host) []key.Binding { return []key.Binding{h.keys.back} }

// typed takes in a key. Letters are searched for, so that only others scroll.
func (s *helpScreen) typed(h *host, msg tea.Msg) tea.Cmd {
	if press, ok := msg.(tea.KeyPressMsg); ok {
		text := press.String()
		if text == "esc" || s.input.Value() == "" && (text == "backspace" || text == "?") {
			return h.back()
		}
		switch text {
		case "up":
			s.scroll(h, -1)
			return nil
		case "down":
			s.scroll(h, 1)
			return nil
		case "pgup":
			s.scroll(h, -s.room())
			return nil
		case "pgdown":
			s.scroll(h, s.room())
			return nil
		}
	}
	s.input, _ = s.input.Update(msg)
	s.scroll(h, -s.first)
	return nil
}

func (s *helpScreen) view(h *host) string {
	lines := s.lines(h)
	all := len(lines)
	last := min(s.first+s.room(), all)
	lines = lines[min(s.first, last):last]
	for len(lines) < s.room() {
		lines = append(lines, "")
	}
	foot := h.look.Say(widget.Faint, "type to search the keys")
	if s.input.Value() != "" {
		foot = s.input.View()
	}
	if all > s.room() {
		foot += h.look.Say(widget.Faint, fmt.Sprintf("   lines %d to %d of %d", s.first+1, last, all))
	}
	return strings.Join(append(lines, ansi.Truncate(foot, s.width, h.look.Glyphs.More)), "\n")
}

// lines returns all keys in columns with the legend or, while something is typed, the keys
// that have it in their name or their text.
func (s *helpScreen) lines(h *host) []string {
	if query := strings.ToLower(strings.TrimSpace(s.input.Value())); query != "" {
		return found(&h.look, s.groups, query, s.width)
	}
	columns := make([][]string, 0, len(s.groups))
	for i, title := range keyGroupTitles() {
		columns = append(columns, append([]string{h.look.Say(widget.Strong, title)}, keyLines(&h.look, s.groups[i])...))
	}
	texts := widget.Columns(columns, s.width)
	if s.list {
		texts = append(texts, "", h.look.Say(widget.Strong, "Filters")+"  "+views.FilterHelp)
	}
	texts = append(texts, "", h.look.Legend())
	if s.hasMap {
		texts = append(texts, "", views.MapHelp(&h.look))
	}
	var lines []string
	for _, text := range texts {
		lines = append(lines, strings.Split(ansi.Wrap(text, s.width, ""), "\n")...)
	}
	return lines
}

// found returns the keys that have a text in their name or in what they do.
func found(l *widget.Look, groups [][]key.Binding, query string, width int) []string {
	var list []key.Binding
	for _, group := range groups {
		for _, b := range group {
			if strings.Contains(strings.ToLower(b.Help().Key), query) || strings.Contains(strings.ToLower(b.Help().Desc), query) {
				list = append(list, b)
			}
		}
	}
	if len(list) == 0 {
		return []string{l.Say(widget.Faint, "no key for this")}
	}
	lines := keyLines(l, list)
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], width, l.Glyphs.More)
	}
	return lines
}

// keyLines returns a line for each key.
func keyLines(l *widget.Look, keys []key.Binding) []string {
	width := 0
	for _, b := range keys {
		width = max(width, ansi.StringWidth(b.Help().Key))
	}
	lines := make([]string, 0, len(keys))
	for _, b := range keys {
		lines = append(lines, widget.Padded(b.Help().Key, width)+"  "+l.Say(widget.Faint, b.Help().Desc))
	}
	return lines
}

// keyGroups returns keys by group. Of keys that are told together only the first has a
// text.
func keyGroups(keys [][]action) [][]key.Binding {
	groups := make([][]key.Binding, len(keyGroupTitles()))
	seen := map[string]bool{}
	for _, of := range keys {
		for _, a := range of {
			// What a screen does with a key comes before what is done elsewhere.
			if name := a.Help().Key; name != "" && !seen[name] {
				seen[name] = true
				groups[a.group] = append(groups[a.group], a.Binding)
			}
		}
	}
	return groups
}
