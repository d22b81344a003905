// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

// Check is one of the checks that a device has to pass to be allocated for a
// request. They are numbered in the order in which the allocator makes them
// (structured/internal/experimental: GatherPools, isSelectable,
// allocateDevice), with two exceptions. Devices of other classes come first,
// so that nothing else is said about devices that were never meant. And unless
// all devices are required, the allocator passes over devices in use before it
// looks at their selectors and their capacity, because that is cheap; here only
// those devices count as allocated that would have been of use.
type Check int

// The checks. Of a device that fails on several nodes, the one that it fails last
// is its reason.
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

// The scopes of checks.
const (
	OfNode    Scope = "node"
	OfSlice   Scope = "slice"
	OfPool    Scope = "pool"
	OfDevice  Scope = "device"
	OfRequest Scope = "request"
)
