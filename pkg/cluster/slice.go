// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/binary"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"
)

// sliceInfo is a slice with facts that are the same for all nodes.
type sliceInfo struct {
	*resourceapi.ResourceSlice
	// index is the index among the slices of the pool.
	index int
	// ignored is why the allocator does not look at the slice, nil if it does.
	ignored *IgnoredSlice
	// counts is false if the slice does not count for completeness.
	counts bool
	// hasCounterSets is true if the allocator looks for counter sets in the slice,
	// and so not for devices.
	hasCounterSets bool
	// target matches the nodes of a slice as a whole; devices match the nodes of each of
	// its devices, if nodes are selected per device.
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

func newSliceInfo(slice *resourceapi.ResourceSlice, features *features, matchers nodeMatchers) *sliceInfo {
	spec := &slice.Spec
	s := &sliceInfo{ResourceSlice: slice, counts: true}
	s.hasCounterSets = features.partitionableDevices && len(spec.SharedCounters) > 0
	perDevice := ptr.Deref(spec.PerDeviceNodeSelection, false)
	wholeSlice := ptr.Deref(spec.NodeName, "") != "" || ptr.Deref(spec.AllNodes, false) || spec.NodeSelector != nil
	ignore := func(reason, gate string) {
		s.ignored = &IgnoredSlice{Slice: slice, Reason: reason, Gate: gate}
	}
	switch {
	case !features.partitionableDevices && spec.PerDeviceNodeSelection != nil:
		ignore("selects nodes per device", GatePartitionableDevices)
	case !features.partitionableDevices && len(spec.SharedCounters) > 0:
		ignore("has shared counters", GatePartitionableDevices)
	case !features.compatibilityGroups && usesCompatibilityGroups(slice):
		ignore("has devices with compatibility groups", GateCompatibilityGroups)
	case !wholeSlice && !perDevice && (len(spec.SharedCounters) == 0 || !features.countersConcernAll):
		ignore("selects nodes in no known way", "")
	}
	s.counts = features.compatibilityGroups || !usesCompatibilityGroups(slice)
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

// targets reports whether the slice has something for the node. It fails if a relevant node
// selector is invalid.
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

// newestOf returns the slices of the newest generation.
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

// seen identifies the slices that a node can see, and the devices among the slices that
// select nodes per device.
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
