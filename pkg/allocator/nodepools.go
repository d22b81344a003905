// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// NodePool is a pool as the allocator sees it when it looks at one node.
//
// That differs from the cluster's view ([Pool]) because the allocator starts
// with the slices that target the node, of the newest generation among those.
// If there are as many as the pool is said to have, it looks no further, even
// if other nodes have a newer generation. Else it looks at all slices of the
// pool: if one is newer, the whole pool is outdated for the node; if their
// number is not the expected one, the pool is incomplete. Device names must be
// unique only among the slices that target the node.
type NodePool struct {
	Pool *Pool
	// Generation is the one that the allocator uses for this node.
	Generation int64
	// Unseen is true if all slices that could target the node are Ignored: for
	// the allocator there is no such pool.
	Unseen bool
	// Outdated is true if the allocator drops the pool because there are
	// slices of a newer generation, none of them for this node.
	Outdated bool
	// Incomplete is true if slices are missing.
	Incomplete bool
	// Invalid is why the allocator refuses the pool, empty if it does not.
	Invalid string
	// Ignored are slices that could target the node but do not count.
	Ignored []IgnoredSlice
	// Devices are those that target the node, in the order in which the
	// allocator tries them. There are none if it does not use the pool.
	Devices []Device

	// last is true if the allocator tries the pool after all those where it is
	// false: a slice for the node has a device with binding conditions.
	last bool
}

// Usable tells whether the allocator takes devices from the pool.
func (p *NodePool) Usable() bool {
	return !p.Unseen && !p.Outdated && !p.Incomplete && p.Invalid == ""
}

// IgnoredSlice is a slice that the allocator does not look at.
type IgnoredSlice struct {
	Slice *resourceapi.ResourceSlice
	// Reason says why.
	Reason string
	// Gate is the feature gate that would make it count, empty if none would.
	Gate string
}

// sliceInfo is a slice with what can be worked out once for all nodes.
type sliceInfo struct {
	*resourceapi.ResourceSlice
	// ignored is why the allocator does not look at the slice, nil if it does.
	ignored *IgnoredSlice
	// counts is false if the slice counts neither for completeness.
	counts bool
	// target tells which nodes a slice as a whole is for; devices tell it for
	// each of its devices, if nodes are selected per device.
	target  nodeMatcher
	devices []nodeMatcher
}

// nodeMatcher is a parsed node selection, see NodeMatches of the allocator.
type nodeMatcher struct {
	name     string
	all      bool
	selector *nodeaffinity.NodeSelector
	err      error
}

func newNodeMatcher(name *string, all *bool, selector *corev1.NodeSelector) nodeMatcher {
	m := nodeMatcher{name: ptr.Deref(name, ""), all: ptr.Deref(all, false)}
	if m.name == "" && !m.all && selector != nil {
		m.selector, m.err = nodeaffinity.NewNodeSelector(selector)
	}
	return m
}

func (m nodeMatcher) matches(node *corev1.Node) (bool, error) {
	switch {
	case m.err != nil:
		return false, m.err
	case m.name != "":
		return node.Name == m.name, nil
	case m.all:
		return true, nil
	default:
		return m.selector != nil && m.selector.Match(node), nil
	}
}

func newSliceInfo(slice *resourceapi.ResourceSlice, features structured.Features, stable bool) *sliceInfo {
	s := &sliceInfo{ResourceSlice: slice, counts: true}
	spec := &slice.Spec
	perDevice := ptr.Deref(spec.PerDeviceNodeSelection, false)
	wholeSlice := ptr.Deref(spec.NodeName, "") != "" || ptr.Deref(spec.AllNodes, false) || spec.NodeSelector != nil
	ignore := func(reason, gate string) {
		s.ignored = &IgnoredSlice{Slice: slice, Reason: reason, Gate: gate}
	}
	switch {
	case !features.PartitionableDevices && spec.PerDeviceNodeSelection != nil:
		ignore("selects nodes per device", gatePartitionableDevices)
	case !features.PartitionableDevices && len(spec.SharedCounters) > 0:
		ignore("has shared counters", gatePartitionableDevices)
	case !features.CompatibilityGroups && usesCompatibilityGroups(slice):
		ignore("has devices with compatibility groups", gateCompatibilityGroups)
	case !wholeSlice && !perDevice && (len(spec.SharedCounters) == 0 || !stable):
		ignore("selects nodes in no known way", "")
	}
	s.counts = features.CompatibilityGroups || !usesCompatibilityGroups(slice)
	switch {
	case wholeSlice:
		s.target = newNodeMatcher(spec.NodeName, spec.AllNodes, spec.NodeSelector)
	case perDevice:
		s.devices = make([]nodeMatcher, len(spec.Devices))
		for i := range spec.Devices {
			device := &spec.Devices[i]
			s.devices[i] = newNodeMatcher(device.NodeName, device.AllNodes, device.NodeSelector)
		}
	}
	return s
}

func usesCompatibilityGroups(slice *resourceapi.ResourceSlice) bool {
	for i := range slice.Spec.Devices {
		for _, consumed := range slice.Spec.Devices[i].ConsumesCounters {
			if len(consumed.CompatibilityGroups) > 0 {
				return true
			}
		}
	}
	return false
}

// targets tells whether the slice has something for the node. It fails if a
// node selector that has to be looked at cannot be parsed.
func (s *sliceInfo) targets(node *corev1.Node) (bool, error) {
	if s.devices == nil {
		match, err := s.target.matches(node)
		if err != nil {
			return false, fmt.Errorf("select nodes for ResourceSlice %s: %w", s.Name, err)
		}
		return match, nil
	}
	for i, device := range s.devices {
		match, err := device.matches(node)
		if err != nil {
			return false, fmt.Errorf("select nodes for device %s of ResourceSlice %s: %w", s.Spec.Devices[i].Name, s.Name, err)
		}
		if match {
			return true, nil
		}
	}
	return false, nil
}

// concerns is like targets, but for the allocator: the stable channel takes
// slices with counter sets into account for every node.
func (x *poolIndex) concerns(slice *sliceInfo, node *corev1.Node) (bool, error) {
	if x.stable && len(slice.Spec.SharedCounters) > 0 {
		return true, nil
	}
	return slice.targets(node)
}

// newestOf returns those slices of the newest generation among them.
func newestOf(all []*sliceInfo) []*sliceInfo {
	var newest []*sliceInfo
	for _, slice := range all {
		switch {
		case len(newest) == 0 || slice.Spec.Pool.Generation > newest[0].Spec.Pool.Generation:
			newest = []*sliceInfo{slice}
		case slice.Spec.Pool.Generation == newest[0].Spec.Pool.Generation:
			newest = append(newest, slice)
		}
	}
	return newest
}

// slicesToLookAt returns those slices of a pool that can concern a node, in
// the order in which the allocator comes across them.
func (x *poolIndex) slicesToLookAt(e *poolEntry, node *corev1.Node) []*sliceInfo {
	if x.stable {
		return e.slices
	}
	return slices.Concat(e.onNode[node.Name], e.shared)
}

// view looks at a pool from a node, as GatherPools of the allocator does.
func (x *poolIndex) view(e *poolEntry, node *corev1.Node) (NodePool, error) {
	var ignored []IgnoredSlice
	var relevant []*sliceInfo
	for _, slice := range x.slicesToLookAt(e, node) {
		if name := ptr.Deref(slice.Spec.NodeName, ""); slice.ignored != nil {
			if name == "" || name == node.Name {
				ignored = append(ignored, *slice.ignored)
			}
			continue
		}
		match, err := x.concerns(slice, node)
		if err != nil {
			return NodePool{}, err
		}
		if match {
			relevant = append(relevant, slice)
		}
	}
	relevant = newestOf(relevant)
	p := x.judge(e, relevant)
	p.Ignored = ignored
	if !p.Usable() {
		return p, nil
	}
	slices.SortFunc(relevant, func(a, b *sliceInfo) int { return cmp.Compare(a.Name, b.Name) })
	for _, slice := range relevant {
		if x.hasCounterSets(slice) {
			continue
		}
		for i := range slice.Spec.Devices {
			p.last = p.last || slice.Spec.Devices[i].BindingConditions != nil
			if slice.devices != nil {
				// A selector that cannot be parsed selects nothing here; the
				// allocator fails when it gets as far as this device.
				if match, err := slice.devices[i].matches(node); err != nil || !match {
					continue
				}
			}
			p.Devices = append(p.Devices, newDevice(e.pool, slice.ResourceSlice, i))
		}
	}
	return p, nil
}

// judge decides what becomes of a pool of which the given slices, all of one
// generation, concern a node.
func (x *poolIndex) judge(e *poolEntry, relevant []*sliceInfo) NodePool {
	p := NodePool{Pool: e.pool}
	if len(relevant) == 0 {
		p.Unseen = true
		return p
	}
	p.Generation = relevant[0].Spec.Pool.Generation
	expected := relevant[0].Spec.Pool.ResourceSliceCount
	if int64(len(relevant)) == expected {
		p.Invalid = cmp.Or(x.duplicateDevice(relevant), x.counterDefect(relevant))
		return p
	}
	switch {
	case e.newest > p.Generation:
		p.Outdated = true
	case e.counted[p.Generation] != expected:
		p.Incomplete = true
	default:
		p.Invalid = cmp.Or(x.duplicateDevice(relevant), e.defect[p.Generation]())
	}
	return p
}

// hasCounterSets tells whether the allocator looks for counter sets in a
// slice, and so not for devices.
func (x *poolIndex) hasCounterSets(slice *sliceInfo) bool {
	return x.features.PartitionableDevices && len(slice.Spec.SharedCounters) > 0
}

func (x *poolIndex) duplicateDevice(all []*sliceInfo) string {
	names := sets.New[string]()
	for _, slice := range all {
		if x.hasCounterSets(slice) {
			continue
		}
		for i := range slice.Spec.Devices {
			name := slice.Spec.Devices[i].Name
			if names.Has(name) {
				return fmt.Sprintf("there is more than one device with the name %s", name)
			}
			names.Insert(name)
		}
	}
	return ""
}

// generationDefect looks for what makes a whole generation of a pool invalid.
func (x *poolIndex) generationDefect(e *poolEntry, generation int64) string {
	var all []*sliceInfo
	for _, slice := range e.slices {
		if slice.counts && slice.Spec.Pool.Generation == generation {
			all = append(all, slice)
		}
	}
	return x.counterDefect(all)
}

// counterDefect looks for counter sets that are defined twice, and for devices
// that consume counters which do not exist.
func (x *poolIndex) counterDefect(all []*sliceInfo) string {
	if !x.features.PartitionableDevices {
		return ""
	}
	counterSets := map[string]map[string]resourceapi.Counter{}
	for _, slice := range all {
		for _, set := range slice.Spec.SharedCounters {
			if _, exists := counterSets[set.Name]; exists {
				return fmt.Sprintf("there is more than one counter set with the name %s", set.Name)
			}
			counterSets[set.Name] = set.Counters
		}
	}
	for _, slice := range all {
		if x.hasCounterSets(slice) {
			continue
		}
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			for _, consumed := range device.ConsumesCounters {
				counters, exists := counterSets[consumed.CounterSet]
				if !exists {
					return fmt.Sprintf("device %s consumes counters of the counter set %s, which does not exist", device.Name, consumed.CounterSet)
				}
				for name := range consumed.Counters {
					if _, exists := counters[name]; !exists {
						return fmt.Sprintf("device %s consumes the counter %s of the counter set %s, which does not exist", device.Name, name, consumed.CounterSet)
					}
				}
			}
		}
	}
	return ""
}

// PoolsFor returns the pools with slices for the node, in the order in which
// the allocator tries them, those that it does not use included. In the stable
// channel an incomplete or invalid pool with counter sets can get in the way
// of nodes that it has no devices for; then the first of each kind is listed,
// too. PoolsFor fails, as the allocator does, if the node selector of a slice
// cannot be parsed.
func (a *Allocator) PoolsFor(node *corev1.Node) ([]NodePool, error) {
	var pools []NodePool
	for _, entry := range a.pools.candidates(node) {
		pool, err := a.pools.view(entry, node)
		if err != nil {
			return nil, err
		}
		if pool.Unseen && len(pool.Ignored) == 0 {
			continue
		}
		pools = append(pools, pool)
	}
	return append(
		slices.DeleteFunc(slices.Clone(pools), func(p NodePool) bool { return p.last }),
		slices.DeleteFunc(pools, func(p NodePool) bool { return !p.last })...,
	), nil
}

// candidates returns, sorted, the pools that can concern the node.
func (x *poolIndex) candidates(node *corev1.Node) []*poolEntry {
	chosen := make(map[*poolEntry]bool, len(x.onNode[node.Name])+len(x.shared))
	var list []*poolEntry
	add := func(entries ...*poolEntry) {
		for _, entry := range entries {
			if !chosen[entry] {
				chosen[entry] = true
				list = append(list, entry)
			}
		}
	}
	add(x.onNode[node.Name]...)
	add(x.shared...)
	for _, nuisance := range [][]*poolEntry{x.incomplete, x.invalid} {
		if i := slices.IndexFunc(nuisance, func(e *poolEntry) bool { return !chosen[e] }); i >= 0 {
			add(nuisance[i])
		}
	}
	slices.SortFunc(list, func(a, b *poolEntry) int { return cmp.Compare(a.index, b.index) })
	return list
}
