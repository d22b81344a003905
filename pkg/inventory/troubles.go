// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Troubles are the problems of a cluster that the window title and the bell tell.
type Troubles struct {
	// Broken counts the pools that are neither usable nor empty.
	Broken int
	// Waiting counts the pods that wait for devices, by namespace.
	Waiting map[string]int
	// Names has a name for each trouble that a bell rings for.
	Names []string
}

// stuckAfter is how long a pod waits before the bell rings for it: most are placed within
// a second.
const stuckAfter = 30 * time.Second

// Troubles lists the problems of the cluster and its pools. Evictions are only looked for
// where a bell rings for them.
func (v *Inventory) Troubles(pools []api.Pool, evictions bool) Troubles {
	t := Troubles{Waiting: map[string]int{}}
	for _, pool := range broken(pools) {
		t.Broken++
		t.Names = append(t.Names, "pool "+PoolName(pool))
	}
	for _, pod := range v.cluster.Waiting() {
		t.Waiting[pod.Namespace]++
		if v.cluster.Snapshot.Now().Sub(pod.CreationTimestamp.Time) >= stuckAfter {
			t.Names = append(t.Names, "pod "+string(pod.UID)+" "+pod.Namespace+"/"+pod.Name)
		}
	}
	if !evictions {
		return t
	}
	for _, taint := range v.Taints() {
		for i := range taint.Pods {
			if taint.Pods[i].Evicted {
				t.Names = append(t.Names, "eviction "+taint.Pods[i].Namespace+"/"+taint.Pods[i].Name)
			}
		}
	}
	return t
}

// broken lists the pools that are neither usable nor empty.
func broken(pools []api.Pool) []*api.Pool {
	var broken []*api.Pool
	for i := range pools {
		if state := pools[i].State; state != api.PoolStateUsable && state != api.PoolStateEmpty {
			broken = append(broken, &pools[i])
		}
	}
	return broken
}
