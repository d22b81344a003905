// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Devices answers for the devices of one cluster, whatever is requested and
// allocated. It is safe for concurrent use.
type Devices struct {
	// Facts are the facts of the cluster.
	Facts *cluster.Cluster
	found func() outcomes
}

// outcomes are the results of the checks of devices on the nodes.
type outcomes struct {
	// plain pools have no device that is rejected; see [cluster.Pools.Plain].
	plain sets.Set[*cluster.Pool]
	// reasons has all devices of the other pools that a node can see, including allocated
	// ones: the furthest reason over all nodes, nil for a device that is eligible on at
	// least one.
	reasons map[*resourceapi.Device]*Reason
}

// NewDevices returns the devices of a cluster, computed on demand.
func NewDevices(facts *cluster.Cluster) *Devices {
	return &Devices{Facts: facts, found: sync.OnceValue(func() outcomes {
		nodes, _ := facts.Nodes.All()
		return lookAt(facts, facts.Pools.Plain(nodes))
	})}
}

// Reason returns why the allocator uses a device on no node, or nil if on some node only
// claims, taints and counters can prevent that. Nodes that could not be read may be such
// nodes.
func (e *Devices) Reason(d *cluster.Device) *Reason {
	if r := bindingConditions(e.Facts.Gates, d); r != nil {
		return r
	}
	found := e.found()
	if found.plain.Has(d.Pool) {
		return nil
	}
	r, known := found.reasons[d.Device]
	name, _, _ := d.NodeSelection()
	complete := nodesComplete(e.Facts)
	if known && (r == nil || complete || ptr.Deref(name, "") != "") {
		return r
	}
	if ignored := e.Facts.Pools.Ignored(d.Slice); ignored != nil {
		return IgnoredReason(ignored)
	}
	switch {
	case complete:
		return Unreached(e.Facts.Snapshot, d)
	case d.Pool.Incomplete:
		return incompletePool(d.Pool)
	case d.Pool.Invalid != "":
		return invalidPool(d.Pool, d.Pool.Invalid)
	default:
		return onNode(e.Facts, d, nil)
	}
}

// StillTaken counts the devices of a slice of an earlier generation that the allocator
// still uses: for a node without slices of the newest generation, the older slices can be a
// complete pool ([cluster.NodePool]).
func (e *Devices) StillTaken(slice *resourceapi.ResourceSlice) int {
	count := 0
	reasons := e.found().reasons
	for i := range slice.Spec.Devices {
		if r, known := reasons[&slice.Spec.Devices[i]]; known && r == nil {
			count++
		}
	}
	return count
}

// nodesComplete reports whether all nodes of the cluster are known.
func nodesComplete(c *cluster.Cluster) bool {
	_, known := c.Nodes.All()
	return known && c.Snapshot.Gap(snapshot.ResourceNodes) == nil
}

// lookAt looks at all pools that are not plain from all nodes.
func lookAt(c *cluster.Cluster, plain sets.Set[*cluster.Pool]) outcomes {
	found := outcomes{plain: plain, reasons: map[*resourceapi.Device]*Reason{}}
	// Nodes to which a pool looks the same share one view of it.
	type view struct {
		pool  *cluster.NodePool
		skips bool
	}
	seen := map[view]bool{}
	nodes, known := c.Nodes.All()
	for _, node := range nodes {
		pools, err := c.Pools.ForExcept(node, plain)
		if err != nil {
			// The allocator fails for this node.
			continue
		}
		skips := !known || slices.Contains(node.Status.DeclaredFeatures, cluster.GateOptionalNodeOps)
		if !known {
			// Only its name is known.
			node = nil
		}
		for _, pool := range pools {
			at := view{pool, skips}
			if seen[at] {
				continue
			}
			seen[at] = true
			EachDevice(pool, func(d *cluster.Device, r *Reason) {
				if r == nil {
					r = onNode(c, d, node)
				}
				if have, known := found.reasons[d.Device]; !known || have != nil && (r == nil || r.Check > have.Check) {
					found.reasons[d.Device] = r
				}
			})
		}
	}
	return found
}
