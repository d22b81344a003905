// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"fmt"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Ineligibility is why a device is eligible for no request, whatever is allocated.
type Ineligibility struct {
	// Reason says it in a few words.
	Reason string
	// Invalid is the defect of the pool, if that is the reason.
	Invalid string

	rank int
}

// How many checks a device passes before it is rejected. Of several nodes, the one counts
// where it passes most.
const (
	rankSlice = iota
	rankPool
	rankNodeOperations
	rankEligible
)

// Devices answers for the devices of one cluster. It is safe for concurrent use.
type Devices struct {
	facts *cluster.Cluster
	found func() ineligibilities
}

// New is about the devices of a cluster. Nothing is looked at before it is needed.
func New(facts *cluster.Cluster) *Devices {
	return &Devices{facts: facts, found: sync.OnceValue(func() ineligibilities { return findIneligible(facts) })}
}

// Ineligibility is why the allocator takes a device on no node, or nil if there is
// a node where nothing but claims, taints and counters can keep it from that.
// What may be because of nodes that could not be read is no reason.
func (e *Devices) Ineligibility(d *cluster.Device) *Ineligibility {
	if BindingGatesOff(e.facts.Gates, d) {
		return &Ineligibility{Reason: NeedsBindingGates}
	}
	known := e.found()
	if known.plain.Has(d.Pool) {
		return nil
	}
	why := known.of[d.Device]
	name, _, _ := d.NodeSelection()
	switch {
	case why != nil && why.rank == rankEligible:
		return nil
	case why != nil && (nodesComplete(e.facts) || ptr.Deref(name, "") != ""):
		return why
	}
	if ignored := e.facts.Pools.Ignored(d.Slice); ignored != nil {
		return ignoredSlice(ignored)
	}
	if !nodesComplete(e.facts) {
		return e.onAnyNode(d)
	}
	return &Ineligibility{Reason: OutOfReach(e.facts.Snapshot, d)}
}

// ineligibilityOnAnyNode is what is known about a device if nodes are not known.
func (e *Devices) onAnyNode(d *cluster.Device) *Ineligibility {
	switch {
	case d.Pool.Incomplete:
		return &Ineligibility{Reason: incompleteReason(d.Pool)}
	case d.Pool.Invalid != "":
		return invalidPool(d.Pool.Invalid)
	}
	if NodeOperationsGateOff(e.facts.Gates, d) {
		return &Ineligibility{Reason: "needs the feature gate " + cluster.GateOptionalNodeOps}
	}
	return nil
}

// StillTaken counts the devices of a slice of an earlier generation that the
// allocator takes all the same: for a node that no slice of the newest one is
// for, the slices that are there can be a complete pool ([cluster.NodePool]).
func (e *Devices) StillTaken(slice *resourceapi.ResourceSlice) int {
	count := 0
	for i := range slice.Spec.Devices {
		if why := e.found().of[&slice.Spec.Devices[i]]; why != nil && why.rank == rankEligible {
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

// ineligibilities are why devices are rejected.
type ineligibilities struct {
	// plain pools have no such device; see [cluster.Pools.Plain].
	plain sets.Set[*cluster.Pool]
	// of has all devices of the other pools that a node can see, also those that
	// are taken.
	of map[*resourceapi.Device]*Ineligibility
}

// findIneligible looks at all pools that are not plain from all nodes.
func findIneligible(c *cluster.Cluster) ineligibilities {
	nodes, _ := c.Nodes.All()
	return findIneligibleExcept(c, c.Pools.Plain(nodes))
}

func findIneligibleExcept(c *cluster.Cluster, plain sets.Set[*cluster.Pool]) ineligibilities {
	found := ineligibilities{plain: plain, of: map[*resourceapi.Device]*Ineligibility{}}
	note := func(device *resourceapi.Device, why *Ineligibility) {
		if before := found.of[device]; before == nil || before.rank < why.rank {
			found.of[device] = why
		}
	}
	notes := func(slice *resourceapi.ResourceSlice, why *Ineligibility) {
		for i := range slice.Spec.Devices {
			note(&slice.Spec.Devices[i], why)
		}
	}
	free := &Ineligibility{rank: rankEligible}
	// Nodes to which a pool looks the same have one view of it in common.
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
		for _, pool := range pools {
			at := view{pool, skips}
			if seen[at] {
				continue
			}
			seen[at] = true
			for i := range pool.Ignored {
				notes(pool.Ignored[i].Slice, ignoredSlice(&pool.Ignored[i]))
			}
			if why := ofPool(pool); why != nil {
				for _, slice := range pool.Slices {
					notes(slice, why)
				}
			}
			for i := range pool.Devices {
				d := &pool.Devices[i]
				switch {
				case NodeOperationsGateOff(c.Gates, d):
					note(d.Device, &Ineligibility{Reason: "needs the feature gate " + cluster.GateOptionalNodeOps, rank: rankNodeOperations})
				case SkipsNodeOperations(c.Gates, d) && !skips:
					note(d.Device, &Ineligibility{Reason: "the node does not declare " + cluster.GateOptionalNodeOps, rank: rankNodeOperations})
				default:
					note(d.Device, free)
				}
			}
		}
	}
	return found
}

// ofPool is why a node can use nothing of a pool, nil if it can.
func ofPool(p *cluster.NodePool) *Ineligibility {
	switch {
	case p.Outdated:
		return &Ineligibility{Reason: fmt.Sprintf("generation %d, the pool is at %d", p.Generation, p.Pool.Generation), rank: rankPool}
	case p.Incomplete:
		return &Ineligibility{Reason: incompleteReason(p.Pool), rank: rankPool}
	case p.Invalid != "":
		return invalidPool(p.Invalid)
	default:
		return nil
	}
}

func incompleteReason(pool *cluster.Pool) string {
	return "the pool is incomplete: " + pool.WhyIncomplete()
}

func invalidPool(defect string) *Ineligibility {
	return &Ineligibility{Reason: "the pool is invalid: " + defect, Invalid: defect, rank: rankPool}
}

func ignoredSlice(ignored *cluster.IgnoredSlice) *Ineligibility {
	reason := "the slice " + ignored.Reason
	if ignored.Gate != "" {
		reason += ", which needs the feature gate " + ignored.Gate
	}
	return &Ineligibility{Reason: reason, rank: rankSlice}
}

// NeedsBindingGates says what a device with binding conditions lacks where the
// gates for them are off: the allocator takes it for no request then
// (isSelectable).
const NeedsBindingGates = "has binding conditions, which need the feature gates " + cluster.GateBindingConditions + " and " + cluster.GateDeviceStatus

// BindingGatesOff reports whether a device has binding conditions without the
// gates for them; see [NeedsBindingGates].
func BindingGatesOff(gates *cluster.Gates, d *cluster.Device) bool {
	return len(d.BindingConditions) > 0 && !gates.BindingConditions()
}

// SkipsNodeOperations reports whether the allocator takes a device only for nodes
// that declare DRAOptionalNodeOperations, and only if that gate is on. Only the
// experimental implementation knows of the field (allocateDevice); the others
// hand out such devices like any other.
func SkipsNodeOperations(gates *cluster.Gates, d *cluster.Device) bool {
	return len(d.Slice.Spec.SkipNodeOperations) > 0 && gates.Channel() == cluster.ChannelExperimental
}

// NodeOperationsGateOff reports whether a device of [SkipsNodeOperations]
// lacks the gate.
func NodeOperationsGateOff(gates *cluster.Gates, d *cluster.Device) bool {
	return SkipsNodeOperations(gates, d) && !gates.Enabled(cluster.GateOptionalNodeOps)
}

// OutOfReach says what is the matter with a device that no node can reach.
func OutOfReach(snap *snapshot.Snapshot, d *cluster.Device) string {
	name, all, selector := d.NodeSelection()
	switch {
	case ptr.Deref(name, "") != "" && snap.Node(*name) != nil:
		return "the slices for the node cannot be read"
	case ptr.Deref(name, "") != "":
		return "the node does not exist"
	case ptr.Deref(all, false):
		return "there is no node"
	case selector != nil:
		return "no node matches the node selector"
	default:
		return "it is for no node"
	}
}
