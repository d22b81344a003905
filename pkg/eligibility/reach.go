// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// AllocationNodes describes the nodes that can use the devices of an allocation.
func AllocationNodes(allocation *resourceapi.AllocationResult) string {
	selector := allocation.NodeSelector
	if selector == nil || len(selector.NodeSelectorTerms) == 0 {
		return "any node"
	}
	var terms []string
	for _, term := range selector.NodeSelectorTerms {
		if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 1 &&
			term.MatchFields[0].Key == "metadata.name" && len(term.MatchFields[0].Values) == 1 {
			terms = append(terms, term.MatchFields[0].Values[0])
			continue
		}
		var parts []string
		for _, r := range append(term.MatchFields[:len(term.MatchFields):len(term.MatchFields)], term.MatchExpressions...) {
			parts = append(parts, cluster.RequirementText(r))
		}
		terms = append(terms, "nodes with "+english.JoinAnd(parts))
	}
	return english.JoinOr(terms)
}

// DeviceNodes describes the nodes that can use a device.
func DeviceNodes(d *cluster.Device) string {
	switch name, all, selector := d.NodeSelection(); {
	case name != nil && *name != "":
		return *name
	case all != nil && *all:
		return "any node"
	case selector != nil:
		return AllocationNodes(&resourceapi.AllocationResult{NodeSelector: selector})
	default:
		return "no node"
	}
}

// DeviceReaches reports whether a device is for a node.
func DeviceReaches(d *cluster.Device, node *corev1.Node) bool {
	name, all, selector := d.NodeSelection()
	return Targets(node, name, all, selector)
}

func perDevice(slice *resourceapi.ResourceSlice) bool {
	return slice.Spec.PerDeviceNodeSelection != nil && *slice.Spec.PerDeviceNodeSelection
}

// Targets reports whether node selection fields match a node, as the allocator's
// NodeMatches does.
func Targets(node *corev1.Node, name *string, all *bool, selector *corev1.NodeSelector) bool {
	switch {
	case name != nil && *name != "":
		return node.Name == *name
	case all != nil && *all:
		return true
	case selector != nil:
		parsed, err := nodeaffinity.NewNodeSelector(selector)
		return err == nil && parsed.Match(node)
	default:
		return false
	}
}

// SliceReaches reports whether any device of a slice is for a node.
func SliceReaches(slice *resourceapi.ResourceSlice, node *corev1.Node) bool {
	if slice.Spec.PerDeviceNodeSelection != nil && *slice.Spec.PerDeviceNodeSelection {
		return slices.ContainsFunc(slice.Spec.Devices, func(d resourceapi.Device) bool {
			return Targets(node, d.NodeName, d.AllNodes, d.NodeSelector)
		})
	}
	return Targets(node, slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector)
}
