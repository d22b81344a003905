// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Cluster has the facts of a snapshot about devices: where they are, who has them, how much
// of them is left, and which pods can go where. It is safe for concurrent use.
type Cluster struct {
	Snapshot   *snapshot.Snapshot
	Gates      *Gates
	Pools      *Pools
	Usage      *Usage
	Partitions *Partitions
	Claims     *Claims
	Nodes      *Nodes
	Taints     *Taints
	// Evaluators evaluate selectors for devices as the allocator sees them. Amended
	// clusters with the same devices share them.
	Evaluators *selector.Evaluators
	// behaviors are the behaviors of the release's scheduler, see [BehaviorChanges], and
	// varying the behaviors in which the possible releases of the cluster differ.
	behaviors, varying map[Behavior]bool
	lost               func() []LostPool
	waiting            func() []*corev1.Pod
	// proved has, by behavior, a pod with a message of the scheduler that proves it.
	proved map[Behavior]*corev1.Pod
	// memory has the results of packages above.
	memory *memory
	// amended counts the amendments that led to this cluster, plus one.
	amended int
}

// Follower is a result about a cluster that a package above computes and keeps with
// [Remember].
type Follower interface {
	// Follow returns the part of it that still holds in the cluster after a change. It must
	// not keep the old cluster in memory.
	Follow(after *Cluster, d *Delta) Follower
}

// memory has the followers of a cluster by their types.
type memory struct {
	mutex     sync.RWMutex
	followers map[reflect.Type]Follower
}

// LostPools lists the lost pools by driver and name. There are none if slices could not be
// read. A device that is [DeviceReady] is not lost: its driver has moved it into a pod.
func (c *Cluster) LostPools() []LostPool { return c.lost() }

// LostPoolsOf lists the lost pools of a claim's devices, with the claim's devices in each.
func (c *Cluster) LostPoolsOf(claim *resourceapi.ResourceClaim) []LostPool {
	same := func(other *resourceapi.ResourceClaim) bool {
		return other.Namespace == claim.Namespace && other.Name == claim.Name
	}
	var lost []LostPool
	for _, p := range c.LostPools() {
		if !slices.ContainsFunc(p.Claims, same) {
			continue
		}
		p.Claims = []*resourceapi.ResourceClaim{claim}
		p.Devices = slices.DeleteFunc(slices.Clone(p.Devices), func(id DeviceID) bool {
			return !slices.ContainsFunc(c.Usage.Holders(id), func(h Holder) bool { return same(h.Claim) })
		})
		lost = append(lost, p)
	}
	return lost
}

// MapsNodeResources reports whether allocations have a device that stands for resources of
// its node like cpu or memory (KEP-5517). The scheduler then checks whether the node has
// enough of them, which this program does not.
func (c *Cluster) MapsNodeResources(allocations []resourceapi.AllocationResult) bool {
	if !c.Gates.Enabled(GateNodeAllocatable) {
		return false
	}
	for i := range allocations {
		for j := range allocations[i].Devices.Results {
			result := &allocations[i].Devices.Results[j]
			device := c.Pools.Device(DeviceID{result.Driver, result.Pool, result.Device})
			if device != nil && len(device.NodeAllocatableResources) > 0 {
				return true
			}
		}
	}
	return false
}

// Proof returns a pod with a message that only a scheduler with a behavior writes, nil if
// there is none.
func (c *Cluster) Proof(so Behavior) *corev1.Pod { return c.proved[so] }

// Behaves reports whether the scheduler of the cluster's release has a behavior. If the
// release is not known, the newest kubelet's release counts, or the library's.
func (c *Cluster) Behaves(so Behavior) bool { return c.behaviors[so] }

// Varies reports whether the release is not known, and a behavior depends on it.
func (c *Cluster) Varies(so Behavior) bool { return c.varying[so] }

// Scheduler names the kube-scheduler whose behaviors count.
func (c *Cluster) Scheduler() string {
	if release := c.Snapshot.BinaryVersion(); release != "" {
		return "kube-scheduler " + release
	}
	return fmt.Sprintf("kube-scheduler of 1.%d", cmp.Or(c.Snapshot.Skew.From, snapshot.NewestMinor))
}

// Fixed returns the pull request that ends a behavior of the scheduler, and the first
// release that has it, see [fixedBehavior].
func (c *Cluster) Fixed(b Behavior) (upstream int, release string) {
	return fixedBehavior(b, cmp.Or(c.Snapshot.BinaryVersion(), fmt.Sprintf("1.%d.999", c.Snapshot.Skew.From)))
}
