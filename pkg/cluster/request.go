// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Request is one request of a claim, or one alternative of a prioritized list.
// Both look the same to every check.
type Request struct {
	Claim *resourceapi.ResourceClaim
	// Name is "request" or "request/subrequest"; Base is always "request".
	Name, Base string
	// Path is the field of the claim that has it.
	Path        string
	Class       string
	Mode        resourceapi.DeviceAllocationMode
	Count       int64
	AdminAccess bool
	Selectors   []resourceapi.DeviceSelector
	Tolerations []resourceapi.DeviceToleration
	Capacity    *resourceapi.CapacityRequirements
	Derived     []resourceapi.DeviceDerivedAttribute
	// Constraints are the claim's constraints that apply to the request.
	Constraints []Constraint
}

// Constraint is a match or distinct constraint of a claim.
type Constraint struct {
	Path      string
	Attribute resourceapi.FullyQualifiedName
	Distinct  bool
	Requests  []string
	// Only is true if the claim has no request that it leaves out.
	Only bool
}

// AppliesTo reports whether the constraint applies to a request.
func (c Constraint) AppliesTo(r *Request) bool {
	return len(c.Requests) == 0 || slices.Contains(c.Requests, r.Name) || slices.Contains(c.Requests, r.Base)
}

// String returns the constraint in words.
func (c Constraint) String() string { return c.with(string(c.Attribute)) }

// Briefly returns the constraint in words, without the domain of the attribute.
func (c Constraint) Briefly() string {
	return c.with(string(c.Attribute[strings.LastIndexByte(string(c.Attribute), '/')+1:]))
}

func (c Constraint) with(attribute string) string {
	verb := "the same"
	if c.Distinct {
		verb = "different"
	}
	text := verb + " " + attribute
	if !c.Only {
		text += " in " + english.JoinAnd(c.Requests)
	}
	return text
}

// All reports whether the request wants every device that matches.
func (r *Request) All() bool {
	return r.Mode == resourceapi.DeviceAllocationModeAll
}

// DerivedAt returns the index of the derived attribute of that name, or -1.
func (r *Request) DerivedAt(name resourceapi.FullyQualifiedName) int {
	return slices.IndexFunc(r.Derived, func(d resourceapi.DeviceDerivedAttribute) bool { return d.Name == name })
}

// Constraints lists the match and distinct constraints of a claim.
func Constraints(claim *resourceapi.ResourceClaim) []Constraint {
	var constraints []Constraint
	for i, c := range claim.Spec.Devices.Constraints {
		parsed := Constraint{
			Path: fmt.Sprintf("spec.devices.constraints[%d]", i), Requests: c.Requests,
			Only: len(c.Requests) == 0 || len(claim.Spec.Devices.Requests) == 1 && claim.Spec.Devices.Requests[0].Name == c.Requests[0],
		}
		switch {
		case c.MatchAttribute != nil:
			parsed.Attribute = *c.MatchAttribute
		case c.DistinctAttribute != nil:
			parsed.Attribute, parsed.Distinct = *c.DistinctAttribute, true
		default:
			continue
		}
		constraints = append(constraints, parsed)
	}
	return constraints
}

// Requests lists the requests of a claim. Alternatives of a prioritized list
// are a list of their own: exactly one of them gets devices.
func Requests(claim *resourceapi.ResourceClaim) [][]*Request {
	constraints := Constraints(claim)
	var all [][]*Request
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		path := fmt.Sprintf("spec.devices.requests[%d]", i)
		var alternatives []*Request
		if exact := r.Exactly; exact != nil {
			alternatives = append(alternatives, &Request{
				Claim: claim, Name: r.Name, Base: r.Name, Path: path + ".exactly",
				Class: exact.DeviceClassName, Mode: exact.AllocationMode, Count: exact.Count,
				AdminAccess: exact.AdminAccess != nil && *exact.AdminAccess,
				Selectors:   exact.Selectors, Tolerations: exact.Tolerations,
				Capacity: exact.Capacity, Derived: exact.DerivedAttributes,
			})
		}
		for j := range r.FirstAvailable {
			sub := &r.FirstAvailable[j]
			alternatives = append(alternatives, &Request{
				Claim: claim, Name: resourceclaim.CreateSubRequestRef(r.Name, sub.Name), Base: r.Name,
				Path:  fmt.Sprintf("%s.firstAvailable[%d]", path, j),
				Class: sub.DeviceClassName, Mode: sub.AllocationMode, Count: sub.Count,
				Selectors: sub.Selectors, Tolerations: sub.Tolerations,
				Capacity: sub.Capacity, Derived: sub.DerivedAttributes,
			})
		}
		for _, alternative := range alternatives {
			for _, c := range constraints {
				if c.AppliesTo(alternative) {
					alternative.Constraints = append(alternative.Constraints, c)
				}
			}
		}
		all = append(all, alternatives)
	}
	return all
}

// RequestTitle names a request: "request gpus", or its container and extended resource.
func RequestTitle(request, container, resource string) string {
	if container == "" {
		return "request " + request
	}
	return fmt.Sprintf("container %s (%s)", container, resource)
}
