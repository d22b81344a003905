// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"reflect"
	"strings"

	tea "charm.land/bubbletea/v2"
)

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

// turnMsg is a message of one of the dashboards.
type turnMsg struct {
	turn int
	msg  tea.Msg
}

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

// own marks the messages of a command as messages of the shown dashboard. Messages for
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
