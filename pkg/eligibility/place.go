// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// UnsuitableNode is a node that the pod cannot use, with one misfit.
type UnsuitableNode struct {
	Node   *corev1.Node
	Misfit cluster.Misfit
	Code   api.Code
	// Claim is the pod's allocated claim in the misfit, if any.
	Claim *resourceapi.ResourceClaim
	// Reason is the reason of the misfit, or of all misfits of the node.
	Reason string
}

// Evidence proves that the pod cannot use the node.
func (u UnsuitableNode) Evidence() api.Evidence {
	e := api.Evidence{Object: api.Ref(api.KindNode, "", u.Node.Name), Path: u.Misfit.Path, Found: u.Misfit.Found, Required: u.Misfit.Wanted}
	if u.Claim != nil {
		e.Object, e.Found, e.Required = api.RefTo(api.KindClaim, u.Claim), u.Misfit.Wanted, u.Node.Name
	}
	return e
}

// EachDevice visits the devices of a pool for a node. Kept says why the allocator does not
// see a device, because of its pool or its slice, nil if it does.
func EachDevice(pool *cluster.NodePool, visit func(d *cluster.Device, kept *Reason)) {
	slice := func(s *resourceapi.ResourceSlice, kept *Reason) {
		for i := range s.Spec.Devices {
			d := cluster.DeviceIn(pool.Pool, s, i)
			visit(&d, kept)
		}
	}
	for i := range pool.Ignored {
		slice(pool.Ignored[i].Slice, IgnoredReason(&pool.Ignored[i]))
	}
	for _, s := range pool.Older {
		slice(s, ObsoleteReason(pool.Pool))
	}
	if kept := PoolReason(pool); kept != nil {
		for _, s := range pool.Slices {
			slice(s, kept)
		}
	}
	for i := range pool.Devices {
		visit(&pool.Devices[i], nil)
	}
}

// IgnoredReason returns why the allocator does not look at a slice.
func IgnoredReason(ignored *cluster.IgnoredSlice) *Reason {
	r := &Reason{
		Check: Ignored, Code: api.FeatureDisabled, Label: "feature off", Text: ignored.Reason, alone: "the slice " + ignored.Reason,
		Fact: api.Evidence{Object: api.Ref("ResourceSlice", "", ignored.Slice.Name), Required: ignored.Gate + "=true"},
	}
	if ignored.Gate == "" {
		r.Code, r.Label, r.Fact.Required = api.PoolInvalid, "slice invalid", ""
	} else {
		r.alone += ", which needs the feature gate " + ignored.Gate
	}
	return r
}

// PoolReason returns why a whole pool is unusable on a node.
func PoolReason(pool *cluster.NodePool) *Reason {
	switch {
	case pool.Outdated:
		r := ObsoleteReason(pool.Pool)
		r.alone = fmt.Sprintf("generation %d, the pool is at %d", pool.Generation, pool.Pool.Generation)
		return r
	case pool.Incomplete:
		return incompletePool(pool.Pool)
	case pool.Invalid != "":
		return invalidPool(pool.Pool, pool.Invalid)
	default:
		return nil
	}
}

func incompletePool(pool *cluster.Pool) *Reason {
	text := fmt.Sprintf("%s of pool %s published", pool.WhyIncomplete(), pool.Name)
	if int64(len(pool.Slices)) > pool.Expected {
		text = fmt.Sprintf("pool %s has %s", pool.Name, pool.WhyIncomplete())
	}
	return &Reason{
		Check: Pool, Code: api.PoolIncomplete, Label: "pool incomplete",
		Text: text, alone: "the pool is incomplete: " + pool.WhyIncomplete(),
		Fact: api.Evidence{
			Object: cluster.PoolObject(pool), Path: "spec.pool.resourceSliceCount",
			Found: english.Count(len(pool.Slices), "slice"), Required: fmt.Sprint(pool.Expected),
		},
	}
}

func invalidPool(pool *cluster.Pool, defect string) *Reason {
	return &Reason{
		Check: Pool, Code: api.PoolInvalid, Label: "pool invalid",
		Text: fmt.Sprintf("pool %s: %s", pool.Name, defect), alone: "the pool is invalid: " + defect,
		Fact: api.Evidence{Object: cluster.PoolObject(pool), Found: defect},
	}
}

// ObsoleteReason returns the reason for a slice of an earlier generation.
func ObsoleteReason(pool *cluster.Pool) *Reason {
	return &Reason{
		Check: Obsolete, Code: api.PoolObsolete, Label: "obsolete",
		Text: fmt.Sprintf("older than generation %d of pool %s", pool.Generation, pool.Name),
		Fact: api.Evidence{Object: cluster.PoolObject(pool), Path: "spec.pool.generation", Required: fmt.Sprint(pool.Generation)},
	}
}

// UnsuitableReason returns the reason for the devices of a node that the pod cannot use.
func UnsuitableReason(u UnsuitableNode) *Reason {
	return &Reason{
		Check: Node, Code: u.Code, Label: "node not suitable", Text: u.Reason,
		Fact: u.Evidence(),
	}
}

// Unreached returns the reason for a device that no node can reach.
func Unreached(snap *snapshot.Snapshot, d *cluster.Device) *Reason {
	name, all, selector := d.NodeSelection()
	text, field := outOfReach(snap, d), "nodeName"
	fact := api.Evidence{Object: cluster.SliceObject(d), Required: "a node of the cluster"}
	switch {
	case name != nil && *name != "":
		fact.Found = *name
	case all != nil && *all:
		field, fact.Found = "allNodes", "true"
	case selector != nil:
		field, fact.Found = "nodeSelector", DeviceNodes(d)
	}
	if fact.Path = "spec." + field; perDevice(d.Slice) {
		fact.Path = cluster.DevicePath(d, field)
	}
	return &Reason{Check: Reach, Code: api.NodeNotReachable, Label: "not reachable", Text: text, Fact: fact}
}

// outOfReach says why no node can reach a device.
func outOfReach(snap *snapshot.Snapshot, d *cluster.Device) string {
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
