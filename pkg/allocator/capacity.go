// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"math"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// enough reports whether a device has the capacity that a request takes: of the rest, or of
// all that it has.
func (s *search) enough(r *request, at int, left bool) (bool, error) {
	d := &s.devices[at]
	if r.Capacity != nil {
		for name := range r.Capacity.Requests {
			if _, has := d.Capacity[name]; !has {
				return false, nil
			}
		}
	}
	takes := s.takes(r, d)
	if !s.Behaves(cluster.CapacityWraps) {
		for capacity, amount := range takes {
			if amount.Sign() < 0 || overflows(askedOf(r, capacity), d.Capacity[capacity].RequestPolicy) {
				return false, fmt.Errorf("claim %s, request %s: checking capacity for device %s: capacity %q cannot be represented", name(r.Claim), r.Name, d.ID, capacity)
			}
		}
	}
	used := s.Facts.Usage.Consumed(d.ID)
	for name, capacity := range d.Capacity {
		if forbidden(takes[name], capacity.RequestPolicy) {
			return false, nil
		}
		total := takes[name].DeepCopy()
		if left {
			total.Add(used[name])
			total.Add(d.shares[name])
		}
		if total.Cmp(capacity.Value) > 0 {
			return false, nil
		}
	}
	return true, nil
}

// asked returns what a request asks of a capacity, nil if nothing.
func askedOf(r *request, name resourceapi.QualifiedName) *resource.Quantity {
	if r.Capacity == nil {
		return nil
	}
	if amount, ok := r.Capacity.Requests[name]; ok {
		return &amount
	}
	return nil
}

// takes returns what a request takes of each capacity of a device.
func (s *search) takes(r *request, d *device) map[resourceapi.QualifiedName]resource.Quantity {
	if len(d.Capacity) == 0 {
		return nil
	}
	all := map[resourceapi.QualifiedName]resource.Quantity{}
	for name, capacity := range d.Capacity {
		all[name] = s.taken(askedOf(r, name), capacity)
	}
	return all
}

// taken returns the amount taken of a capacity, rounded up in machine numbers.
func (s *search) taken(asked *resource.Quantity, capacity resourceapi.DeviceCapacity) resource.Quantity {
	policy := capacity.RequestPolicy
	switch {
	case asked == nil && policy != nil && policy.Default != nil:
		return policy.Default.DeepCopy()
	case asked == nil:
		return capacity.Value.DeepCopy()
	case policy == nil:
		return asked.DeepCopy()
	case policy.ValidRange != nil && policy.ValidRange.Min != nil:
		valid := policy.ValidRange
		if asked.Cmp(*valid.Min) < 0 {
			return valid.Min.DeepCopy()
		}
		if valid.Step == nil || valid.Step.Value() == 0 {
			return asked.DeepCopy()
		}
		low, step := valid.Min.Value(), valid.Step.Value()
		steps := (asked.Value() - low) / step
		if (asked.Value()-low)%step != 0 {
			steps++
		}
		format := valid.Step.Format
		if s.Behaves(cluster.CapacityWraps) {
			format = resource.BinarySI
		}
		return *resource.NewQuantity(low+step*steps, format)
	}
	for _, valid := range policy.ValidValues {
		if asked.Cmp(valid) <= 0 {
			return valid.DeepCopy()
		}
	}
	return asked.DeepCopy()
}

// overflows reports whether rounding up leaves the numbers of the machine.
func overflows(asked *resource.Quantity, policy *resourceapi.CapacityRequestPolicy) bool {
	if asked == nil || policy == nil || policy.ValidRange == nil || policy.ValidRange.Min == nil || policy.ValidRange.Step == nil || asked.Cmp(*policy.ValidRange.Min) < 0 {
		return false
	}
	if asked.CmpInt64(math.MaxInt64) > 0 {
		return true
	}
	low, step := policy.ValidRange.Min.Value(), policy.ValidRange.Step.Value()
	steps := (asked.Value() - low + step - 1) / max(1, step)
	return low >= 0 && step > 0 && steps > (math.MaxInt64-low)/step
}

// forbidden reports whether a policy does not allow an amount.
func forbidden(amount resource.Quantity, policy *resourceapi.CapacityRequestPolicy) bool {
	switch {
	case policy == nil, policy.Default != nil && amount == *policy.Default:
		return false
	case policy.ValidRange != nil:
		valid := policy.ValidRange
		if valid.Max != nil && amount.Cmp(*valid.Max) > 0 {
			return true
		}
		return valid.Step != nil && valid.Min != nil && valid.Step.Value() != 0 && (amount.Value()-valid.Min.Value())%valid.Step.Value() != 0
	case len(policy.ValidValues) == 0:
		return false
	}
	for _, valid := range policy.ValidValues {
		if amount.Cmp(valid) == 0 {
			return false
		}
	}
	return true
}
