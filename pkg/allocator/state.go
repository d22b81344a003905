// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// DeviceID identifies a device in the cluster.
type DeviceID struct {
	Driver, Pool, Device string
}

// String returns driver/pool/device.
func (id DeviceID) String() string {
	return id.Driver + "/" + id.Pool + "/" + id.Device
}

// Holder is an allocated claim together with the one of its results that is
// about the device in question.
type Holder struct {
	Claim  *resourceapi.ResourceClaim
	Result *resourceapi.DeviceRequestAllocationResult
}

// allocatedState is which devices are in use, and by whom.
type allocatedState struct {
	upstream structured.AllocatedState
	// exclusive and shared have the same as upstream's sets of unique strings.
	exclusive sets.Set[DeviceID]
	shared    sets.Set[DeviceID]
	consumed  map[DeviceID]map[resourceapi.QualifiedName]resource.Quantity
	holders   map[DeviceID][]Holder
	// shares has the shares by pool.
	shares map[poolID][]structured.SharedDeviceID
}

// of returns the state for an allocator that only knows the given pools.
// Devices are looked up by their ID, so those of other pools make no
// difference. Upstream searches the shares one by one, however, for many
// devices, so it is worth to leave out those of other pools.
func (s *allocatedState) of(entries []*poolEntry) structured.AllocatedState {
	state := s.upstream
	if len(state.AllocatedSharedDeviceIDs) == 0 {
		return state
	}
	state.AllocatedSharedDeviceIDs = sets.New[structured.SharedDeviceID]()
	for _, entry := range entries {
		state.AllocatedSharedDeviceIDs.Insert(s.shares[poolID{entry.pool.Driver, entry.pool.Name}]...)
	}
	return state
}

// gatherState collects what is in use as GatherAllocatedState (with
// consumable capacity) or ListAllAllocatedDevices (without) of the scheduler's
// claim tracker do. Allocations that the scheduler has only in mind and not
// yet written to a claim are not known here.
func gatherState(claims []*resourceapi.ResourceClaim, consumableCapacity bool) allocatedState {
	s := allocatedState{
		upstream: structured.AllocatedState{
			AllocatedDevices:         sets.New[structured.DeviceID](),
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		},
		exclusive: sets.New[DeviceID](),
		shared:    sets.New[DeviceID](),
		consumed:  map[DeviceID]map[resourceapi.QualifiedName]resource.Quantity{},
		holders:   map[DeviceID][]Holder{},
		shares:    map[poolID][]structured.SharedDeviceID{},
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		results := claim.Status.Allocation.Devices.Results
		for i := range results {
			result := &results[i]
			id := DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
			s.holders[id] = append(s.holders[id], Holder{Claim: claim, Result: result})
			// Admin access does not take a device away from others.
			if ptr.Deref(result.AdminAccess, false) {
				continue
			}
			unique := structured.MakeDeviceID(id.Driver, id.Pool, id.Device)
			if !consumableCapacity || result.ShareID == nil {
				s.exclusive.Insert(id)
				s.upstream.AllocatedDevices.Insert(unique)
				continue
			}
			s.shared.Insert(id)
			share := structured.MakeSharedDeviceID(unique, result.ShareID)
			s.upstream.AllocatedSharedDeviceIDs.Insert(share)
			pool := poolID{id.Driver, id.Pool}
			s.shares[pool] = append(s.shares[pool], share)
			if result.ConsumedCapacity == nil {
				continue
			}
			s.upstream.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(unique, result.ConsumedCapacity))
			total := s.consumed[id]
			if total == nil {
				total = map[resourceapi.QualifiedName]resource.Quantity{}
				s.consumed[id] = total
			}
			for name, quantity := range result.ConsumedCapacity {
				sum := total[name].DeepCopy()
				sum.Add(quantity)
				total[name] = sum
			}
		}
	}
	return s
}

// Holders returns the claims that have the device in their allocation, in the
// order of namespace and name, including those with admin access.
func (a *Allocator) Holders(id DeviceID) []Holder {
	return a.state.holders[id]
}

// InUse reports whether the device is allocated exclusively, so that the
// allocator skips it for requests without admin access.
func (a *Allocator) InUse(id DeviceID) bool {
	return a.state.exclusive.Has(id)
}

// Shared reports whether claims have shares of the device. The counters of such
// a device are charged already, and not once more for another share.
func (a *Allocator) Shared(id DeviceID) bool {
	return a.state.shared.Has(id)
}

// Consumed returns how much of the device's capacity its shares take, by
// capacity name. The result is nil if there are none; callers must not change
// it.
func (a *Allocator) Consumed(id DeviceID) map[resourceapi.QualifiedName]resource.Quantity {
	return a.state.consumed[id]
}
