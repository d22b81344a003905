// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Cluster is what a snapshot says about devices: where they are, who has them, what
// is left, and which pods can go where. It is safe for concurrent use.
type Cluster struct {
	Snapshot   *snapshot.Snapshot
	Gates      *Gates
	Pools      *Pools
	Usage      *Usage
	Partitions *Partitions
	Claims     *Claims
	Nodes      *Nodes
	Taints     *Taints
	// behaviors are what the scheduler of the release does, see [Changes].
	behaviors map[Behavior]bool
}

// New prepares everything that is the same for all nodes. The snapshot must
// not change afterwards; nothing in it is changed.
func New(snap *snapshot.Snapshot) *Cluster {
	return build(snap, nil)
}

// Amended is the cluster of another snapshot. That takes less time than [New]
// where the snapshots have lists in common, and much less where only claims and
// pods differ.
func (c *Cluster) Amended(snap *snapshot.Snapshot) *Cluster {
	return build(snap, c)
}

func build(snap *snapshot.Snapshot, sibling *Cluster) *Cluster {
	c := &Cluster{Snapshot: snap}
	if sibling != nil && sibling.Snapshot.BinaryVersion() == snap.BinaryVersion() {
		c.behaviors = sibling.behaviors
	} else {
		c.behaviors = behaviors(snap.BinaryVersion())
	}
	if sibling == nil {
		c.Gates = newGates(snap, c.behaviors)
	} else {
		c.Gates = sibling.Gates.of(snap, c.behaviors)
	}
	c.Usage = newUsage(snap.Claims, c.Gates.consumableCapacity)
	if sibling == nil {
		c.Claims = newClaims(snap, c.Gates, nil)
	} else {
		c.Claims = newClaims(snap, c.Gates, sibling.Claims)
	}
	c.Nodes = newNodes(snap, c.Gates, c.Claims)
	if sibling != nil && sibling.publishes(c) {
		c.Pools, c.Nodes.made = sibling.Pools, sibling.Nodes.made
	} else {
		c.Pools = newPools(patchedSlices(snap, c.Gates.taintRules), &c.Gates.features)
	}
	c.Partitions = newPartitions(c.Gates, c.Usage, c.Pools)
	c.Taints = &Taints{snap: snap, gates: c.Gates, pools: c.Pools, usage: c.Usage, claims: c.Claims}
	return c
}

// publishes reports whether pools and devices are the same for another snapshot:
// the same lists of slices, taint rules and nodes, looked at with the same
// features.
func (c *Cluster) publishes(other *Cluster) bool {
	return c.Gates.features == other.Gates.features &&
		sameList(c.Snapshot.Slices, other.Snapshot.Slices) && sameList(c.Snapshot.TaintRules, other.Snapshot.TaintRules) &&
		sameList(c.Snapshot.Nodes, other.Snapshot.Nodes) && slices.Equal(c.Snapshot.Gaps, other.Snapshot.Gaps)
}

// MapsNodeResources reports whether allocations have a device that stands for
// resources of its node like cpu or memory (KEP-5517). Then the scheduler goes
// on to check whether the node has enough of them, which this program does
// not.
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
