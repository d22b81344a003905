// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// Holder is an allocated claim together with the one of its results that is
// about the device in question.
type Holder struct {
	Claim  *resourceapi.ResourceClaim
	Result *resourceapi.DeviceRequestAllocationResult
}

// Usage is which devices are in use, and by whom. Devices are known by name alone:
// claims can have some that no slice has any more.
type Usage struct {
	exclusive sets.Set[DeviceID]
	shared    sets.Set[DeviceID]
	consumed  map[DeviceID]map[resourceapi.QualifiedName]resource.Quantity
	holders   map[DeviceID][]Holder
}

// newUsage collects what is in use as GatherAllocatedState (with
// consumable capacity) or ListAllAllocatedDevices (without) of the scheduler's
// claim tracker do. Allocations that the scheduler has only in mind and not
// yet written to a claim are not known here.
func newUsage(claims []*resourceapi.ResourceClaim, consumableCapacity bool) *Usage {
	u := &Usage{
		exclusive: sets.New[DeviceID](),
		shared:    sets.New[DeviceID](),
		consumed:  map[DeviceID]map[resourceapi.QualifiedName]resource.Quantity{},
		holders:   map[DeviceID][]Holder{},
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		results := claim.Status.Allocation.Devices.Results
		for i := range results {
			result := &results[i]
			id := DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
			u.holders[id] = append(u.holders[id], Holder{Claim: claim, Result: result})
			switch {
			case ptr.Deref(result.AdminAccess, false):
				// Admin access does not take a device away from others.
			case !consumableCapacity || result.ShareID == nil:
				u.exclusive.Insert(id)
			default:
				u.shared.Insert(id)
				u.consume(id, result.ConsumedCapacity)
			}
		}
	}
	return u
}

func (u *Usage) consume(id DeviceID, capacity map[resourceapi.QualifiedName]resource.Quantity) {
	if capacity == nil {
		return
	}
	total := u.consumed[id]
	if total == nil {
		total = map[resourceapi.QualifiedName]resource.Quantity{}
		u.consumed[id] = total
	}
	for name, quantity := range capacity {
		sum := total[name].DeepCopy()
		sum.Add(quantity)
		total[name] = sum
	}
}

// Holders returns the claims that have the device in their allocation, in the
// order of namespace and name, including those with admin access.
func (u *Usage) Holders(id DeviceID) []Holder {
	return u.holders[id]
}

// InUse reports whether the device is allocated exclusively, so that the
// allocator skips it for requests without admin access.
func (u *Usage) InUse(id DeviceID) bool {
	return u.exclusive.Has(id)
}

// Shared reports whether claims have shares of the device. The counters of such
// a device are charged already, and not once more for another share.
func (u *Usage) Shared(id DeviceID) bool {
	return u.shared.Has(id)
}

// Consumed returns how much of the device's capacity its shares take, by
// capacity name. The result is nil if there are none; callers must not change
// it.
func (u *Usage) Consumed(id DeviceID) map[resourceapi.QualifiedName]resource.Quantity {
	return u.consumed[id]
}
