// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"maps"
	"sync"
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// memory remembers the verdicts about pods that nobody asks about, in one cluster as it is, for
// all queues that are decided in it. It is safe for concurrent use.
type memory struct {
	mutex sync.Mutex
	// byKind has the verdicts by the signatures of pods, which tell all that a verdict depends
	// on besides the cluster.
	byKind map[string]remembered
}

// remembered is a verdict about pods that are equal to the scheduler.
type remembered struct {
	*Verdict
	// namespace is the namespace of the decided pod.
	namespace string
	// at is the time of the cluster, took is how long it took to decide.
	at   time.Time
	took time.Duration
}

// memoryOf returns the memory of a cluster.
func memoryOf(c *cluster.Cluster) *memory {
	return cluster.Remember(c, func() *memory { return &memory{byKind: map[string]remembered{}} })
}

// Follow returns the memory of the cluster after a change: the verdicts that the change does not
// touch, and that time alone is not expected to change.
func (m *memory) Follow(c *cluster.Cluster, d *cluster.Delta) cluster.Follower {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	after := &memory{byKind: maps.Clone(m.byKind)}
	maps.DeleteFunc(after.byKind, func(_ string, r remembered) bool {
		return d.Touches(r.namespace) || !cluster.Young(r.at, r.took, c.Snapshot.Now())
	})
	return after
}

func (m *memory) get(kind string) *Verdict {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.byKind[kind].Verdict
}

func (m *memory) add(kind string, r remembered) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.byKind[kind] = r
}
