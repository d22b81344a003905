// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// allocatedState is which devices are in use, as upstream takes it.
type allocatedState struct {
	structured.AllocatedState
	consumableCapacity bool
	// shares has the shares by pool.
	shares map[snapshot.PoolID][]structured.SharedDeviceID
}

func newState(consumableCapacity bool) *allocatedState {
	return &allocatedState{
		AllocatedState: structured.AllocatedState{
			AllocatedDevices:         sets.New[structured.DeviceID](),
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		},
		consumableCapacity: consumableCapacity,
		shares:             map[snapshot.PoolID][]structured.SharedDeviceID{},
	}
}

// of returns the state for an allocator that only knows the given pools.
// Devices are looked up by their ID, so devices of other pools make no
// difference. Upstream searches the shares one by one, however, for many
// devices, so it is worth leaving out other pools.
func (s *allocatedState) of(pools []*cluster.Pool) structured.AllocatedState {
	state := s.AllocatedState
	if len(state.AllocatedSharedDeviceIDs) == 0 {
		return state
	}
	state.AllocatedSharedDeviceIDs = sets.New[structured.SharedDeviceID]()
	for _, pool := range pools {
		state.AllocatedSharedDeviceIDs.Insert(s.shares[snapshot.PoolID{Driver: pool.Driver, Name: pool.Name}]...)
	}
	return state
}

// gatherState collects the devices in use as [cluster.Usage] does.
func gatherState(claims []*resourceapi.ResourceClaim, consumableCapacity bool) *allocatedState {
	s := newState(consumableCapacity)
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		results := claim.Status.Allocation.Devices.Results
		for i := range results {
			s.add(&results[i])
		}
	}
	return s
}

// stateOf collects the devices in use of some pools, and counts them.
func stateOf(usage *cluster.Usage, pools []*cluster.Pool, consumableCapacity bool) (state structured.AllocatedState, devices int) {
	s := newState(consumableCapacity)
	for _, pool := range pools {
		for holder := range usage.OfPool(pool.Driver, pool.Name).Holders() {
			s.add(holder.Result)
			devices++
		}
	}
	return s.AllocatedState, devices
}

func (s *allocatedState) add(result *resourceapi.DeviceRequestAllocationResult) {
	if ptr.Deref(result.AdminAccess, false) {
		return
	}
	unique := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
	if !s.consumableCapacity || result.ShareID == nil {
		s.AllocatedDevices.Insert(unique)
		return
	}
	share := structured.MakeSharedDeviceID(unique, result.ShareID)
	s.AllocatedSharedDeviceIDs.Insert(share)
	pool := snapshot.PoolID{Driver: result.Driver, Name: result.Pool}
	s.shares[pool] = append(s.shares[pool], share)
	if result.ConsumedCapacity != nil {
		s.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(unique, result.ConsumedCapacity))
	}
}
