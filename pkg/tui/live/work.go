// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

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
