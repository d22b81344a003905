// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

const (
	// rest is the least time between two pictures. After an expensive one it is
	// longer: what collecting garbage takes comes on top.
	rest      = 250 * time.Millisecond
	restTimes = 30
)

// Take takes a picture unless one is being taken, it is too early for another,
// the cluster is frozen, or there is no connection.
func (c *Cluster) Take() tea.Cmd {
	if c.taking || c.resting || c.frozen || !c.Connected() {
		return nil
	}
	c.taking, c.dirty = true, false
	before := c.picture
	ctx, source, evictions := c.ctx, c.opts.Source, c.opts.Bell
	return func() tea.Msg {
		var troubles inventory.Troubles
		p, d, err := Take(ctx, source, before)
		if err == nil {
			troubles = p.Inventory.Troubles(p.Pools, evictions)
		}
		return pictureMsg{p, d, troubles, err}
	}
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
