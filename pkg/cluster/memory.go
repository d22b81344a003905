// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// follow returns the memory of the cluster after a change.
func (m *memory) follow(c *Cluster, d *Delta) *memory {
	after := &memory{followers: map[reflect.Type]Follower{}}
	if m == nil {
		return after
	}
	m.mutex.RLock()
	before := maps.Clone(m.followers)
	m.mutex.RUnlock()
	for of, follower := range before {
		after.followers[of] = follower.Follow(c, d)
	}
	return after
}

// Remember returns the cluster's follower of type T. If it has none, Remember calls work,
// which must not call Remember, and keeps the result.
func Remember[T Follower](c *Cluster, work func() T) T {
	of := reflect.TypeFor[T]()
	c.memory.mutex.RLock()
	known, found := c.memory.followers[of].(T)
	c.memory.mutex.RUnlock()
	if found {
		return known
	}
	c.memory.mutex.Lock()
	defer c.memory.mutex.Unlock()
	if known, found := c.memory.followers[of].(T); found {
		return known
	}
	made := work()
	c.memory.followers[of] = made
	return made
}

// Answers that time alone can change are found again after a while: the more rarely, the
// longer it takes.
const (
	youngAge   = time.Minute
	youngTimes = 10000
)

// Young reports whether an answer that was found at a time, and took so long to find, is not
// expected to have changed by time alone.
func Young(at time.Time, took time.Duration, now time.Time) bool {
	return now.Sub(at) < max(youngAge, youngTimes*took)
}

// Forgetful returns the same cluster without followers.
func (c *Cluster) Forgetful() *Cluster {
	forgetful := *c
	forgetful.memory = (*memory)(nil).follow(&forgetful, nil)
	return &forgetful
}

// WithEvents returns the same cluster with other events, on which none of its facts
// depends.
func (c *Cluster) WithEvents(events []*corev1.Event) *Cluster {
	snap, other := *c.Snapshot, *c
	snap.Events, other.Snapshot = events, &snap
	return &other
}
