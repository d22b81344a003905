// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/diff"
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
