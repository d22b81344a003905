// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"sync"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Delta is the change from one snapshot to another one: to a later one of the same cluster, or
// to a what-if snapshot. Snapshots share the objects that did not change, so that a Delta
// compares pointers, and looks into objects only where the pointers differ. It is safe for
// concurrent use.
type Delta struct {
	Before, After *snapshot.Snapshot
	reach         func() reach
}

// Between returns the change from one snapshot to another one. It takes no time until somebody
// asks for a part of it.
func Between(before, after *snapshot.Snapshot) *Delta {
	d := &Delta{Before: before, After: after}
	d.reach = sync.OnceValue(d.findReach)
	return d
}

// Any reports whether anything changed but time. Resource versions and heartbeats of nodes do
// not count.
func (d *Delta) Any() bool { return d.reach().all || len(d.reach().namespaces) > 0 }

// Touches reports whether the change may affect answers about pods and claims in a namespace.
func (d *Delta) Touches(namespace string) bool {
	return d.reach().all || d.reach().namespaces[namespace]
}
