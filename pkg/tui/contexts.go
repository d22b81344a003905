// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/find"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/guard"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/picture"
)

// Contexts are the clusters that the dashboard can go to.
type Contexts interface {
	// Names are those of the contexts, in their order.
	Names() ([]string, error)
	// Connect connects to one. The connection ends with ctx.
	Connect(ctx context.Context, name string) (Connection, error)
}

// Connection is a cluster that the dashboard is connected to.
type Connection struct {
	Source picture.Source
	// Name is the address of the server.
	Name    string
	Changer guard.Changer
}

// app shows the dashboard of one cluster at a time. Each has its own [Model], so that
// nothing of one cluster is left when another is shown.
type app struct {
	ctx   context.Context
	opts  Options
	shown *Model
	// leave ends all that is done for the dashboard that is shown.
	leave context.CancelFunc
	// turn counts the dashboards. What comes from an earlier one is too late.
	turn int
	size tea.WindowSizeMsg
}

type (
	// turnMsg is a message of one of the dashboards.
	turnMsg struct {
		turn int
		msg  tea.Msg
	}
	// openMsg asks for the dashboard of another context.
	openMsg struct{ name string }
	// connectedMsg has the connection to a cluster.
	connectedMsg struct {
		connection Connection
		err        error
	}
)

func newApp(ctx context.Context, opts Options) *app {
	a := &app{ctx: ctx, opts: opts}
	ctx, cancel := context.WithCancel(ctx)
	a.leave = func() {
		cancel()
		if opts.Leave != nil {
			opts.Leave()
		}
	}
	a.shown = New(ctx, opts)
	return a
}

// Init starts the first dashboard.
func (a *app) Init() tea.Cmd { return a.own(a.shown.Init()) }

// View draws the dashboard that is shown.
func (a *app) View() tea.View { return a.shown.View() }

// Update passes on what happened, or goes to another cluster.
func (a *app) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if of, ok := msg.(turnMsg); ok {
		if of.turn != a.turn {
			return a, nil
		}
		msg = of.msg
	}
	switch msg := msg.(type) {
	case openMsg:
		return a, a.open(msg.name)
	case tea.WindowSizeMsg:
		a.size = msg
	}
	_, cmd := a.shown.Update(msg)
	return a, a.own(cmd)
}

// open leaves the cluster that is shown and connects to another.
func (a *app) open(name string) tea.Cmd {
	a.leave()
	a.turn++
	ctx, cancel := context.WithCancel(a.ctx)
	a.leave = cancel
	opts, contexts := a.opts, a.opts.Contexts
	opts.Source, opts.Changer, opts.Name, opts.Context = nil, nil, name, name
	opts.connect = func(ctx context.Context) (Connection, error) { return contexts.Connect(ctx, name) }
	a.shown = New(ctx, opts)
	_, cmd := a.shown.Update(a.size)
	return a.own(tea.Batch(cmd, a.shown.Init()))
}

// own marks the messages of a command as those of the dashboard that is shown. Those for
// Bubble Tea itself stay as they are.
func (a *app) own(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	turn := a.turn
	return func() tea.Msg {
		switch msg := cmd().(type) {
		case nil:
			return nil
		case tea.BatchMsg:
			owned := make(tea.BatchMsg, 0, len(msg))
			for _, one := range msg {
				owned = append(owned, (&app{turn: turn}).own(one))
			}
			return owned
		default:
			if strings.HasPrefix(reflect.TypeOf(msg).PkgPath(), "charm.land/bubbletea") {
				return msg
			}
			return turnMsg{turn, msg}
		}
	}
}

// connect connects to the cluster, where that is not done yet.
func (m *Model) connect() tea.Cmd {
	ctx, connect := m.ctx, m.opts.connect
	return func() tea.Msg {
		connection, err := connect(ctx)
		return connectedMsg{connection, err}
	}
}

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
		lines[i] = m.look.Say(look.Bad, lines[i])
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
	return choose(m.host, "context", func() []find.Item {
		items := make([]find.Item, 0, len(names))
		for _, name := range names {
			kind := ""
			if name == m.opts.Context {
				kind = "now"
			}
			items = append(items, find.Item{Kind: kind, Name: name})
		}
		return items
	}, func(item find.Item) tea.Cmd {
		return func() tea.Msg { return openMsg{item.Name} }
	})
}
