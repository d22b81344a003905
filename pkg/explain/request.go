// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// request is one request of a claim, or one alternative of a prioritized list.
// Both look the same to every check.
type request struct {
	claim *resourceapi.ResourceClaim
	// name is "request" or "request/subrequest"; base is always "request".
	name, base string
	// path is the field of the claim that has it.
	path        string
	class       string
	mode        resourceapi.DeviceAllocationMode
	count       int64
	adminAccess bool
	selectors   []resourceapi.DeviceSelector
	tolerations []resourceapi.DeviceToleration
	capacity    *resourceapi.CapacityRequirements
	derived     []resourceapi.DeviceDerivedAttribute
	// constraints are those of the claim that apply to it.
	constraints []constraint
}

// constraint is a match or distinct constraint of a claim.
type constraint struct {
	path      string
	attribute resourceapi.FullyQualifiedName
	distinct  bool
	requests  []string
	// only is true if the claim has no request that it leaves out.
	only bool
}

func (c constraint) appliesTo(r *request) bool {
	return len(c.requests) == 0 || slices.Contains(c.requests, r.name) || slices.Contains(c.requests, r.base)
}

// String says the constraint as people would.
func (c constraint) String() string {
	verb := "the same"
	if c.distinct {
		verb = "different"
	}
	text := fmt.Sprintf("%s %s", verb, c.attribute)
	if !c.only {
		text += " in " + english.JoinAnd(c.requests)
	}
	return text
}

// all reports whether the request wants every device that matches.
func (r *request) all() bool {
	return r.mode == resourceapi.DeviceAllocationModeAll
}

// derivedAt is the index of the derived attribute of that name, or -1.
func (r *request) derivedAt(name resourceapi.FullyQualifiedName) int {
	return slices.IndexFunc(r.derived, func(d resourceapi.DeviceDerivedAttribute) bool { return d.Name == name })
}

func claimConstraints(claim *resourceapi.ResourceClaim) []constraint {
	var constraints []constraint
	for i, c := range claim.Spec.Devices.Constraints {
		parsed := constraint{
			path: fmt.Sprintf("spec.devices.constraints[%d]", i), requests: c.Requests,
			only: len(c.Requests) == 0 || len(claim.Spec.Devices.Requests) == 1 && claim.Spec.Devices.Requests[0].Name == c.Requests[0],
		}
		switch {
		case c.MatchAttribute != nil:
			parsed.attribute = *c.MatchAttribute
		case c.DistinctAttribute != nil:
			parsed.attribute, parsed.distinct = *c.DistinctAttribute, true
		default:
			continue
		}
		constraints = append(constraints, parsed)
	}
	return constraints
}

// requestsOf lists the requests of a claim. Alternatives of a prioritized list
// are a list of their own: exactly one of them gets devices.
func requestsOf(claim *resourceapi.ResourceClaim) [][]*request {
	constraints := claimConstraints(claim)
	var all [][]*request
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		path := fmt.Sprintf("spec.devices.requests[%d]", i)
		var alternatives []*request
		if exact := r.Exactly; exact != nil {
			alternatives = append(alternatives, &request{
				claim: claim, name: r.Name, base: r.Name, path: path + ".exactly",
				class: exact.DeviceClassName, mode: exact.AllocationMode, count: exact.Count,
				adminAccess: exact.AdminAccess != nil && *exact.AdminAccess,
				selectors:   exact.Selectors, tolerations: exact.Tolerations,
				capacity: exact.Capacity, derived: exact.DerivedAttributes,
			})
		}
		for j := range r.FirstAvailable {
			sub := &r.FirstAvailable[j]
			alternatives = append(alternatives, &request{
				claim: claim, name: resourceclaim.CreateSubRequestRef(r.Name, sub.Name), base: r.Name,
				path:  fmt.Sprintf("%s.firstAvailable[%d]", path, j),
				class: sub.DeviceClassName, mode: sub.AllocationMode, count: sub.Count,
				selectors: sub.Selectors, tolerations: sub.Tolerations,
				capacity: sub.Capacity, derived: sub.DerivedAttributes,
			})
		}
		for _, alternative := range alternatives {
			for _, c := range constraints {
				if c.appliesTo(alternative) {
					alternative.constraints = append(alternative.constraints, c)
				}
			}
		}
		all = append(all, alternatives)
	}
	return all
}
