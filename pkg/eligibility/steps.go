// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// Step is a check in the list of all checks.
type Step struct {
	Check Check
	// Name is the name of the check in the list for a single device. Checks that are made
	// together have one name.
	Name string
	// Label describes in that list a device that passes.
	Label string
	Scope Scope
	// find makes a check with the same result for all nodes.
	find findFunc
}

// Steps lists all checks in their order.
func Steps() []Step {
	return []Step{
		{Class, "Class", "class", OfRequest, func(ctx context.Context, c *Checks, d *cluster.Device) *Reason { return c.otherClass(ctx, d) }},
		{Node, "Node", "node suitable", OfNode, nil},
		{Reach, "Reach", "reachable from the node", OfDevice, nil},
		{Ignored, "Slice", "slice", OfSlice, nil},
		{Obsolete, "Slice", "slice", OfSlice, nil},
		{Pool, "Pool", "pool", OfPool, nil},
		{BindingConditions, "BindingConditions", "binding conditions", OfDevice, func(_ context.Context, c *Checks, d *cluster.Device) *Reason { return c.CheckBinding(d) }},
		{Selector, "Selector", "selectors", OfRequest, func(ctx context.Context, c *Checks, d *cluster.Device) *Reason { return c.CheckSelectors(ctx, d) }},
		{Capacity, "Capacity", "capacity", OfRequest, func(_ context.Context, c *Checks, d *cluster.Device) *Reason { return c.CheckCapacity(d, Capacity) }},
		{InUse, "InUse", "not allocated", OfDevice, func(_ context.Context, c *Checks, d *cluster.Device) *Reason { return c.CheckInUse(d) }},
		{CapacityLeft, "CapacityLeft", "capacity available", OfRequest, func(_ context.Context, c *Checks, d *cluster.Device) *Reason { return c.CheckCapacity(d, CapacityLeft) }},
		{NodeOperations, "NodeOperations", "node operations", OfNode, nil},
		{Partition, "Partition", "shared counters", OfDevice, func(_ context.Context, c *Checks, d *cluster.Device) *Reason { return c.CheckPartition(d, nil) }},
		{CompatibilityGroups, "Partition", "shared counters", OfDevice, nil},
		{Counters, "Partition", "shared counters", OfDevice, nil},
		{Taint, "Taint", "taints", OfRequest, func(_ context.Context, c *Checks, d *cluster.Device) *Reason { return c.CheckTaints(d) }},
		{Constraint, "Constraint", "constraint", OfRequest, func(ctx context.Context, c *Checks, d *cluster.Device) *Reason { return c.CheckConstraints(ctx, d) }},
	}
}

// Device returns why a device is no candidate on a node, or nil if it is one.
func (c *Checks) Device(ctx context.Context, d *cluster.Device, node *corev1.Node) *Reason {
	static, known := c.found.Get(d)
	if !known {
		static = c.checkStatic(ctx, d)
		c.found.Set(d, static)
	}
	dynamic := c.CheckNode(d, node)
	switch {
	case static == nil:
		return dynamic
	case dynamic == nil || static.Check < dynamic.Check:
		return static
	default:
		return dynamic
	}
}

// SelectorFails reports whether a selector fails on a device in the allocator's search,
// which ends the attempt for all nodes. The allocator evaluates selectors before it looks
// at the node of a device, and at binding conditions.
func (c *Checks) SelectorFails(ctx context.Context, d *cluster.Device, node *corev1.Node) bool {
	r := c.Device(ctx, d, node)
	if r != nil && r.Check > Class && r.Check < Selector {
		if !c.Request.All() && c.CheckInUse(d) != nil {
			return false
		}
		r = c.CheckSelectors(ctx, d)
	}
	return r != nil && r.Code == api.SelectorError
}

// checkStatic makes the checks with the same result for all nodes.
func (c *Checks) checkStatic(ctx context.Context, d *cluster.Device) *Reason {
	if c.static == nil {
		for _, step := range Steps() {
			if step.find != nil {
				c.static = append(c.static, step.find)
			}
		}
	}
	for _, find := range c.static {
		r := find(ctx, c, d)
		if r == nil {
			continue
		}
		if r.Code == api.SelectorError && r.Check <= Selector && !c.Request.All() {
			if inUse := c.CheckInUse(d); inUse != nil {
				// The allocator does not get to see the error.
				return inUse
			}
		}
		return r
	}
	return nil
}

// otherClass rejects a device that the class certainly does not select.
func (c *Checks) otherClass(ctx context.Context, d *cluster.Device) *Reason {
	if r := c.CheckClass(ctx, d); r != nil && r.Code == api.ClassSelectorFalse {
		return r
	}
	return nil
}
