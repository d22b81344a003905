// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"maps"
	"sync"
	"time"
)

// Memory remembers the verdicts about pods that nobody asks about, in one cluster as it is, for
// all queues that are decided in it. The zero value is ready to use. Safe for concurrent use.
type Memory struct {
	mutex  sync.Mutex
	byKind map[string]Remembered
}

// Remembered is a verdict about pods that are equal to the scheduler.
type Remembered struct {
	// Namespace is the namespace of the decided pod.
	Namespace string
	// At is the time of the cluster, Took is how long it took to decide.
	At      time.Time
	Took    time.Duration
	verdict *Verdict
}

func (m *Memory) get(kind string) *Verdict {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.byKind[kind].verdict
}

func (m *Memory) add(kind string, r Remembered) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.byKind == nil {
		m.byKind = map[string]Remembered{}
	}
	m.byKind[kind] = r
}

// Keep takes over the verdicts of another cluster that are still true.
func (m *Memory) Keep(from *Memory, isTrue func(*Remembered) bool) {
	from.mutex.Lock()
	known := maps.Clone(from.byKind)
	from.mutex.Unlock()
	maps.DeleteFunc(known, func(_ string, r Remembered) bool { return !isTrue(&r) })
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.byKind = known
}
