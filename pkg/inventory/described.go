// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"sync"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// described has the lists of a cluster that take long to make and do not depend on time, each
// once somebody asked for it. It implements [cluster.Follower].
type described struct {
	pools   keptList[api.Pool]
	classes keptList[api.Class]
	nodes   keptList[Node]
}

// Follow keeps the lists if nothing changed that an answer depends on.
func (d *described) Follow(_ *cluster.Cluster, delta *cluster.Delta) cluster.Follower {
	if delta.Any() {
		return &described{}
	}
	return d
}

// describedIn returns the lists of a cluster.
func describedIn(c *cluster.Cluster) *described {
	return cluster.Remember(c, func() *described { return &described{} })
}

// keptList is a list that is made when it is first asked for. It is safe for concurrent use.
type keptList[T any] struct {
	mu    sync.Mutex
	made  bool
	items []T
}

// of returns a copy of the list. What failed to be made is made again.
func (l *keptList[T]) of(makes func() ([]T, error)) ([]T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.made {
		items, err := makes()
		if err != nil {
			return nil, err
		}
		l.made, l.items = true, items
	}
	return slices.Clone(l.items), nil
}
