// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
)

const helpTitle = "keys"

// toggleHelp opens the help about what is shown, or leaves it.
func (m *Model) toggleHelp() tea.Cmd {
	if s, ok := m.top().(*pageScreen); ok && s.page == helpTitle {
		return m.back()
	}
	return m.push(m.helpPage())
}

// helpPage has the keys of the screen that is shown, and what its signs mean.
func (m *Model) helpPage() screen {
	about := m.top()
	_, isList := about.(*listScreen)
	columns := m.keyColumns(about)
	page := newPage(helpTitle+" in "+about.title(), func(_ context.Context, _ *picture, width int) (string, error) {
		lines := look.Columns(columns, width)
		if isList {
			lines = append(lines, "", m.look.Say(look.Strong, "Filters")+"  "+filterHelp)
		}
		lines = append(lines, "", m.look.Legend())
		for i := range lines {
			lines[i] = ansi.Wrap(lines[i], width, "")
		}
		return strings.Join(lines, "\n"), nil
	})
	page.page = helpTitle
	return page
}

// keyColumns are the keys that do something on a screen, a column for each group. Of
// keys that are told together only the first has a text.
func (m *Model) keyColumns(about screen) [][]string {
	groups := make([][]key.Binding, len(keyGroupTitles()))
	for _, of := range [][]action{about.actions(m), {{m.keys.views, keysMove, nil}}, m.actions()} {
		for _, a := range of {
			if a.Help().Key != "" {
				groups[a.group] = append(groups[a.group], a.Binding)
			}
		}
	}
	columns := make([][]string, 0, len(groups))
	for i, title := range keyGroupTitles() {
		width := 0
		for _, b := range groups[i] {
			width = max(width, ansi.StringWidth(b.Help().Key))
		}
		column := []string{m.look.Say(look.Strong, title)}
		for _, b := range groups[i] {
			column = append(column, look.Padded(b.Help().Key, width)+"  "+m.look.Say(look.Faint, b.Help().Desc))
		}
		columns = append(columns, column)
	}
	return columns
}
