// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/behavior"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// ErrInvalidPool means that nothing fits, and that a pool of the node is invalid.
var ErrInvalidPool = errors.New("there are invalid resource pools")

// ReleasePanicError means that the allocator panics, and with it the scheduler.
type ReleasePanicError struct {
	// Because is the bug.
	Because behavior.Behavior
	text    string
}

func (e *ReleasePanicError) Error() string { return e.text }

// Question is a question to the allocator.
type Question struct {
	Facts  *cluster.Cluster
	Node   *corev1.Node
	Pools  []*cluster.NodePool
	Claims []*resourceapi.ResourceClaim
	// Matches evaluates an expression for a device.
	Matches func(ctx context.Context, expression string, device *cluster.Device) (bool, error)
	// Behaves reports what the allocator does, see [behavior.Changes].
	Behaves func(behavior.Behavior) bool
}

// request is one request, or one alternative of a prioritized list.
type request struct {
	*cluster.Request
	class *resourceapi.DeviceClass
	// count is how many devices it needs. all has the devices of a request for all.
	count int
	all   []int
}

// choice is a request with its alternatives.
type choice struct {
	prioritized  bool
	alternatives []request
}

// matchKey is the key for the allocator's memory of a device and an alternative.
type matchKey struct {
	claim, choice, alternative, device int
}

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
	case errors.Is(err, errTooMany) && s.Behaves(behavior.Permutes) && !s.Facts.Gates.Enabled(cluster.GatePrioritizedList):
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
			if s.Behaves(behavior.AlternativesMixedUp) {
				key.alternative = max(0, k-1)
			}
			r, err := s.request(claim, spec, key)
			if err != nil {
				return err
			}
			s.choices[i][j].alternatives = append(s.choices[i][j].alternatives, r)
			least = min(least, r.count)
		}
		if !s.Behaves(behavior.CountsOverflow) && least > resourceapi.AllocationResultsMaxSize-atLeast {
			return fmt.Errorf("claim %s, request %s: adding %d devices exceeds the claim limit of %d, with %d already accounted for", name(claim), claim.Spec.Devices.Requests[j].Name, least, resourceapi.AllocationResultsMaxSize, atLeast)
		}
		atLeast += least
	}
	if atLeast > resourceapi.AllocationResultsMaxSize {
		return fmt.Errorf("claim %s: %d devices exceeds the claim limit of %d", name(claim), atLeast, resourceapi.AllocationResultsMaxSize)
	}
	if atLeast < 0 {
		return &ReleasePanicError{behavior.CountsOverflow, fmt.Sprintf("claim %s: the counts of its requests have a sum that overflows", name(claim))}
	}
	for j, c := range claim.Spec.Devices.Constraints {
		constraint := &constraint{requests: c.Requests}
		switch {
		case c.MatchAttribute != nil:
			constraint.attribute = string(*c.MatchAttribute)
		case c.DistinctAttribute != nil && s.Facts.Gates.Channel() != cluster.ChannelStable:
			constraint.attribute, constraint.distinct = string(*c.DistinctAttribute), true
			constraint.perRequest = s.Behaves(behavior.DistinctPerRequest)
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
				enough, err := s.enough(&r, at, s.Behaves(behavior.AllLeavesOutFull))
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

// selectable reports whether the selectors of a class and a request select a device. What
// was found is remembered under the key.
func (s *search) selectable(key matchKey, r *request, at int) (bool, error) {
	device := s.devices[at].Device
	if len(device.BindingConditions) > 0 && !s.Facts.Gates.BindingConditions() {
		return false, nil
	}
	key.device = at
	if known, ok := s.matches[key]; ok {
		return known, nil
	}
	for _, selectors := range [][]resourceapi.DeviceSelector{r.class.Spec.Selectors, r.Selectors} {
		for i := range selectors {
			if selectors[i].CEL == nil {
				return false, fmt.Errorf("claim %s, request %s, selector #%d: CEL expression empty", name(r.Claim), r.Name, i)
			}
			match, err := s.Matches(s.ctx, selectors[i].CEL.Expression, s.devices[at].Device)
			if err != nil {
				return false, fmt.Errorf("claim %s: selector #%d on device %s: CEL runtime error: %w", name(r.Claim), i, device.ID, err)
			}
			if !match {
				s.matches[key] = false
				return false, nil
			}
		}
	}
	s.matches[key] = true
	return true, nil
}

func name(claim *resourceapi.ResourceClaim) string { return claim.Namespace + "/" + claim.Name }

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
