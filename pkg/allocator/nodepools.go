// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

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
	// AllIgnored is true if all slices that could target the node are Ignored: for
	// the allocator there is no such pool.
	AllIgnored bool
	// Outdated is true if the allocator drops the pool because there are
	// slices of a newer generation, none of them for this node.
	Outdated bool
	// Incomplete is true if slices are missing.
	Incomplete bool
	// Invalid is why the allocator refuses the pool, empty if it does not.
	Invalid string
	// Local is true if a slice names the node. Where it is false, all nodes to
	// which the pool looks the same share one NodePool.
	Local bool
	// Slices are those of Generation that target the node, and Older those of
	// earlier generations; what is Ignored is in neither.
	Slices, Older []*resourceapi.ResourceSlice
	// Ignored are slices that could target the node but do not count.
	Ignored []IgnoredSlice
	// Devices are those that target the node, in the order in which the
	// allocator tries them. There are none if it does not use the pool.
	Devices []Device

	entry *poolEntry
	// Last is true if the allocator tries the pool after all those where it is
	// false: a slice for the node has a device with binding conditions.
	Last bool
}

// Usable reports whether the allocator takes devices from the pool.
func (p *NodePool) Usable() bool {
	return !p.AllIgnored && !p.Outdated && !p.Incomplete && p.Invalid == ""
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
	// index is that among the slices of the pool.
	index int
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

// nodeMatchers parses each node selector once, however many slices and devices
// have it.
type nodeMatchers map[string]nodeMatcher

func (known nodeMatchers) of(name *string, all *bool, selector *corev1.NodeSelector) nodeMatcher {
	m := nodeMatcher{name: ptr.Deref(name, ""), all: ptr.Deref(all, false)}
	if m.name != "" || m.all || selector == nil {
		return m
	}
	text := selector.String()
	if same, ok := known[text]; ok {
		return same
	}
	m.selector, m.err = nodeaffinity.NewNodeSelector(selector)
	known[text] = m
	return m
}

// look is one look from a node at the slices. It evaluates each node selector
// once.
type look struct {
	node     *corev1.Node
	selected map[*nodeaffinity.NodeSelector]bool
}

func newLook(node *corev1.Node) *look {
	return &look{node: node, selected: map[*nodeaffinity.NodeSelector]bool{}}
}

func (l *look) meets(m nodeMatcher) (bool, error) {
	switch {
	case m.err != nil:
		return false, m.err
	case m.name != "":
		return l.node.Name == m.name, nil
	case m.all || m.selector == nil:
		return m.all, nil
	}
	match, known := l.selected[m.selector]
	if !known {
		match = m.selector.Match(l.node)
		l.selected[m.selector] = match
	}
	return match, nil
}

func newSliceInfo(slice *resourceapi.ResourceSlice, features structured.Features, stable bool, matchers nodeMatchers) *sliceInfo {
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
		s.target = matchers.of(spec.NodeName, spec.AllNodes, spec.NodeSelector)
	case perDevice:
		s.devices = make([]nodeMatcher, len(spec.Devices))
		for i := range spec.Devices {
			device := &spec.Devices[i]
			s.devices[i] = matchers.of(device.NodeName, device.AllNodes, device.NodeSelector)
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

// targets reports whether the slice has something for the node. It fails if a
// node selector that has to be looked at cannot be parsed.
func (s *sliceInfo) targets(l *look) (bool, error) {
	if s.devices == nil {
		match, err := l.meets(s.target)
		if err != nil {
			return false, fmt.Errorf("select nodes for ResourceSlice %s: %w", s.Name, err)
		}
		return match, nil
	}
	for i, device := range s.devices {
		match, err := l.meets(device)
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
func (x *poolIndex) concerns(slice *sliceInfo, l *look) (bool, error) {
	if x.stable && len(slice.Spec.SharedCounters) > 0 {
		return true, nil
	}
	return slice.targets(l)
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
func (x *poolIndex) view(e *poolEntry, l *look) (*NodePool, error) {
	var ignored []IgnoredSlice
	var relevant []*sliceInfo
	local := false
	for _, slice := range x.slicesToLookAt(e, l.node) {
		name := ptr.Deref(slice.Spec.NodeName, "")
		local = local || name == l.node.Name
		if slice.ignored != nil {
			if name == "" || name == l.node.Name {
				ignored = append(ignored, *slice.ignored)
			}
			continue
		}
		match, err := x.concerns(slice, l)
		if err != nil {
			return nil, err
		}
		if match {
			relevant = append(relevant, slice)
		}
	}
	newest := newestOf(relevant)
	if local {
		return x.newView(e, l, true, ignored, relevant, newest), nil
	}
	// Without a slice of the node's own, there are as many views of a pool as
	// there are sets of slices and devices that nodes can see of it.
	key := l.seen(relevant, newest)
	e.mutex.Lock()
	defer e.mutex.Unlock()
	p, known := e.views[key]
	if !known {
		p = x.newView(e, l, false, ignored, relevant, newest)
		e.views[key] = p
	}
	return p, nil
}

// seen writes down which slices a node can see, and which devices of those
// that select nodes per device.
func (l *look) seen(relevant, newest []*sliceInfo) string {
	key := binary.AppendUvarint(nil, uint64(len(relevant)))
	for _, slice := range relevant {
		key = binary.AppendUvarint(key, uint64(slice.index))
	}
	for _, slice := range newest {
		for i, device := range slice.devices {
			if match, err := l.meets(device); err == nil && match {
				key = binary.AppendUvarint(key, uint64(slice.index))
				key = binary.AppendUvarint(key, uint64(i))
			}
		}
	}
	return string(key)
}

func (x *poolIndex) newView(e *poolEntry, l *look, local bool, ignored []IgnoredSlice, relevant, newest []*sliceInfo) *NodePool {
	p := x.judge(e, newest)
	p.entry, p.Local, p.Ignored = e, local, ignored
	newest = slices.Clone(newest)
	slices.SortFunc(newest, func(a, b *sliceInfo) int { return cmp.Compare(a.Name, b.Name) })
	for _, slice := range newest {
		p.Slices = append(p.Slices, slice.ResourceSlice)
	}
	for _, slice := range relevant {
		if slice.Spec.Pool.Generation < p.Generation {
			p.Older = append(p.Older, slice.ResourceSlice)
		}
	}
	if !p.Usable() {
		return p
	}
	for _, slice := range newest {
		if x.hasCounterSets(slice) {
			continue
		}
		for i := range slice.Spec.Devices {
			p.Last = p.Last || slice.Spec.Devices[i].BindingConditions != nil
			if slice.devices != nil {
				// A selector that cannot be parsed selects nothing here; the
				// allocator fails when it gets as far as this device.
				if match, err := l.meets(slice.devices[i]); err != nil || !match {
					continue
				}
			}
			p.Devices = append(p.Devices, newDevice(e.pool, slice.ResourceSlice, i))
		}
	}
	return p
}

// judge decides what becomes of a pool of which the given slices, all of one
// generation, concern a node.
func (x *poolIndex) judge(e *poolEntry, relevant []*sliceInfo) *NodePool {
	p := &NodePool{Pool: e.pool}
	if len(relevant) == 0 {
		p.AllIgnored = true
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
	case e.generation(p.Generation).counted != expected:
		p.Incomplete = true
	default:
		p.Invalid = cmp.Or(x.duplicateDevice(relevant), e.generation(p.Generation).defect())
	}
	return p
}

// hasCounterSets reports whether the allocator looks for counter sets in a
// slice, and so not for devices.
func (x *poolIndex) hasCounterSets(slice *sliceInfo) bool {
	return x.features.PartitionableDevices && len(slice.Spec.SharedCounters) > 0
}

func (x *poolIndex) duplicateDevice(all []*sliceInfo) string {
	return x.addDevices(sets.New[string](), nil, all)
}

// addDevices adds the names of devices to a set, and says if one is in there
// already, or in the other set.
func (x *poolIndex) addDevices(names, others sets.Set[string], all []*sliceInfo) string {
	for _, slice := range all {
		if x.hasCounterSets(slice) {
			continue
		}
		for i := range slice.Spec.Devices {
			name := slice.Spec.Devices[i].Name
			if names.Has(name) || others.Has(name) {
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
func (a *Allocator) PoolsFor(node *corev1.Node) ([]*NodePool, error) {
	a.views.mutex.Lock()
	known, ok := a.views.of[node]
	a.views.mutex.Unlock()
	if ok {
		return known.pools, known.err
	}
	known.pools, known.err = a.pools.viewsOf(node, nil)
	a.views.mutex.Lock()
	defer a.views.mutex.Unlock()
	a.views.of[node] = known
	return known.pools, known.err
}

// viewCache has the answers of [Allocator.PoolsFor], for all allocators with the
// same pools.
type viewCache struct {
	mutex sync.Mutex
	of    map[*corev1.Node]nodeViews
}

// nodeViews is the answer of [Allocator.PoolsFor] for a node.
type nodeViews struct {
	pools []*NodePool
	err   error
}

// viewsOf looks at all pools that can concern a node, but for those to leave
// out.
func (x *poolIndex) viewsOf(node *corev1.Node, leaveOut sets.Set[*Pool]) ([]*NodePool, error) {
	var pools []*NodePool
	l := newLook(node)
	for _, entry := range x.candidates(node) {
		if leaveOut.Has(entry.pool) {
			continue
		}
		pool, err := x.view(entry, l)
		if err != nil {
			return nil, err
		}
		if !pool.AllIgnored || len(pool.Ignored) > 0 {
			pools = append(pools, pool)
		}
	}
	slices.SortStableFunc(pools, func(a, b *NodePool) int {
		switch {
		case a.Last == b.Last:
			return 0
		case b.Last:
			return -1
		default:
			return 1
		}
	})
	return pools, nil
}

// candidates returns, sorted, the pools that can concern the node.
func (x *poolIndex) candidates(node *corev1.Node) []*poolEntry {
	byIndex := func(a, b *poolEntry) int { return cmp.Compare(a.index, b.index) }
	list := slices.Clone(x.shared)
	add := func(entry *poolEntry) bool {
		at, found := slices.BinarySearchFunc(list, entry, byIndex)
		if !found {
			list = slices.Insert(list, at, entry)
		}
		return !found
	}
	for _, entry := range x.onNode[node.Name] {
		add(entry)
	}
	for _, nuisance := range [][]*poolEntry{x.incomplete, x.invalid} {
		// The first one that is not there yet is enough.
		_ = slices.ContainsFunc(nuisance, add)
	}
	return list
}
