// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

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
