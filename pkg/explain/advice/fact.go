// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// factKind says what sort of thing a fact is, and so how it is given up.
type factKind int

// Kinds of facts, first requirements, then obstacles: conflicts prefer earlier facts, and
// facts that follow from others come after them. A request as such, and a class, are only
// suspected if nothing else explains it.
const (
	factCount factKind = iota
	factAll
	factSelector
	factCapacity
	factRequest
	factConstraint
	factRestriction
	factGate
	factPool
	factTaint
	factHolder
	factCounters
	factGroups
	factClass
)

// fact is something that holds and may be why claims do not fit. Facts can be
// given up, see [Hypothesis].
type fact struct {
	kind     factKind
	text     string
	evidence api.Evidence
	// at is the request of a factCount, factAll, factSelector, factCapacity or
	// factRequest.
	// With claim it is also where a factConstraint is.
	at requestPlace
	// selector and conjunct tell which part of a selector, of the request or of
	// the class, this is.
	selector, conjunct int
	class              *resourceapi.DeviceClass
	// capacity is the name of a capacity that is asked for; unknown is set if no
	// device of the node has one of that name.
	capacity   resourceapi.QualifiedName
	unknown    bool
	constraint int
	gate       string
	misfit     *cluster.Misfit
	pool       *cluster.Pool
	counterSet string
	taint      resourceapi.DeviceTaint
	tainted    *cluster.Device
	// holder is an allocated claim; of a factRestriction it is one of the pod's
	// own, which keeps it from the node.
	holder *resourceapi.ResourceClaim
}

// requestPlace is where a request or an alternative is: the indices of its
// claim in the scenario, of the request, and of the alternative, which is -1 for
// a request without.
type requestPlace struct{ claim, request, alternative int }

// asked are the fields of a request, or of an alternative, that can be changed.
type asked struct {
	// name is "request" or "request/alternative".
	name        string
	class       *string
	mode        *resourceapi.DeviceAllocationMode
	count       *int64
	selectors   *[]resourceapi.DeviceSelector
	capacity    **resourceapi.CapacityRequirements
	tolerations *[]resourceapi.DeviceToleration
}

func (at requestPlace) in(claims []*resourceapi.ResourceClaim) asked {
	r := &claims[at.claim].Spec.Devices.Requests[at.request]
	if at.alternative < 0 {
		e := r.Exactly
		return asked{r.Name, &e.DeviceClassName, &e.AllocationMode, &e.Count, &e.Selectors, &e.Capacity, &e.Tolerations}
	}
	a := &r.FirstAvailable[at.alternative]
	return asked{resourceclaim.CreateSubRequestRef(r.Name, a.Name), &a.DeviceClassName, &a.AllocationMode, &a.Count, &a.Selectors, &a.Capacity, &a.Tolerations}
}

// pointer returns the JSON pointer to the place below the claim's spec.
func (at requestPlace) pointer() string {
	path := fmt.Sprintf("/devices/requests/%d", at.request)
	if at.alternative < 0 {
		return path + "/exactly"
	}
	return fmt.Sprintf("%s/firstAvailable/%d", path, at.alternative)
}

// path returns the same in the manner of [api.Evidence].
func (at requestPlace) path() string {
	path := fmt.Sprintf("spec.devices.requests[%d]", at.request)
	if at.alternative < 0 {
		return path + ".exactly"
	}
	return fmt.Sprintf("%s.firstAvailable[%d]", path, at.alternative)
}

// places lists the requests and alternatives of claims.
func places(claims []*resourceapi.ResourceClaim) []requestPlace {
	var all []requestPlace
	for i, claim := range claims {
		for j := range claim.Spec.Devices.Requests {
			if claim.Spec.Devices.Requests[j].Exactly != nil {
				all = append(all, requestPlace{i, j, -1})
			}
			for k := range claim.Spec.Devices.Requests[j].FirstAvailable {
				all = append(all, requestPlace{i, j, k})
			}
		}
	}
	return all
}

// intolerant lists the requests that do not tolerate a taint.
func intolerant(claims []*resourceapi.ResourceClaim, taint resourceapi.DeviceTaint) []requestPlace {
	var list []requestPlace
	for _, at := range places(claims) {
		if !slices.ContainsFunc(*at.in(claims).tolerations, func(t resourceapi.DeviceToleration) bool { return resourceclaim.ToleratesTaint(t, taint) }) {
			list = append(list, at)
		}
	}
	return list
}

// nameIn names a request for people: with its claim, if there are several.
func nameIn(claims []*resourceapi.ResourceClaim, at requestPlace) string {
	name := at.in(claims).name
	if len(claims) > 1 {
		name = cluster.ClaimTitle(claims[at.claim]) + "." + name
	}
	return name
}
