// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// actions returns the actions of the dashboard, whatever it shows.
func (m *Model) actions() []action {
	k := &m.keys
	page := func(page func(item any) *views.Text, otherwise string) func() tea.Cmd {
		return func() tea.Cmd { return m.closer(page, otherwise) }
	}
	count := views.ID(len(m.views))
	change := k.change
	if m.fixed {
		// The help does without it.
		change.SetHelp("", "")
	}
	return append(append(m.timeActions(), []action{
		{k.back, keysMove, m.back},
		{k.next, keysMove, func() tea.Cmd { return m.show((m.view + 1) % count) }},
		{k.prev, keysMove, func() tea.Cmd { return m.show((m.view + count - 1) % count) }},
		{k.goTo, keysFind, m.chooseView},
		{k.find, keysFind, m.chooseObject},
		{k.filter, keysFind, m.askForFilter},
		{k.namespace, keysFind, just(m.askForNamespace)},
		{k.everywhere, keysFind, m.everyNamespace},
		{k.why, keysCloser, page(views.WhyText, "no claim or pod to explain in this row")},
		{k.yaml, keysCloser, page(views.YAMLText, "no object in this row")},
		{k.tree, keysCloser, page(views.TreeText, "no related objects")},
		{change, keysCloser, func() tea.Cmd { return askForChange(m.host) }},
		{k.freeze, keysDashboard, m.freeze},
		{k.gaps, keysDashboard, func() tea.Cmd { return m.push(gapsPage(m.live.Picture().Unread())) }},
		{k.mouse, keysDashboard, just(func() { m.mouse = !m.mouse })},
		{k.help, keysDashboard, m.openHelp},
		{k.suspend, keysDashboard, func() tea.Cmd { return tea.Suspend }},
	}...), m.leave()...)
}

// leave returns the keys that end the dashboard. In a screen that was opened from another one, as in
// a pager, all but one of them lead back.
func (m *Model) leave() []action {
	quit := func() tea.Cmd { return tea.Quit }
	if len(m.stack) == 1 {
		return []action{{m.keys.quit, keysDashboard, quit}}
	}
	back := m.keys.quit
	back.SetKeys(slices.DeleteFunc(slices.Clone(back.Keys()), func(key string) bool { return key == quitAlways })...)
	back.SetHelp(back.Help().Key, "back")
	return []action{{back, keysMove, m.back}, {m.keys.quitAlways(), keysDashboard, quit}}
}

// askForFilter asks which rows of a list to show: on the overview, of the list that has the rows of the
// section with the cursor.
func (m *Model) askForFilter() tea.Cmd {
	var cmd tea.Cmd
	prompt, left := "filter", (func() tea.Cmd)(nil)
	if m.top() == screen(m.first) {
		place, ok := m.first.page.Section().(*views.Place)
		if !ok {
			m.message = "no list has these rows"
			return nil
		}
		cmd = m.show(place.View)
		prompt, left = "filter "+place.View.String(), func() tea.Cmd { return m.show(views.Overview) }
	}
	if s, ok := m.top().(*listScreen); ok {
		s.askForFilter(m.host, prompt, left)
		return cmd
	}
	m.message = "only lists can be filtered"
	return cmd
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
		for _, namespace := range p.Cluster.Snapshot.Namespaces {
			names = append(names, namespace.Name)
		}
	}
	m.line.Open(&widget.Question{
		Prompt: "namespace: ", Value: before, Help: "tab completes; leave empty for all namespaces", Proposed: names,
		Answered: choose, Left: func() tea.Cmd { return choose(before) },
	})
}

// freeze keeps the picture, or goes on.
func (m *Model) freeze() tea.Cmd {
	if m.fixed {
		m.message = "a file does not change"
		if m.opts.Past != nil {
			m.message = m.keys.later.Help().Key + " goes through the recording"
		}
		return nil
	}
	return m.live.Freeze(m.seen())
}

// openHelp opens the help for the current screen.
func (m *Model) openHelp() tea.Cmd {
	return m.push(newHelp(m.top(), m.top().actions(m.host), []action{{m.keys.views, keysMove, nil}}, m.actions()))
}

// closer opens a page about the selected item.
func (m *Model) closer(page func(item any) *views.Text, otherwise string) tea.Cmd {
	if s, ok := m.top().(rows); ok {
		objects, suffer := views.ItemsOf(m.live.Picture(), s.row())
		for _, item := range append(objects, suffer...) {
			if next := page(item); next != nil {
				return m.push(newPage(next))
			}
		}
	}
	m.message = otherwise
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
