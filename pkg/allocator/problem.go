// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"math"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

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
