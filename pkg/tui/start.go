// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/arrange"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
)

// New makes a dashboard. Everything in the background ends with the context.
func New(ctx context.Context, opts Options) *Model {
	m := &Model{opts: opts, mouse: opts.Mouse, host: &host{
		ctx: ctx, now: opts.Now, keys: newKeyMap(), look: look.New(opts.Env), fixed: opts.Fixed, changer: opts.Changer,
		namespace: opts.Namespace, width: 80, height: 24,
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
	m.configure(&opts.Config)
	m.catalog = &views.Catalog{Look: &m.look, Reasons: m.live.Reasons, Diagnosis: m.live.Diagnosis, Columns: opts.Config.Columns}
	nodes := newList(views.Nodes, arrange.Scope{})
	m.first = newOverview(&m.look, nodes, m.now())
	m.views = []screen{m.first, nodes}
	for id := views.Pools; id <= views.Teams; id++ {
		m.views = append(m.views, newList(id, arrange.Scope{}))
	}
	m.stack = []screen{m.views[m.view]}
	m.resize()
	return m
}

// Init takes the first picture and starts to listen.
func (m *Model) Init() tea.Cmd {
	if m.opts.connect != nil {
		return tea.Batch(m.connect(), m.live.Start())
	}
	return m.live.Start()
}
