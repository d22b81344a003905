// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"maps"
	"sync"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Verdicts remembers the answers for pods that nobody asks about, in one cluster as it is, for
// all queues that are decided in it. The zero value is ready to use. Safe for concurrent use.
type Verdicts struct {
	mutex  sync.Mutex
	byKind map[string]Verdict
}

// Verdict is what is remembered for pods that are equal to the scheduler.
type Verdict struct {
	// Namespace is that of the pod that the answer was found for.
	Namespace string
	// At is the time of the cluster, Took is how long it took to find the answer.
	At     time.Time
	Took   time.Duration
	answer *api.Explanation
}

func (v *Verdicts) get(kind string) *api.Explanation {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.byKind[kind].answer
}

// add remembers of an answer what is needed to go through a queue. The devices of its requests
// would take much memory.
func (v *Verdicts) add(kind string, verdict Verdict) {
	brief := *verdict.answer
	brief.Claims = nil
	verdict.answer = &brief
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.byKind == nil {
		v.byKind = map[string]Verdict{}
	}
	v.byKind[kind] = verdict
}

// Keep takes over those of another cluster that are still true.
func (v *Verdicts) Keep(from *Verdicts, isTrue func(*Verdict) bool) {
	from.mutex.Lock()
	known := maps.Clone(from.byKind)
	from.mutex.Unlock()
	maps.DeleteFunc(known, func(_ string, verdict Verdict) bool { return !isTrue(&verdict) })
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.byKind = known
}
