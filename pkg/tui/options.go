// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
)

// Options configure a dashboard.
type Options struct {
	Source live.Source
	// Fixed is true if the source never changes.
	Fixed bool
	// Past is Source if that is a recording, else nil.
	Past *live.Past
	// Name is the address of a server, or a file. Context is its name in the kubeconfig,
	// empty for a file.
	Name, Context string
	// Namespace is the only one whose claims and pods are shown, empty for all.
	Namespace string
	// Now is the clock, and After makes a command that brings a message later;
	// nil for the real ones.
	Now   func() time.Time
	After func(time.Duration, tea.Msg) tea.Cmd
	// Mouse is true to begin with the mouse on, Color if colors may be used.
	Mouse, Color bool
	// Bell is true to ring when the cluster gets worse.
	Bell bool
	// Changer makes changes of the cluster that somebody asks for and confirms; nil
	// where none may be made.
	Changer Changer
	// Contexts are the other clusters to go to; nil for none. Leave ends the connection of
	// Source then; it may be nil.
	Contexts Contexts
	Leave    func()
	// connect makes the connection, where there is no Source yet.
	connect func(ctx context.Context) (Connection, error)
	// fewColors is true on a terminal with no more than 16 colors.
	fewColors bool
	// Settings are how the user wants the dashboard.
	Settings Settings
	// Env looks up variables of the environment.
	Env func(string) string
}

// cluster returns the common name of the cluster.
func (o *Options) cluster() string { return cmp.Or(o.Context, o.Name) }

// Contexts are the clusters that the dashboard can go to.
type Contexts interface {
	// Names returns the names of the contexts, in their order.
	Names() ([]string, error)
	// Connect connects to one. The connection ends with ctx.
	Connect(ctx context.Context, name string) (Connection, error)
}

// Connection is a cluster that the dashboard is connected to.
type Connection struct {
	Source live.Source
	// Name is the address of the server.
	Name    string
	Changer Changer
}
