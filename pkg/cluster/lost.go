// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// LostPool is a pool with allocated devices and without slices. The kubelet deletes the
// slices of a driver 30 seconds after it disconnects (wipeResourceSlices of
// pkg/kubelet/cm/dra/plugin); running pods keep their devices.
type LostPool struct {
	Driver, Name string
	// Node is the node of the allocations, empty if that is not one node.
	Node string
	// Devices are the allocated devices, by name; Claims the claims.
	Devices []DeviceID
	Claims  []*resourceapi.ResourceClaim
}

// findLost lists the lost pools by driver and name.
func findLost(snap *snapshot.Snapshot, pools *Pools, usage *Usage) []LostPool {
	if snap.Gap(snapshot.ResourceSlices) != nil {
		return nil
	}
	published := map[snapshot.PoolID]bool{}
	for _, pool := range pools.All() {
		published[snapshot.PoolID{Driver: pool.Driver, Name: pool.Name}] = true
	}
	var lost []LostPool
	for name, pool := range usage.pools.All() {
		if published[name] {
			continue
		}
		p := LostPool{Driver: name.Driver, Name: name.Name}
		nodes := map[string]bool{}
		for h := range pool.Holders() {
			if DeviceReady(h.Claim, h.Result) {
				continue
			}
			if id := (DeviceID{name.Driver, name.Name, h.Result.Device}); !slices.Contains(p.Devices, id) {
				p.Devices = append(p.Devices, id)
			}
			if !slices.Contains(p.Claims, h.Claim) {
				p.Claims = append(p.Claims, h.Claim)
			}
			p.Node = AllocatedNode(h.Claim.Status.Allocation)
			nodes[p.Node] = true
		}
		if len(p.Devices) == 0 {
			continue
		}
		if len(nodes) > 1 {
			p.Node = ""
		}
		slices.SortFunc(p.Devices, func(a, b DeviceID) int { return english.CompareNames(a.Device, b.Device) })
		slices.SortFunc(p.Claims, func(a, b *resourceapi.ResourceClaim) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), english.CompareNames(a.Name, b.Name))
		})
		lost = append(lost, p)
	}
	slices.SortFunc(lost, func(a, b LostPool) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), english.CompareNames(a.Name, b.Name))
	})
	return lost
}

// ByDriver groups pools that are sorted by driver.
func ByDriver(pools []LostPool) [][]LostPool {
	var groups [][]LostPool
	for i := range pools {
		if i == 0 || pools[i].Driver != pools[i-1].Driver {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], pools[i])
	}
	return groups
}

// AllocatedNode returns the node that an allocation names, empty if it names none.
func AllocatedNode(allocation *resourceapi.AllocationResult) string {
	if allocation == nil || allocation.NodeSelector == nil {
		return ""
	}
	terms := allocation.NodeSelector.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchExpressions) != 0 || len(terms[0].MatchFields) != 1 {
		return ""
	}
	if f := terms[0].MatchFields[0]; f.Key == metav1.ObjectNameField && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
		return f.Values[0]
	}
	return ""
}
