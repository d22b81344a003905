// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"sync"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Verdicts remembers the answers for pods that nobody asks about, in one cluster as it is, for
// all queues that are decided in it. The zero value is ready to use. Safe for concurrent use.
type Verdicts struct {
	mutex  sync.Mutex
	byKind map[string]*api.Explanation
}

func (v *Verdicts) get(kind string) *api.Explanation {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.byKind[kind]
}

// add remembers of an answer what is needed to go through a queue. The devices of its requests
// would take much memory.
func (v *Verdicts) add(kind string, answer *api.Explanation) {
	brief := *answer
	brief.Claims = nil
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.byKind == nil {
		v.byKind = map[string]*api.Explanation{}
	}
	v.byKind[kind] = &brief
}
