// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/about"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/picture"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
)

// headLines are those above the screen.
const headLines = 2

// View draws the dashboard.
func (m *Model) View() tea.View {
	body := ""
	if m.live.Problem() != nil && !m.live.Connected() && len(m.stack) == 1 {
		body = m.unreachable()
	} else {
		body = m.top().view(m)
	}
	if rows := strings.Split(body, "\n"); len(rows) > m.bodyHeight() {
		// On the smallest terminals a screen is higher than what is left for it.
		body = strings.Join(rows[:m.bodyHeight()], "\n")
	}
	lines := []string{m.head(), m.tabs(), body, m.status(), m.foot()}
	v := tea.NewView(m.look.Fit(strings.Join(lines, "\n")))
	v.AltScreen = true
	v.WindowTitle = m.look.Fit(m.windowTitle())
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

// head says what is looked at, and how old the picture is.
func (m *Model) head() string {
	right := m.live.Taken(&m.look)
	left := ansi.Truncate(m.title(), max(m.width-ansi.StringWidth(right)-1, 0), m.look.Glyphs.More)
	return look.Padded(left, m.width-ansi.StringWidth(right)) + right
}

func (m *Model) title() string {
	text := m.look.Say(look.Strong, "kubectl dra top") + "  " + render.Escape(m.opts.Name)
	if m.namespace != "" {
		text += "  namespace " + render.Escape(m.namespace)
	}
	return text
}

// tabs are the views, and the way to what is shown.
func (m *Model) tabs() string {
	if len(m.stack) > 1 {
		titles := make([]string, 0, len(m.stack))
		for _, s := range m.stack {
			titles = append(titles, render.Escape(s.title()))
		}
		path := strings.Join(titles, " > ")
		// Where one is matters more than where one came from.
		return m.look.Tab.Render(look.Padded(ansi.TruncateLeft(path, max(ansi.StringWidth(path)-m.width, 0), ""), m.width))
	}
	var line strings.Builder
	for id, text := range m.tabTexts() {
		if views.ID(id) == m.view {
			text = m.look.Tab.Render(text)
		}
		line.WriteString(text)
	}
	return ansi.Truncate(line.String(), m.width, "")
}

// tabTexts are the names of the views as they stand beside each other. Where there is no
// room for all, they are short or, on a narrow terminal, only the one that is shown has more
// than its key.
func (m *Model) tabTexts() []string {
	texts := make([]string, 0, len(m.views))
	for _, names := range [][]string{views.Names(), views.ShortNames(), make([]string, len(m.views))} {
		texts = texts[:0]
		width := 0
		for id, name := range names {
			if views.ID(id) == m.view {
				name = m.view.String()
			}
			text := strings.TrimSuffix(views.ID(id).Key()+" "+name, " ")
			switch views.ID(id) {
			case m.view:
				// The brackets are for terminals that cannot reverse.
				text = "[" + text + "]"
			case m.view + 1:
			default:
				text = " " + text
			}
			texts = append(texts, text)
			width += len(text)
		}
		if width <= m.width {
			break
		}
	}
	return texts
}

// status says what is wrong, else what the dashboard does, else what could not
// be read.
func (m *Model) status() string {
	gaps := m.live.Picture().Unread()
	tone, text := m.live.Status(m.keys.freeze.Help().Key)
	switch {
	case m.message != "":
		return m.look.Say(look.Warning, m.oneLine(m.message))
	case m.line.Asks():
		return m.look.Say(look.Faint, m.oneLine(m.line.Help()))
	case text != "":
		return m.look.Say(tone, m.oneLine(text))
	case m.live.Picture() == nil:
		return m.look.Say(look.Faint, "reading "+m.oneLine(m.opts.Name))
	case !m.live.Picture().KnowsNamespace(m.namespace):
		return m.look.Say(look.Warning, m.oneLine("namespace "+m.namespace+" does not exist"))
	case len(gaps) > 0:
		more := ""
		if len(gaps) > 1 {
			more = fmt.Sprintf("  %s shows %d more", m.keys.gaps.Help().Key, len(gaps)-1)
		}
		text := ansi.Truncate(m.oneLine(gaps[0]), m.width-len(more), m.look.Glyphs.More)
		return m.look.Say(look.Warning, text+more)
	default:
		return ""
	}
}

// gapsPage lists what could not be read.
func (m *Model) gapsPage() screen {
	gaps := m.live.Picture().Unread()
	return newPage(&about.Text{Name: "what could not be read", Write: func(_ context.Context, _ *picture.Picture, width int) (string, error) {
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

// foot is what is typed, or the keys that are of use here.
func (m *Model) foot() string {
	if m.line.Asks() {
		return m.line.View()
	}
	bindings := m.top().bindings(m)
	if len(m.stack) > 1 {
		bindings = append([]key.Binding{m.keys.back}, bindings...)
	}
	if _, types := m.top().(typist); types {
		quit := m.keys.quit
		quit.SetHelp("ctrl+c", "quit")
		return m.help.ShortHelpView(append(bindings, quit))
	}
	bindings = append(bindings, m.keys.help, m.keys.quit)
	return m.help.ShortHelpView(fitting(bindings, m.width))
}

// fitting leaves out keys before the last two until the line is not too long:
// those for help and for the way out are always there.
func fitting(bindings []key.Binding, width int) []key.Binding {
	length := func() int {
		n := 0
		for _, b := range bindings {
			n += ansi.StringWidth(b.Help().Key) + 1 + ansi.StringWidth(b.Help().Desc) + 2
		}
		return n - 2
	}
	for len(bindings) > 2 && length() > width {
		bindings = append(bindings[:len(bindings)-3:len(bindings)-3], bindings[len(bindings)-2:]...)
	}
	return bindings
}

// filled is a line with as many empty ones below as make a screen.
func filled(line string, height int) string {
	return line + strings.Repeat("\n", max(height-1, 0))
}
