// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"cmp"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

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

// Reason says why one device is no candidate for a request.
type Reason struct {
	Check Check
	Code  api.Code
	// Label names the reason: "allocated", "selector 1 fails". Checked names the check, if
	// the label says more.
	Label, Checked string
	// Text is the fact in a few words, without the required value. alone is the same for
	// readers who see neither the label nor other devices, if that needs more.
	Text, alone string
	// Brief is the text for many devices that differ in less important details; empty for
	// most.
	Brief string
	// Name and Value are the two parts of the text, if the reason concerns one value.
	Name, Value string
	// wanted is a value that would pass, if there is one.
	wanted string
	// Lack describes, after a number, the shortcoming of such devices, where the code does
	// not say enough.
	Lack string
	// Hint suggests another value than the required one. HintDriver is set if it says that
	// no device is of that driver.
	Hint, HintDriver string
	// Taint is the taint that is not tolerated, and TaintedBy its owner.
	Taint     *resourceapi.DeviceTaint
	TaintedBy string
	// Claim is the claim that the device is allocated to.
	Claim *resourceapi.ResourceClaim
	// Lacks is a value that other devices have and this one does not.
	Lacks selector.Reading
	// Fact proves it.
	Fact api.Evidence
}

// Requirement returns the required value, after a comma; empty if there is none.
func (r *Reason) Requirement() string {
	switch {
	case r.wanted == "":
		return ""
	case r.Code != api.RequestSelectorFalse && r.Code != api.ClassSelectorFalse:
		return r.wanted + " required"
	case r.wanted == r.Fact.Required:
		// Nothing is shorter than the expression.
		return "required: " + r.wanted
	default:
		return "must be " + r.wanted
	}
}

// Matches reports whether a device counts for a request of all devices.
func (r *Reason) Matches() bool {
	return r == nil || r.Check > Capacity
}

// MayPass reports whether a reason against a device may go away while the device and the
// request stay the same.
func (r *Reason) MayPass() bool {
	switch r.Code {
	case api.DeviceAllocated, api.CountersExhausted, api.CompatibilityGroupConflict, api.DeviceTainted, api.PoolIncomplete, api.FeatureDisabled, api.BindingConditionsUnsupported:
		return true
	case api.CapacityInsufficient:
		return r.Check == CapacityLeft
	default:
		return false
	}
}

// Holder returns the claim that has the device, if that is the reason, else an empty reference.
func (r *Reason) Holder() api.ObjectRef {
	if r.Code != api.DeviceAllocated {
		return api.ObjectRef{}
	}
	return r.Fact.Object
}

// Alone returns the text for readers who see neither the label nor other devices.
func (r *Reason) Alone() string { return cmp.Or(r.alone, r.Text) }

// Defect returns the problem of the pool, if that is the reason.
func (r *Reason) Defect() string {
	if r.Code != api.PoolInvalid || r.Check != Pool {
		return ""
	}
	return r.Fact.Found
}

func featureOff(check Check, gate string, holder api.ObjectRef, path string) *Reason {
	return &Reason{
		Check: check, Code: api.FeatureDisabled, Label: "feature off", Text: "needs the feature gate " + gate,
		Fact: api.Evidence{Object: holder, Path: path, Required: gate + "=true"},
	}
}
