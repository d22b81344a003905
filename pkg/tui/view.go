// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// headLines counts the lines above the screen.
const headLines = 2

// View draws the dashboard.
func (m *Model) View() tea.View {
	body := ""
	if m.cannotConnect() {
		body = m.unreachable()
	} else {
		body = m.top().view(m.host)
	}
	if rows := strings.Split(body, "\n"); len(rows) > m.bodyHeight() {
		// On the smallest terminals a screen is higher than what is left for it.
		body = strings.Join(rows[:m.bodyHeight()], "\n")
	}
	taken := m.live.Taken(&m.look)
	if m.opts.Past != nil && m.opts.Past.WentBack() {
		taken = m.look.Say(widget.Warning, "back at") + "  " + taken
	}
	title := clusterTitle(&m.look, m.opts.Context, m.opts.Name, m.namespace, max(m.width-ansi.StringWidth(taken)-1, 1))
	head := headLine(&m.look, title, taken, m.width)
	lines := []string{head, m.where(), body, m.status(), m.foot()}
	v := tea.NewView(m.look.Fit(strings.Join(lines, "\n")))
	v.AltScreen = true
	v.WindowTitle = m.look.Fit(windowTitle(m.opts.cluster(), m.live.Brief(m.namespace)))
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

// where names the shown view, or the path to the screen.
func (m *Model) where() string {
	if len(m.stack) == 1 {
		return tabLine(&m.look, m.view, m.counts(), m.width)
	}
	titles := make([]string, 0, len(m.stack))
	for _, s := range m.stack {
		titles = append(titles, s.title())
	}
	return pathLine(&m.look, titles, m.width)
}

// counts returns the numbers beside the names of views: the pods that wait or cannot work with their
// devices, and the causes.
func (m *Model) counts() map[views.ID]int {
	counts := map[views.ID]int{views.Pending: m.live.WaitingPods(m.namespace)}
	if found := m.causes(); found != nil {
		counts[views.Pending] += found.Blocked()
		counts[views.Causes] = len(found.Lines)
	}
	return counts
}

// status returns the current error, else the dashboard's current work, else the gaps, else what a step
// through a recording changed.
func (m *Model) status() string {
	gaps := m.live.Picture().Unread()
	tone, text := m.live.Status(m.keys.freeze.Help().Key)
	switch {
	case m.message != "":
		return m.look.Say(widget.Warning, m.oneLine(m.message))
	case m.cannotConnect():
		// The screen says why.
		return ""
	case m.line.Asks():
		return m.look.Say(widget.Faint, m.oneLine(m.line.Help()))
	case text != "":
		return m.look.Say(tone, m.oneLine(text))
	case m.live.Picture() == nil:
		return m.look.Say(widget.Faint, "reading "+m.oneLine(m.opts.Name))
	case !m.live.Picture().KnowsNamespace(m.namespace):
		return m.look.Say(widget.Warning, m.oneLine("namespace "+m.namespace+" does not exist"))
	case len(gaps) > 0:
		more := ""
		if len(gaps) > 1 {
			more = fmt.Sprintf("  %s shows %d more", m.keys.gaps.Help().Key, len(gaps)-1)
		}
		text := ansi.Truncate(m.oneLine(gaps[0]), m.width-len(more), m.look.Glyphs.More)
		return m.look.Say(widget.Warning, text+more)
	}
	if list, ok := m.top().(*listScreen); ok && m.opts.Past != nil && list.id != views.Causes {
		// The overview and the list of the causes have a line for it.
		return m.look.Say(widget.Faint, m.oneLine(m.live.Changes(m.namespace).String()))
	}
	return ""
}

// foot returns the typed text, or the useful keys.
func (m *Model) foot() string {
	if m.line.Asks() {
		return m.line.View()
	}
	bindings := m.top().bindings(m.host)
	if m.cannotConnect() {
		bindings = []key.Binding{m.keys.goTo}
	}
	if m.opts.Past != nil {
		bindings = append([]key.Binding{m.keys.later, m.keys.laterCause}, bindings...)
	}
	if _, types := m.top().(typist); types {
		return keyLine(&m.look, append(bindings, m.keys.quitAlways()), m.width)
	}
	leave := m.leave()[0].Binding
	return keyLine(&m.look, append(bindings, m.keys.help, leave), m.width)
}
