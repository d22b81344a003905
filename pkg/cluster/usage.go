// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"iter"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Holder is an allocated claim with its result for a device.
type Holder struct {
	Claim  *resourceapi.ResourceClaim
	Result *resourceapi.DeviceRequestAllocationResult
}

// Usage is which devices are in use, and by whom. Devices are known by name alone:
// claims can have some that no slice has any more.
type Usage struct {
	consumableCapacity bool
	pools              layers[snapshot.PoolID, *PoolUsage]
}

// PoolUsage is the part of a [Usage] for one pool. In a cluster that was amended it is the
// same one, if no claim with devices of the pool differs. Of nil, nothing is in use.
type PoolUsage struct {
	devices layers[string, *deviceUsage]
}

// deviceUsage has the holders of a device. It is made of its holders, in the order of
// namespace and name.
type deviceUsage struct {
	holders           []Holder
	exclusive, shared bool
	consumed          map[resourceapi.QualifiedName]resource.Quantity
}

// newUsage collects the devices in use as GatherAllocatedState (with consumable capacity)
// or ListAllAllocatedDevices (without) of the scheduler's claim tracker do. Allocations
// that the scheduler has not written to a claim yet are not known here. If the changes
// since another usage are known, only these are looked at.
func newUsage(claims []*resourceapi.ResourceClaim, consumableCapacity bool, sibling *Usage, changed *difference[*resourceapi.ResourceClaim]) *Usage {
	if changed != nil {
		return sibling.with(changed)
	}
	devices := map[snapshot.PoolID]map[string]*deviceUsage{}
	for id, holder := range allHolders(claims) {
		name := snapshot.PoolID{Driver: id.Driver, Name: id.Pool}
		if devices[name] == nil {
			devices[name] = map[string]*deviceUsage{}
		}
		d := devices[name][id.Device]
		if d == nil {
			d = &deviceUsage{}
			devices[name][id.Device] = d
		}
		d.holders = append(d.holders, holder)
	}
	pools := make(map[snapshot.PoolID]*PoolUsage, len(devices))
	for name, ofPool := range devices {
		for _, d := range ofPool {
			d.sum(consumableCapacity)
		}
		pools[name] = &PoolUsage{layers[string, *deviceUsage]{}.With(ofPool)}
	}
	return &Usage{consumableCapacity, layers[snapshot.PoolID, *PoolUsage]{}.With(pools)}
}

// allHolders visits the results of all allocated claims.
func allHolders(claims []*resourceapi.ResourceClaim) iter.Seq2[DeviceID, Holder] {
	return func(yield func(DeviceID, Holder) bool) {
		for _, claim := range claims {
			if claim.Status.Allocation == nil {
				continue
			}
			results := claim.Status.Allocation.Devices.Results
			for i := range results {
				result := &results[i]
				if !yield(DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device}, Holder{claim, result}) {
					return
				}
			}
		}
	}
}

// with returns the usage after some claims changed.
func (u *Usage) with(d *difference[*resourceapi.ResourceClaim]) *Usage {
	changed := map[snapshot.PoolID]map[string]*deviceUsage{}
	device := func(id DeviceID) *deviceUsage {
		name := snapshot.PoolID{Driver: id.Driver, Name: id.Pool}
		if changed[name] == nil {
			changed[name] = map[string]*deviceUsage{}
		}
		if changed[name][id.Device] == nil {
			changed[name][id.Device] = &deviceUsage{holders: slices.Clone(u.Holders(id))}
		}
		return changed[name][id.Device]
	}
	for id, gone := range allHolders(d.Removed) {
		of := device(id)
		of.holders = slices.DeleteFunc(of.holders, func(h Holder) bool { return h == gone })
	}
	for id, holder := range allHolders(d.Added) {
		of := device(id)
		at := len(of.holders)
		for at > 0 && compareObjects(of.holders[at-1].Claim, holder.Claim) > 0 {
			at--
		}
		of.holders = slices.Insert(of.holders, at, holder)
	}
	if len(changed) == 0 {
		return u
	}
	pools := make(map[snapshot.PoolID]*PoolUsage, len(changed))
	for name, devices := range changed {
		for _, d := range devices {
			d.sum(u.consumableCapacity)
		}
		before := layers[string, *deviceUsage]{}
		if pool, found := u.pools.Get(name); found {
			before = pool.devices
		}
		pools[name] = &PoolUsage{before.With(devices)}
	}
	return &Usage{u.consumableCapacity, u.pools.With(pools)}
}

// sum finds out what the holders of a device leave of it.
func (d *deviceUsage) sum(consumableCapacity bool) {
	for _, h := range d.holders {
		switch {
		case ptr.Deref(h.Result.AdminAccess, false):
			// Admin access does not take a device away from others.
		case !consumableCapacity || h.Result.ShareID == nil:
			d.exclusive = true
		default:
			d.shared = true
			d.consume(h.Result.ConsumedCapacity)
		}
	}
}

func (d *deviceUsage) consume(capacity map[resourceapi.QualifiedName]resource.Quantity) {
	if capacity == nil {
		return
	}
	if d.consumed == nil {
		d.consumed = map[resourceapi.QualifiedName]resource.Quantity{}
	}
	for name, quantity := range capacity {
		sum := d.consumed[name].DeepCopy()
		sum.Add(quantity)
		d.consumed[name] = sum
	}
}

// OfPool returns the usage of a pool, nil if no claim has a device of it.
func (u *Usage) OfPool(driver, pool string) *PoolUsage {
	use, _ := u.pools.Get(snapshot.PoolID{Driver: driver, Name: pool})
	return use
}

// Holders visits the results with devices of the pool, in no order.
func (p *PoolUsage) Holders() iter.Seq[Holder] {
	return func(yield func(Holder) bool) {
		if p == nil {
			return
		}
		for _, d := range p.devices.All() {
			for _, h := range d.holders {
				if !yield(h) {
					return
				}
			}
		}
	}
}

func (u *Usage) of(id DeviceID) deviceUsage {
	if pool, found := u.pools.Get(snapshot.PoolID{Driver: id.Driver, Name: id.Pool}); found {
		if d, found := pool.devices.Get(id.Device); found {
			return *d
		}
	}
	return deviceUsage{}
}

// devices visits those that claims have, in no order.
func (u *Usage) devices() iter.Seq[DeviceID] {
	return func(yield func(DeviceID) bool) {
		for name, pool := range u.pools.All() {
			for device, use := range pool.devices.All() {
				if len(use.holders) > 0 && !yield(DeviceID{name.Driver, name.Name, device}) {
					return
				}
			}
		}
	}
}

// Holders returns the claims that have the device in their allocation, in the
// order of namespace and name, including those with admin access.
func (u *Usage) Holders(id DeviceID) []Holder {
	return u.of(id).holders
}

// InUse reports whether the device is allocated exclusively, so that the
// allocator skips it for requests without admin access.
func (u *Usage) InUse(id DeviceID) bool {
	return u.of(id).exclusive
}

// Shared reports whether claims have shares of the device. The counters of such
// a device are charged already, and not once more for another share.
func (u *Usage) Shared(id DeviceID) bool {
	return u.of(id).shared
}

// Consumed returns how much of the device's capacity its shares take, by
// capacity name. The result is nil if there are none; callers must not change
// it.
func (u *Usage) Consumed(id DeviceID) map[resourceapi.QualifiedName]resource.Quantity {
	return u.of(id).consumed
}
