// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"context"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/ask"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/config"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/guard"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/picture"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
)

// Options are what a dashboard is made for.
type Options struct {
	Source picture.Source
	// Fixed is true if the source never changes.
	Fixed bool
	// Name says what is looked at: the address of a server, or a file. Context is how
	// the kubeconfig calls it, empty for a file.
	Name, Context string
	// Namespace is the only one whose claims and pods are shown, empty for all.
	Namespace string
	// Now is the clock, and After makes a command that brings a message later;
	// nil for the real ones.
	Now   func() time.Time
	After func(time.Duration, tea.Msg) tea.Cmd
	// Mouse is whether to begin with the mouse on, Color whether colors may be
	// used.
	Mouse, Color bool
	// Bell is whether to ring when the cluster gets worse.
	Bell bool
	// Changer makes changes of the cluster that somebody asks for and confirms; nil
	// where none may be made.
	Changer guard.Changer
	// Contexts are the other clusters to go to; nil for none. Leave ends the connection of
	// Source then; it may be nil.
	Contexts Contexts
	Leave    func()
	// connect makes the connection, where there is no Source yet.
	connect func(ctx context.Context) (Connection, error)
	// Config is how the user wants the dashboard.
	Config config.Config
	// Env looks up variables of the environment.
	Env func(string) string
}

// cluster is what is looked at, as people call it.
func (o *Options) cluster() string { return cmp.Or(o.Context, o.Name) }

// Model is the state of the dashboard.
type Model struct {
	ctx     context.Context
	opts    Options
	now     func() time.Time
	keys    keyMap
	look    look.Look
	catalog *views.Catalog
	width   int
	height  int

	started time.Time
	live    *live.Cluster

	namespace string

	views []screen
	// first and nodes are two of the views.
	first *overviewScreen
	nodes *listScreen
	view  views.ID
	// stack has the screens that were opened one from the other, the view first.
	stack []screen

	line    ask.Line
	mouse   bool
	message string
}

// screen is one page of the dashboard.
type screen interface {
	title() string
	resize(width, height int)
	// refresh works out what is not there yet, or not of the newest picture.
	refresh(m *Model) tea.Cmd
	// actions are what keys do on this screen, or do otherwise than elsewhere.
	actions(m *Model) []action
	// wheel scrolls by so many lines.
	wheel(m *Model, by int)
	// click is one at a place of the screen.
	click(m *Model, x, y int) tea.Cmd
	// view draws as many lines as the screen is high.
	view(m *Model) string
	// bindings are the keys that matter most here, for the line of keys.
	bindings(m *Model) []key.Binding
	// seen is what the screen shows of what is worked out for it.
	seen() live.Seen
}

// top is the screen that is shown.
func (m *Model) top() screen { return m.stack[len(m.stack)-1] }

// push opens a screen on top of the one that is shown.
func (m *Model) push(s screen) tea.Cmd {
	m.line.Close()
	m.stack = append(m.stack, s)
	m.resize()
	return m.refresh()
}

// refresh brings what is shown up to date.
func (m *Model) refresh() tea.Cmd {
	return tea.Batch(m.top().refresh(m), m.live.Work(m.top().seen()))
}

func (m *Model) resize() {
	m.line.Resize(m.width)
	for _, s := range m.stack {
		s.resize(m.width, m.bodyHeight())
	}
}

// bodyHeight is what titles, status and help leave to the screen.
func (m *Model) bodyHeight() int { return max(m.height-4, 1) }

// oneLine makes a text from outside fit to be a line of the screen.
func (m *Model) oneLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return ansi.Truncate(render.Escape(text), m.width, m.look.Glyphs.More)
}
