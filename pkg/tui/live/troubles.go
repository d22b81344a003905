// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// Troubles are the problems of a cluster, for the window title and the bell.
type Troubles struct {
	// Broken counts the pools that are neither usable nor empty.
	Broken int
	// Waiting counts the pods that wait for devices, by namespace.
	Waiting map[string]int
	// Names are the names of all problems that a bell rings for.
	Names []string
}

// stuckAfter is how long a pod waits before the bell rings for it: most are placed within
// a second.
const stuckAfter = 30 * time.Second

// FindTroubles lists the problems in p. Evictions are included only if the bell needs them.
func FindTroubles(p *Picture, evictions bool) Troubles {
	t := Troubles{Waiting: map[string]int{}}
	for _, pool := range Broken(p.Pools) {
		t.Broken++
		t.Names = append(t.Names, "pool "+inventory.PoolName(pool))
	}
	for _, pod := range p.Waiting {
		t.Waiting[pod.Namespace]++
		if p.Cluster.Snapshot.Now().Sub(pod.CreationTimestamp.Time) >= stuckAfter {
			t.Names = append(t.Names, "pod "+string(pod.UID)+" "+pod.Namespace+"/"+pod.Name)
		}
	}
	if !evictions {
		return t
	}
	for _, taint := range p.Inventory.Taints() {
		for i := range taint.Pods {
			if taint.Pods[i].Evicted {
				t.Names = append(t.Names, "eviction "+taint.Pods[i].Namespace+"/"+taint.Pods[i].Name)
			}
		}
	}
	return t
}

// Broken returns the pools that are neither usable nor empty.
func Broken(pools []api.Pool) []*api.Pool {
	var broken []*api.Pool
	for i := range pools {
		if state := pools[i].State; state != api.PoolStateUsable && state != api.PoolStateEmpty {
			broken = append(broken, &pools[i])
		}
	}
	return broken
}
