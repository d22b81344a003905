// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"maps"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/diff"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Options say what a cluster is followed for.
type Options struct {
	// Source may be nil as long as there is no connection.
	Source Source
	// Fixed is true if the source never changes.
	Fixed bool
	// Bell is true to ring when the cluster gets worse.
	Bell bool
	// Now is the clock, and After makes a command that brings a message later.
	Now   func() time.Time
	After func(time.Duration, tea.Msg) tea.Cmd
}

// Cluster is a cluster that is followed.
type Cluster struct {
	ctx  context.Context //nolint:containedctx // a model cannot be given one
	opts Options

	picture  *Picture
	troubles inventory.Troubles
	// idle is the change since the picture on which nothing depends that it shows; nil if there
	// is none.
	idle *cluster.Delta
	// problem is why there is no newer picture.
	problem error
	// taking is true while a picture is taken, resting while none may be yet.
	taking, resting bool
	// work is how long the last screen took to be worked out of a picture.
	work time.Duration
	// worked is true after the first one.
	worked bool
	// dirty is true if the source has changed since the picture.
	dirty  bool
	frozen bool

	alarm    AlarmMemory
	happened diff.EventLog
	// causes are the newest ones, noCauses is why there are no newer ones. finding is true while
	// they are looked for, pausing for a while afterwards.
	causes           *Causes
	noCauses         error
	finding, pausing bool
	// last has the causes at the last key, before the causes of an earlier look at the dashboard.
	last, before glance
}

// New follows a cluster. All work in the background ends with the context.
func New(ctx context.Context, opts Options) *Cluster {
	return &Cluster{ctx: ctx, opts: opts}
}

// Seen has the visible parts of the dashboard.
type Seen struct {
	// Causes is true if it shows causes, or what they are found from; Namespace is the namespace
	// whose causes they are, empty for all.
	Causes    bool
	Namespace string
}

// News has the parts to draw again.
type News int

// The news.
const (
	NoNews News = iota
	// NewCauses are newer causes, or why there are none.
	NewCauses
	// NewPicture is a newer picture.
	NewPicture
)

// Message is one for a cluster.
type Message interface{ ofCluster() }

type (
	// ChangedMsg says that the source changed, or has trouble.
	ChangedMsg struct{}
	// ClockMsg comes every second.
	ClockMsg struct{}
	// pictureMsg has a new picture, and the change since the one before; no picture if nothing
	// depends on that change, which took so long to find out.
	pictureMsg struct {
		picture  *Picture
		delta    *cluster.Delta
		troubles inventory.Troubles
		took     time.Duration
		err      error
	}
	// restedMsg ends the pause after a picture.
	restedMsg struct{}
	// causesMsg has new causes, and how long it took to find them. Without causes and an error,
	// the search was ended.
	causesMsg struct {
		causes *Causes
		err    error
		took   time.Duration
	}
	// causesRestedMsg ends the pause after causes.
	causesRestedMsg struct{}
)

func (ChangedMsg) ofCluster()      {}
func (ClockMsg) ofCluster()        {}
func (pictureMsg) ofCluster()      {}
func (restedMsg) ofCluster()       {}
func (causesMsg) ofCluster()       {}
func (causesRestedMsg) ofCluster() {}

// Connected reports whether there is a connection.
func (c *Cluster) Connected() bool { return c.opts.Source != nil }

// Fail says why there is no connection.
func (c *Cluster) Fail(err error) { c.problem = err }

// Problem returns why there is no connection, or no newer picture; nil if there is.
func (c *Cluster) Problem() error { return c.problem }

// Picture returns the newest one; nil if there is none yet.
func (c *Cluster) Picture() *Picture { return c.picture }

// Snapshot returns the cluster as it is now, which may be newer than the picture.
func (c *Cluster) Snapshot() *snapshot.Snapshot { return c.opts.Source.Snapshot() }

// Happened returns what happened between pictures.
func (c *Cluster) Happened() *diff.EventLog { return &c.happened }

// Worked notes how long the work of a screen on a picture took: frequent work has to be
// cheap. Causes are not looked for before the first time, so that the first screen is there soon.
func (c *Cluster) Worked(took time.Duration, seen Seen) tea.Cmd {
	first := !c.worked
	c.work, c.worked = took, true
	if !first {
		return nil
	}
	return c.find(seen)
}

// trouble returns what keeps the source from knowing more, and since when; nil if nothing
// does.
func (c *Cluster) trouble() (since time.Time, err error) {
	if !c.Connected() {
		return time.Time{}, nil
	}
	return c.opts.Source.Trouble()
}

// Forget is how long a trouble has to be over before it counts as a new one when it
// comes again: what comes and goes is one trouble.
const Forget = 10 * time.Minute

// AlarmMemory knows the troubles that there were. The zero value has seen nothing.
type AlarmMemory struct {
	// seen is when there was a trouble last; nil before the first look.
	seen map[string]time.Time
}

// Worse takes in all troubles that there are now, each by a name of its own, and reports
// whether one of them is new. At the first look none is: that is how things are.
func (m *AlarmMemory) Worse(now time.Time, troubles []string) bool {
	first := m.seen == nil
	if first {
		m.seen = map[string]time.Time{}
	}
	maps.DeleteFunc(m.seen, func(_ string, at time.Time) bool { return now.Sub(at) >= Forget })
	worse := false
	for _, trouble := range troubles {
		if _, known := m.seen[trouble]; !known && !first {
			worse = true
		}
		m.seen[trouble] = now
	}
	return worse
}
