// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// openMsg asks for the dashboard of another context.
type openMsg struct{ name string }

// connected begins to look at the cluster, or says why that is not possible.
func (m *Model) connected(msg connectedMsg) tea.Cmd {
	if msg.err != nil {
		m.live.Fail(msg.err)
		return nil
	}
	m.changer, m.opts.Name = msg.connection.Changer, msg.connection.Name
	return m.live.Connect(msg.connection.Source)
}

// unreachable says why there is nothing to see of a cluster, and the way out.
func (m *Model) unreachable() string {
	text := ansi.Wrap(render.EscapeLines(fmt.Sprintf("context %s: %v", m.opts.Context, m.live.Problem())), m.width, "")
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = m.look.Say(widget.Bad, lines[i])
	}
	lines = append(lines, "", m.keys.goTo.Help().Key+" "+contextsName+" goes to another context, or tries this one again")
	for len(lines) < m.bodyHeight() {
		lines = append(lines, "")
	}
	return strings.Join(lines[:m.bodyHeight()], "\n")
}

// contextsName is how the list of contexts is called.
const contextsName = "contexts"

// chooseContext goes to another cluster.
func (m *Model) chooseContext() tea.Cmd {
	names, err := m.opts.Contexts.Names()
	if err != nil {
		m.message = err.Error()
		return nil
	}
	return choose(m.host, "context", func() []widget.Found {
		items := make([]widget.Found, 0, len(names))
		for _, name := range names {
			kind := ""
			if name == m.opts.Context {
				kind = "now"
			}
			items = append(items, widget.Found{Kind: kind, Name: name})
		}
		return items
	}, func(item widget.Found) tea.Cmd {
		return func() tea.Msg { return openMsg{item.Name} }
	})
}
