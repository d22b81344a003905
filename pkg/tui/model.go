// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Model is the dashboard: its views, and which of them is shown.
type Model struct {
	*host
	opts  Options
	views []screen
	// first is one of the views.
	first *overviewScreen
	view  views.ID
	mouse bool
	// sized is true once the size of the cluster has chosen between map and strips.
	sized bool
}

// New makes a dashboard. Everything in the background ends with the context.
func New(ctx context.Context, opts Options) *Model {
	m := &Model{opts: opts, mouse: opts.Mouse, host: &host{
		ctx: ctx, now: opts.Now, keys: newKeyMap(), look: widget.NewLook(opts.Env), fixed: opts.Fixed, changer: opts.Changer,
		namespace: opts.Namespace, sorts: opts.Settings.Sort, width: 80, height: 24, panes: map[views.ID]paneChoice{},
	}}
	if m.now == nil {
		m.now = time.Now
	}
	after := opts.After
	if after == nil {
		after = func(d time.Duration, msg tea.Msg) tea.Cmd {
			return tea.Tick(d, func(time.Time) tea.Msg { return msg })
		}
	}
	m.live = live.New(ctx, live.Options{Source: opts.Source, Fixed: opts.Fixed, Bell: opts.Bell, Now: m.now, After: after})
	m.configure(&opts.Settings)
	m.catalog = &views.Catalog{Look: &m.look, Columns: opts.Settings.Columns}
	nodes := newList(views.Nodes, views.Scope{})
	m.first = newOverview(&m.look, nodes, m.now())
	m.views = []screen{m.first, nodes}
	for id := views.Pools; id <= views.Teams; id++ {
		m.views = append(m.views, newList(id, views.Scope{}))
	}
	for _, s := range m.views {
		m.order(s)
	}
	m.stack = []screen{m.views[m.view]}
	m.resize()
	return m
}

// Init takes the first picture and starts to listen.
func (m *Model) Init() tea.Cmd {
	if m.opts.connect != nil {
		return tea.Batch(connect(m.ctx, m.opts.connect), m.live.Start())
	}
	return m.live.Start()
}

// configure sets the dashboard up as its user wants it.
func (m *Model) configure(c *Settings) {
	m.look.SetTheme(cmp.Or(c.Theme, widget.NewTheme(widget.ThemeDefault)), m.opts.fewColors)
	// They were checked.
	_ = m.keys.choose(c.Keys)
	if id := slices.Index(views.Names(), strings.ToLower(c.View)); id >= 0 {
		m.view = views.ID(id)
	}
}

// connectedMsg has the connection to a cluster.
type connectedMsg struct {
	connection Connection
	err        error
}

// connect connects to the cluster, where that is not done yet.
func connect(ctx context.Context, open func(context.Context) (Connection, error)) tea.Cmd {
	return func() tea.Msg {
		connection, err := open(ctx)
		return connectedMsg{connection, err}
	}
}
