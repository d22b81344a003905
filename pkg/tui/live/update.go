// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/diff"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// Start lets the clock run and, where there is a connection, takes the first picture.
func (c *Cluster) Start() tea.Cmd {
	if !c.Connected() {
		return c.tick()
	}
	return tea.Batch(c.Take(), c.listen(0), c.tick())
}

// Connect begins to look at a cluster that was not connected.
func (c *Cluster) Connect(source Source) tea.Cmd {
	c.opts.Source = source
	return tea.Batch(c.Take(), c.listen(0))
}

// Update takes in a message. It never waits for anything.
func (c *Cluster) Update(msg Message, seen Seen) (tea.Cmd, News) {
	switch msg := msg.(type) {
	case ChangedMsg:
		c.dirty = true
		return tea.Batch(c.listen(rest), c.Take()), NoNews
	case ClockMsg:
		return tea.Batch(c.tick(), c.aged()), NoNews
	case pictureMsg:
		return c.arrived(msg)
	case restedMsg:
		c.resting = false
		if c.dirty {
			return c.Take(), NoNews
		}
	case causesMsg:
		return c.foundCauses(msg)
	case causesRestedMsg:
		c.pausing = false
		return c.find(seen), NoNews
	}
	return nil, NoNews
}

// Turn takes a picture now: the source is at another moment. What changes is what differs from the
// moment before.
func (c *Cluster) Turn() tea.Cmd {
	c.dirty, c.resting, c.pausing = true, false, false
	if c.causes != nil {
		c.before, c.last = glance{c.causes.At, c.causes}, glance{}
	}
	return c.Take()
}

// Work works out the visible parts that are not known yet.
func (c *Cluster) Work(seen Seen) tea.Cmd { return c.find(seen) }

// Freeze keeps the picture, or goes on.
func (c *Cluster) Freeze(seen Seen) tea.Cmd {
	if c.frozen = !c.frozen; c.frozen {
		return nil
	}
	return tea.Batch(c.Take(), c.Work(seen))
}

// arrived takes in a new picture.
func (c *Cluster) arrived(msg pictureMsg) (tea.Cmd, News) {
	c.taking = false
	if msg.err != nil {
		c.problem = msg.err
		return nil, NoNews
	}
	if msg.picture == nil {
		c.idle, c.problem, c.resting = msg.delta, nil, true
		return c.opts.After(max(rest, restTimes*msg.took), restedMsg{}), NoNews
	}
	if msg.delta != nil {
		c.happened.Add(diff.Events(msg.delta, c.opts.Now()))
	}
	c.picture, c.troubles, c.idle, c.problem = msg.picture, msg.troubles, nil, nil
	c.resting = true
	pause := max(rest, restTimes*(c.picture.Cost+c.work))
	return tea.Batch(c.ring(), c.opts.After(pause, restedMsg{})), NewPicture
}

// ring rings the bell of the terminal if the cluster got worse.
func (c *Cluster) ring() tea.Cmd {
	if !c.opts.Bell || c.opts.Fixed || !c.alarm.Worse(c.picture.Cluster.Snapshot.Now(), c.troubles.Names) {
		return nil
	}
	return tea.Raw("\a")
}

// aged takes a picture although nothing changed, so that ages and countdowns go
// on: the more rarely, the more a picture costs. What cannot be known any more does
// not get older.
func (c *Cluster) aged() tea.Cmd {
	if _, trouble := c.trouble(); c.opts.Fixed || c.picture == nil || trouble != nil || !c.old() {
		return nil
	}
	return c.Take()
}

const (
	// rest is the least time between two pictures. After an expensive one it is
	// longer: what collecting garbage takes comes on top.
	rest      = 250 * time.Millisecond
	restTimes = 30
)

// Take takes a picture unless one is being taken, it is too early for another,
// the cluster is frozen, or there is no connection. As long as nothing changes that it shows, and
// it is not old, the picture before is kept.
func (c *Cluster) Take() tea.Cmd {
	if c.taking || c.resting || c.frozen || !c.Connected() {
		return nil
	}
	c.taking, c.dirty = true, false
	before, idle, old := c.picture, c.idle, c.old()
	ctx, source, evictions := c.ctx, c.opts.Source, c.opts.Bell
	return func() tea.Msg {
		var troubles inventory.Troubles
		var d *cluster.Delta
		start, snap := time.Now(), source.Snapshot()
		if before != nil {
			if d = before.since(snap, idle); !old && !d.Any() {
				return pictureMsg{delta: d, took: time.Since(start)}
			}
		}
		p, err := take(ctx, source, snap, before, d)
		if err == nil {
			troubles = p.Inventory.Troubles(p.Pools, evictions)
		}
		return pictureMsg{picture: p, delta: d, troubles: troubles, err: err}
	}
}

// agedTimes keeps a dashboard on which nothing happens below one percent of a
// processor: collecting the garbage of a picture takes as long again as the picture. On a
// busy machine it seems to take longer than it does: nobody would believe a clock that is
// behind by more than agedMost.
const (
	agedTimes = 400
	agedMost  = 2 * time.Minute
)

// old reports whether the ages that the picture shows have to go on.
func (c *Cluster) old() bool {
	return c.picture != nil && c.opts.Now().Sub(c.picture.Cluster.Snapshot.Now()) >= min(agedTimes*(c.picture.Cost+c.work), agedMost)
}

// listen waits for the next change, but not before a pause: each one has the screen drawn.
func (c *Cluster) listen(pause time.Duration) tea.Cmd {
	ctx, changed := c.ctx, c.opts.Source.Changed()
	if changed == nil {
		return nil
	}
	return func() tea.Msg {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			return ChangedMsg{}
		}
	}
}

func (c *Cluster) tick() tea.Cmd { return c.opts.After(time.Second, ClockMsg{}) }
