// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

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

// Ineligibility is why the allocator takes a device on no node, or nil if there is
// a node where nothing but claims, taints and counters can keep it from that.
// What may be because of nodes that could not be read is no reason.
func (a *Allocator) Ineligibility(d *Device) *Ineligibility {
	if a.BindingGatesOff(d) {
		return &Ineligibility{Reason: NeedsBindingGates}
	}
	known := a.ineligible()
	if known.plain.Has(d.Pool) {
		return nil
	}
	why := known.of[d.Device]
	name, _, _ := d.NodeSelection()
	switch {
	case why != nil && why.rank == rankEligible:
		return nil
	case why != nil && (a.nodesComplete() || ptr.Deref(name, "") != ""):
		return why
	}
	if ignored := a.pools.ignored(d.Slice); ignored != nil {
		return ignoredSlice(ignored)
	}
	if !a.nodesComplete() {
		return a.ineligibilityOnAnyNode(d)
	}
	return &Ineligibility{Reason: OutOfReach(a.snap, d)}
}

// ineligibilityOnAnyNode is what is known about a device if nodes are not known.
func (a *Allocator) ineligibilityOnAnyNode(d *Device) *Ineligibility {
	switch {
	case d.Pool.Incomplete:
		return &Ineligibility{Reason: incompleteReason(d.Pool)}
	case d.Pool.Invalid != "":
		return invalidPool(d.Pool.Invalid)
	}
	if a.NodeOperationsGateOff(d) {
		return &Ineligibility{Reason: "needs the feature gate " + gateOptionalNodeOps}
	}
	return nil
}

// StillTaken counts the devices of a slice of an earlier generation that the
// allocator takes all the same: for a node that no slice of the newest one is
// for, the slices that are there can be a complete pool ([NodePool]).
func (a *Allocator) StillTaken(slice *resourceapi.ResourceSlice) int {
	count := 0
	for i := range slice.Spec.Devices {
		if why := a.ineligible().of[&slice.Spec.Devices[i]]; why != nil && why.rank == rankEligible {
			count++
		}
	}
	return count
}

// nodesComplete reports whether all nodes of the cluster are known.
func (a *Allocator) nodesComplete() bool {
	return !a.nodesMadeUp() && a.snap.Gap(snapshot.ResourceNodes) == nil
}

// ineligibilities are why devices are rejected.
type ineligibilities struct {
	// plain pools have no such device; see [poolIndex.plain].
	plain sets.Set[*Pool]
	// of has all devices of the other pools that a node can see, also those that
	// are taken.
	of map[*resourceapi.Device]*Ineligibility
}

// plain are the pools that need no look from any node: each slice is for a node,
// by name, that there is, and there is nothing for which the allocator would
// refuse a device of it. Large fleets consist of them.
func (x *poolIndex) plain(nodes []*corev1.Node) sets.Set[*Pool] {
	found := sets.Set[*Pool]{}
	if x.unparsable {
		// The allocator fails for some nodes, whatever is on them.
		return found
	}
	names := make(sets.Set[string], len(nodes))
	for _, node := range nodes {
		names.Insert(node.Name)
	}
	odd := func(slice *sliceInfo) bool {
		spec := &slice.Spec
		return slice.ignored != nil || !names.Has(slice.target.name) || len(spec.SkipNodeOperations) > 0 ||
			len(spec.SharedCounters) > 0 && len(spec.Devices) > 0
	}
	for _, entry := range x.entries {
		pool := entry.pool
		if !pool.Incomplete && pool.Invalid == "" && len(pool.Obsolete) == 0 && !slices.ContainsFunc(entry.slices, odd) {
			found.Insert(pool)
		}
	}
	return found
}

// lookForBars looks at all pools that are not plain from all nodes.
func (a *Allocator) findIneligible() ineligibilities {
	nodes, _ := a.Nodes()
	return a.findIneligibleExcept(a.pools.plain(nodes))
}

func (a *Allocator) findIneligibleExcept(plain sets.Set[*Pool]) ineligibilities {
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
		pool  *NodePool
		skips bool
	}
	seen := map[view]bool{}
	nodes, known := a.Nodes()
	for _, node := range nodes {
		pools, err := a.pools.viewsOf(node, plain)
		if err != nil {
			// The allocator fails for this node.
			continue
		}
		skips := !known || slices.Contains(node.Status.DeclaredFeatures, gateOptionalNodeOps)
		for _, pool := range pools {
			at := view{pool, skips}
			if seen[at] {
				continue
			}
			seen[at] = true
			for i := range pool.Ignored {
				notes(pool.Ignored[i].Slice, ignoredSlice(&pool.Ignored[i]))
			}
			if why := pool.ineligibility(); why != nil {
				for _, slice := range pool.Slices {
					notes(slice, why)
				}
			}
			for i := range pool.Devices {
				d := &pool.Devices[i]
				switch {
				case a.NodeOperationsGateOff(d):
					note(d.Device, &Ineligibility{Reason: "needs the feature gate " + gateOptionalNodeOps, rank: rankNodeOperations})
				case a.SkipsNodeOperations(d) && !skips:
					note(d.Device, &Ineligibility{Reason: "the node does not declare " + gateOptionalNodeOps, rank: rankNodeOperations})
				default:
					note(d.Device, free)
				}
			}
		}
	}
	return found
}

// why is why a node can use nothing of a pool, nil if it can.
func (p *NodePool) ineligibility() *Ineligibility {
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

func incompleteReason(pool *Pool) string {
	return "the pool is incomplete: " + pool.WhyIncomplete()
}

// WhyIncomplete says how many slices of the newest generation there are, for a
// pool that is Incomplete. The allocator compares the number for equality
// (GatherPools, pools_*.go of k8s.io/dynamic-resource-allocation/structured): with
// a slice too many it takes no device of the pool either, for any node whose own
// slices are not exactly as many as the driver declares.
func (p *Pool) WhyIncomplete() string {
	extra := len(p.Slices) - int(p.Expected)
	if extra <= 0 {
		return fmt.Sprintf("%d of %d slices", len(p.Slices), p.Expected)
	}
	noun := "slices"
	if extra == 1 {
		noun = "slice"
	}
	text := fmt.Sprintf("%d %s too many, %d published and %d declared", extra, noun, len(p.Slices), p.Expected)
	oldest := slices.MinFunc(p.Slices, func(a, b *resourceapi.ResourceSlice) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	if oldest.CreationTimestamp.IsZero() {
		return text
	}
	return fmt.Sprintf("%s: the oldest, %s, was published at %s (generation %d)",
		text, oldest.Name, oldest.CreationTimestamp.UTC().Format(time.RFC3339), oldest.Spec.Pool.Generation)
}

func invalidPool(defect string) *Ineligibility {
	return &Ineligibility{Reason: "the pool is invalid: " + defect, Invalid: defect, rank: rankPool}
}

func ignoredSlice(ignored *IgnoredSlice) *Ineligibility {
	reason := "the slice " + ignored.Reason
	if ignored.Gate != "" {
		reason += ", which needs the feature gate " + ignored.Gate
	}
	return &Ineligibility{Reason: reason, rank: rankSlice}
}

// ignored finds out why the allocator does not look at a slice, nil if it does.
func (x *poolIndex) ignored(slice *resourceapi.ResourceSlice) *IgnoredSlice {
	id := poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
	at, found := slices.BinarySearchFunc(x.entries, id, func(e *poolEntry, id poolID) int {
		return cmp.Or(cmp.Compare(e.pool.Driver, id.driver), cmp.Compare(e.pool.Name, id.name))
	})
	if !found {
		return nil
	}
	for _, info := range x.entries[at].slices {
		if info.ResourceSlice == slice {
			return info.ignored
		}
	}
	return nil
}

// NeedsBindingGates says what a device with binding conditions lacks where the
// gates for them are off: the allocator takes it for no request then
// (isSelectable).
const NeedsBindingGates = "has binding conditions, which need the feature gates " + gateBindingConditions + " and " + gateDeviceStatus

// BindingGatesOff reports whether a device has binding conditions without the
// gates for them; see [NeedsBindingGates].
func (a *Allocator) BindingGatesOff(d *Device) bool {
	return len(d.BindingConditions) > 0 && !a.features.DeviceBindingAndStatus
}

// SkipsNodeOperations reports whether the allocator takes a device only for nodes
// that declare DRAOptionalNodeOperations, and only if that gate is on. Only the
// experimental implementation knows of the field (allocateDevice); the others
// hand out such devices like any other.
func (a *Allocator) SkipsNodeOperations(d *Device) bool {
	return len(d.Slice.Spec.SkipNodeOperations) > 0 && a.channel == channelExperimental
}

// NodeOperationsGateOff reports whether a device of [Allocator.SkipsNodeOperations]
// lacks the gate.
func (a *Allocator) NodeOperationsGateOff(d *Device) bool {
	return a.SkipsNodeOperations(d) && !a.features.OptionalNodeOperations
}

// NodeSelection are the fields that say which nodes a device is for.
func (d *Device) NodeSelection() (name *string, all *bool, selector *corev1.NodeSelector) {
	if ptr.Deref(d.Slice.Spec.PerDeviceNodeSelection, false) {
		return d.NodeName, d.AllNodes, d.NodeSelector
	}
	return d.Slice.Spec.NodeName, d.Slice.Spec.AllNodes, d.Slice.Spec.NodeSelector
}

// OutOfReach says what is the matter with a device that no node can reach.
func OutOfReach(snap *snapshot.Snapshot, d *Device) string {
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
