// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

// Check is one of the checks that a device has to pass to be allocated for a request. They
// are numbered in the order in which the allocator makes them
// (structured/internal/experimental: GatherPools, isSelectable, allocateDevice), with two
// exceptions. Devices of other classes come first, so that nothing else is reported about
// irrelevant devices. And unless all devices are required, the allocator skips devices in
// use before it looks at their selectors and their capacity, because that is cheap; here
// only devices that would be suitable count as allocated.
type Check int

// Checks. If a device fails on several nodes, the last failing check is its reason.
const (
	Class Check = iota
	Node
	Reach
	Ignored
	Obsolete
	Pool
	BindingConditions
	Selector
	Capacity
	InUse
	CapacityLeft
	NodeOperations
	Partition
	CompatibilityGroups
	Counters
	Taint
	Constraint
)

// Scope is the subject of a check.
type Scope string

// Scopes of checks.
const (
	OfNode    Scope = "node"
	OfSlice   Scope = "slice"
	OfPool    Scope = "pool"
	OfDevice  Scope = "device"
	OfRequest Scope = "request"
)
