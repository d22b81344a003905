// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// mostShapes limits how many shapes of claims are counted, apart from the shapes of
// classes.
const mostShapes = 40

// claimShape is a shape with the claims that have it.
type claimShape struct {
	api.ClaimShape
	spec    resourceapi.ResourceClaimSpec
	claims  int
	example api.ObjectRef
}

// devicesOf returns the shape of a claim with one request for a number of devices, false if
// the claim has no such shape.
func devicesOf(spec *resourceapi.ResourceClaimSpec) (claimShape, bool) {
	if len(spec.Devices.Requests) != 1 {
		return claimShape{}, false
	}
	exactly := spec.Devices.Requests[0].Exactly
	if exactly == nil || exactly.AllocationMode == resourceapi.DeviceAllocationModeAll || ptr.Deref(exactly.AdminAccess, false) || len(exactly.DerivedAttributes) > 0 {
		return claimShape{}, false
	}
	request := *exactly.DeepCopy()
	request.AllocationMode, request.AdminAccess = resourceapi.DeviceAllocationModeExactCount, nil
	request.Count = max(request.Count, 1)
	s := claimShape{ClaimShape: api.ClaimShape{Class: request.DeviceClassName, Devices: int(request.Count)}}
	for i := range request.Selectors {
		if request.Selectors[i].CEL != nil {
			s.Selectors = append(s.Selectors, request.Selectors[i].CEL.Expression)
		}
	}
	for i := range request.Tolerations {
		s.Tolerations = append(s.Tolerations, tolerationText(&request.Tolerations[i]))
	}
	if request.Capacity != nil && len(request.Capacity.Requests) > 0 {
		s.Capacity = map[string]string{}
		for name, quantity := range request.Capacity.Requests {
			s.Capacity[string(name)] = quantity.String()
		}
	}
	var constraints []resourceapi.DeviceConstraint
	for _, c := range spec.Devices.Constraints {
		switch {
		case c.MatchAttribute != nil:
			s.Match = append(s.Match, string(*c.MatchAttribute))
		case c.DistinctAttribute != nil:
			s.Distinct = append(s.Distinct, string(*c.DistinctAttribute))
		default:
			return claimShape{}, false
		}
		c.Requests = nil
		constraints = append(constraints, c)
	}
	s.spec.Devices = resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: request.DeviceClassName, Exactly: &request}}, Constraints: constraints}
	return s, true
}

func tolerationText(t *resourceapi.DeviceToleration) string {
	text := t.Key
	if t.Operator != resourceapi.DeviceTolerationOpExists && t.Value != "" {
		text += "=" + t.Value
	}
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	return cmp.Or(text, "all taints")
}

// key returns the same for claims that ask for the same, whatever their requests are
// called.
func (s *claimShape) key() string {
	data, err := json.Marshal(s.ClaimShape)
	if err != nil {
		// It has nothing but texts and numbers.
		return fmt.Sprintf("%+v", s.ClaimShape)
	}
	return string(data)
}

// forOne returns the shape for one device like the devices of a shape.
func (s *claimShape) forOne() *claimShape {
	if s.Devices == 1 && len(s.Match)+len(s.Distinct) == 0 {
		return s
	}
	one := *s
	one.Devices, one.Match, one.Distinct = 1, nil, nil
	one.spec = *s.spec.DeepCopy()
	one.spec.Devices.Requests[0].Exactly.Count, one.spec.Devices.Constraints = 1, nil
	return &one
}

// base returns a shape with one device instead of several: the same devices can serve it,
// and nodes that are equivalent for it are so for the shape.
func (s *claimShape) base() *claimShape {
	base := *s
	base.Devices = 1
	base.spec = *s.spec.DeepCopy()
	base.spec.Devices.Requests[0].Exactly.Count = 1
	return &base
}

// ofClass returns the shape of claims for some devices of a class.
func ofClass(class string, count int) *claimShape {
	s := &claimShape{ClaimShape: api.ClaimShape{Class: class, Devices: count}}
	s.spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: class, Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(count),
	}}}
	return s
}

// shapesIn returns the shapes of the claims and templates of a cluster, with the number of
// claims that have none, or one too rare to be counted.
func shapesIn(snap *snapshot.Snapshot) (shapes []*claimShape, others int) {
	found := map[string]*claimShape{}
	add := func(spec *resourceapi.ResourceClaimSpec, example api.ObjectRef, claims int) {
		s, ok := devicesOf(spec)
		if !ok {
			others++
			return
		}
		known := found[s.key()]
		if known == nil {
			known = &s
			known.example = example
			found[s.key()] = known
		}
		known.claims += claims
	}
	for _, template := range snap.Templates {
		add(&template.Spec.Spec, api.RefTo(api.KindTemplate, template), 0)
	}
	for _, claim := range snap.Claims {
		add(&claim.Spec, api.RefTo(api.KindClaim, claim), 1)
	}
	shapes = slices.Collect(maps.Values(found))
	slices.SortFunc(shapes, func(a, b *claimShape) int {
		return cmp.Or(cmp.Compare(b.claims, a.claims), strings.Compare(a.key(), b.key()))
	})
	for _, s := range shapes[min(len(shapes), mostShapes):] {
		others += s.claims
	}
	return shapes[:min(len(shapes), mostShapes)], others
}
