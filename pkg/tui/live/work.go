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
	// reasonTimes are the same for reasons that are found again, firstTimes for new
	// reasons.
	reasonTimes = 40
	firstTimes  = 1
	// diagnosisRest is the least time between two diagnoses. After an expensive one
	// it is longer, by diagnosisTimes.
	diagnosisRest  = 10 * time.Second
	diagnosisTimes = 60
)

// Take takes a picture unless one is being taken, it is too early for another,
// the cluster is frozen, or there is no connection.
func (c *Cluster) Take() tea.Cmd {
	if c.taking || c.resting || c.frozen || !c.Connected() {
		return nil
	}
	c.taking, c.dirty = true, false
	before := c.picture
	ctx, source, reasons, evictions := c.ctx, c.opts.Source, c.Reasons, c.opts.Bell
	return func() tea.Msg {
		var troubles inventory.Troubles
		p, d, err := Take(ctx, source, before)
		if err == nil {
			troubles = p.Inventory.Troubles(p.Pools, evictions)
		}
		if d != nil {
			reasons.Follow(p, before, d)
		}
		return pictureMsg{p, d, troubles, err}
	}
}

// reason works out why a claim is pending or a pod waits, one at a time, while somebody can
// see it.
func (c *Cluster) reason(seen Seen) tea.Cmd {
	if c.reasoning || c.picture == nil || c.frozen || !seen.Reasons {
		return nil
	}
	ctx, p, known, now := c.ctx, c.picture, c.Reasons, c.opts.Now()
	of, more := known.Next(p, now)
	if !more {
		return nil
	}
	c.reasoning = true
	times := time.Duration(reasonTimes)
	if known.Get(of).At.IsZero() {
		times = firstTimes
	}
	return func() tea.Msg {
		start := time.Now()
		done := known.Work(ctx, p, of, now)
		// What the first one had to find out about the queue makes others of the same picture
		// cheap.
		for took := time.Since(start); done && times == reasonTimes && time.Since(start) < 2*took; {
			if of, more = known.Next(p, now); !more {
				break
			}
			done = known.Work(ctx, p, of, now)
		}
		return reasonMsg{done, times * time.Since(start)}
	}
}

// diagnose makes the checks of doctor, while somebody can see what they find.
func (c *Cluster) diagnose(seen Seen) tea.Cmd {
	if c.diagnosing || c.picture == nil || c.frozen || !seen.Findings || !c.Diagnosis.Due(c.picture, c.opts.Fixed, c.opts.Now()) {
		return nil
	}
	c.diagnosing = true
	ctx, p, known, fixed, now := c.ctx, c.picture, c.Diagnosis, c.opts.Fixed, c.opts.Now()
	return func() tea.Msg {
		start := time.Now()
		done := known.Work(ctx, p, fixed, now)
		return diagnosedMsg{done, time.Since(start)}
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
