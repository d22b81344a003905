// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// Allocate searches as the allocator does. It returns nil without an error if it finds
// nothing.
func Allocate(ctx context.Context, q Question) ([]resourceapi.AllocationResult, error) {
	s := newSearch(ctx, q)
	for i := range q.Claims {
		if err := s.prepare(i); err != nil {
			return nil, err
		}
	}
	switch done, err := s.next(position{}, false, 0); {
	case errors.Is(err, errTooMany) && s.Behaves(cluster.Permutes) && !s.Facts.Gates.Enabled(cluster.GatePrioritizedList):
		// The implementation that knows no alternatives has no such error.
		return nil, nil
	case err != nil:
		return nil, err
	case done:
		return s.allocations()
	}
	for _, pool := range q.Pools {
		if pool.Invalid != "" {
			return nil, ErrInvalidPool
		}
	}
	return nil, nil
}

// allocations returns the result.
func (s *search) allocations() ([]resourceapi.AllocationResult, error) {
	allocations := make([]resourceapi.AllocationResult, len(s.Claims))
	for i, results := range s.results {
		for _, found := range results {
			device := s.devices[found.device]
			result := resourceapi.DeviceRequestAllocationResult{
				Request: found.request.Name, Driver: device.ID.Driver, Pool: device.ID.Pool, Device: device.ID.Device,
				Tolerations: found.request.Tolerations, ConsumedCapacity: stored(found.takes),
			}
			if found.request.AdminAccess {
				result.AdminAccess = ptr.To(true)
			}
			if device.shared {
				result.ShareID = ptr.To(s.shareID())
			}
			if s.Facts.Gates.BindingConditions() {
				result.BindingConditions, result.BindingFailureConditions = device.BindingConditions, device.BindingFailureConditions
			}
			allocations[i].Devices.Results = append(allocations[i].Devices.Results, result)
		}
		selector, err := s.nodes(results)
		if err != nil {
			return nil, err
		}
		allocations[i].NodeSelector = selector
	}
	return allocations, nil
}

// nodes returns the node selector of an allocation: it selects the node if a device is bound
// to it, else all nodes that every device allows; nil if devices allow all nodes.
func (s *search) nodes(results []found) (*corev1.NodeSelector, error) {
	term := corev1.NodeSelectorTerm{}
	for _, f := range results {
		d := s.devices[f.device]
		node, _, selector := d.NodeSelection()
		if ptr.Deref(node, "") != "" || ptr.Deref(d.BindsToNode, false) {
			term = corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{s.Node.Name}}}}
			return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}, nil
		}
		if selector == nil || len(selector.NodeSelectorTerms) == 0 {
			continue
		}
		if len(selector.NodeSelectorTerms) > 1 {
			return nil, fmt.Errorf("unsupported ResourceSlice.NodeSelector with %d terms", len(selector.NodeSelectorTerms))
		}
		term.MatchFields = merge(term.MatchFields, selector.NodeSelectorTerms[0].MatchFields)
		term.MatchExpressions = merge(term.MatchExpressions, selector.NodeSelectorTerms[0].MatchExpressions)
	}
	if len(term.MatchFields)+len(term.MatchExpressions) == 0 {
		return nil, nil
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}, nil
}

// merge adds the requirements that are not there yet.
func merge(to, from []corev1.NodeSelectorRequirement) []corev1.NodeSelectorRequirement {
	for _, r := range from {
		if !slices.ContainsFunc(to, func(other corev1.NodeSelectorRequirement) bool {
			return other.Key == r.Key && other.Operator == r.Operator && slices.Equal(other.Values, r.Values)
		}) {
			to = append(to, r)
		}
	}
	return to
}

func (*search) shareID() types.UID { return uuid.NewUUID() }

// stored returns amounts as the API server stores them, by parsing the written form.
func stored(amounts map[resourceapi.QualifiedName]resource.Quantity) map[resourceapi.QualifiedName]resource.Quantity {
	if amounts == nil {
		return nil
	}
	read := map[resourceapi.QualifiedName]resource.Quantity{}
	for name, amount := range amounts {
		read[name] = resource.MustParse(amount.String())
	}
	return read
}

// prepare reads a claim and adds up how many devices it needs at least.
func (s *search) prepare(i int) error {
	claim := s.Claims[i]
	atLeast := 0
	s.choices[i] = nil
	for j, alternatives := range cluster.Requests(claim) {
		c := choice{prioritized: len(claim.Spec.Devices.Requests[j].FirstAvailable) > 0}
		if c.prioritized && !s.Facts.Gates.Enabled(cluster.GatePrioritizedList) {
			return fmt.Errorf("claim %s, request %s: has subrequests, but the feature is disabled", name(claim), claim.Spec.Devices.Requests[j].Name)
		}
		least := math.MaxInt
		s.choices[i] = append(s.choices[i], c)
		for k, spec := range alternatives {
			key := matchKey{claim: i, choice: j, alternative: k}
			if s.Behaves(cluster.AlternativesMixedUp) {
				key.alternative = max(0, k-1)
			}
			r, err := s.request(claim, spec, key)
			if err != nil {
				return err
			}
			s.choices[i][j].alternatives = append(s.choices[i][j].alternatives, r)
			least = min(least, r.count)
		}
		if !s.Behaves(cluster.CountsOverflow) && least > resourceapi.AllocationResultsMaxSize-atLeast {
			return fmt.Errorf("claim %s, request %s: adding %d devices exceeds the claim limit of %d, with %d already accounted for", name(claim), claim.Spec.Devices.Requests[j].Name, least, resourceapi.AllocationResultsMaxSize, atLeast)
		}
		atLeast += least
	}
	if atLeast > resourceapi.AllocationResultsMaxSize {
		return fmt.Errorf("claim %s: %d devices exceeds the claim limit of %d", name(claim), atLeast, resourceapi.AllocationResultsMaxSize)
	}
	if atLeast < 0 {
		return &ReleasePanicError{cluster.CountsOverflow, fmt.Sprintf("claim %s: the counts of its requests have a sum that overflows", name(claim))}
	}
	for j, c := range claim.Spec.Devices.Constraints {
		constraint := &constraint{requests: c.Requests}
		switch {
		case c.MatchAttribute != nil:
			constraint.attribute = string(*c.MatchAttribute)
		case c.DistinctAttribute != nil && s.Facts.Gates.Channel() != cluster.ChannelStable:
			constraint.attribute, constraint.distinct = string(*c.DistinctAttribute), true
			constraint.perRequest = s.Behaves(cluster.DistinctPerRequest)
		default:
			return fmt.Errorf("claim %s, constraint #%d: empty constraint (unsupported constraint type?)", name(claim), j)
		}
		s.constraints[i] = append(s.constraints[i], constraint)
	}
	return nil
}

// request reads one alternative. A request for all devices looks for them now.
func (s *search) request(claim *resourceapi.ResourceClaim, spec *cluster.Request, key matchKey) (request, error) {
	r := request{Request: spec, class: s.Facts.Snapshot.Class(spec.Class)}
	if r.class == nil {
		return r, fmt.Errorf("claim %s, request %s: could not retrieve device class %s", name(claim), spec.Name, spec.Class)
	}
	if len(spec.Derived) > 0 && !s.Facts.Gates.Enabled(cluster.GateDerivedAttributes) {
		return r, fmt.Errorf("claim %s, request %s: cannot handle request with derived attributes, the feature is disabled", name(claim), spec.Name)
	}
	if spec.AdminAccess && !s.Facts.Gates.Enabled(cluster.GateAdminAccess) {
		return r, fmt.Errorf("claim %s, request %s: admin access is requested, but the feature is disabled", name(claim), spec.Name)
	}
	if spec.Capacity != nil && !s.consumableCapacity && s.Facts.Gates.Channel() != cluster.ChannelStable {
		return r, fmt.Errorf("claim %s, request %s: has capacity requests, but the feature is disabled", name(claim), spec.Name)
	}
	if !spec.All() {
		r.count = int(spec.Count)
		return r, nil
	}
	for i, pool := range s.Pools {
		switch {
		case pool.Incomplete:
			return r, fmt.Errorf("claim %s, request %s: asks for all devices, but resource pool %s/%s is currently being updated", name(claim), spec.Name, pool.Pool.Driver, pool.Pool.Name)
		case pool.Invalid != "":
			return r, fmt.Errorf("claim %s, request %s: asks for all devices, but resource pool %s/%s is currently invalid", name(claim), spec.Name, pool.Pool.Driver, pool.Pool.Name)
		}
		for at := s.first[i]; at < s.first[i+1]; at++ {
			selectable, err := s.selectable(key, &r, at)
			if err != nil {
				return r, err
			}
			if !selectable {
				continue
			}
			if s.consumableCapacity {
				enough, err := s.enough(&r, at, s.Behaves(cluster.AllLeavesOutFull))
				if err != nil {
					return r, err
				}
				if !enough {
					continue
				}
			}
			r.all = append(r.all, at)
		}
	}
	r.count = len(r.all)
	return r, nil
}
