// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// counterID is a counter of a pool, without the pool.
type counterID struct{ set, name string }

// account has the rest of the counters of a pool, and the charges of the search.
type account struct {
	left, charged map[counterID]resource.Quantity
}

// counters has the accounts of the pools that were asked about.
type counters struct {
	Question
	accounts map[string]*account
}

func newCounters(q Question) counters { return counters{q, map[string]*account{}} }

// of returns the account of the pool of a device. Where pools are known by their names
// alone, pools of one name share the account of the pool that is asked about first.
func (c *counters) of(d *device) *account {
	key := d.pool.Pool.Name
	if !c.Behaves(cluster.CountersByPoolName) {
		key = d.pool.Pool.Driver + "/" + key
	}
	if known := c.accounts[key]; known != nil {
		return known
	}
	a := &account{map[counterID]resource.Quantity{}, map[counterID]resource.Quantity{}}
	c.accounts[key] = a
	all := d.pool.Pool.Slices
	if d.pool.Generation != d.pool.Pool.Generation {
		all = d.pool.Slices
	}
	for _, slice := range all {
		for _, set := range slice.Spec.SharedCounters {
			for name, counter := range set.Counters {
				a.left[counterID{set.Name, name}] = counter.Value.DeepCopy()
			}
		}
	}
	for _, slice := range all {
		if len(slice.Spec.SharedCounters) > 0 {
			continue
		}
		for i := range slice.Spec.Devices {
			used := &slice.Spec.Devices[i]
			if !c.pays(cluster.DeviceID{Driver: d.ID.Driver, Pool: d.ID.Pool, Device: used.Name}) {
				continue
			}
			each(used, func(id counterID, amount resource.Quantity) {
				if left, exists := a.left[id]; exists {
					left.Sub(amount)
					a.left[id] = left
				}
			})
		}
	}
	return a
}

// pays reports whether the counters of a device are charged because claims have it.
func (c *counters) pays(id cluster.DeviceID) bool {
	if c.Facts.Usage.InUse(id) {
		return true
	}
	return !c.Behaves(cluster.SharesNotCharged) && (c.Facts.Usage.Shared(id) || c.Facts.Usage.Consumed(id) != nil)
}

// charge charges the counters of a device and reports whether there is enough: all counters
// of the account must have something left, also the counters that the device does not
// consume.
func (c *counters) charge(d *device) bool {
	a := c.of(d)
	each(d.Device.Device, func(id counterID, amount resource.Quantity) {
		charged := a.charged[id].DeepCopy()
		charged.Add(amount)
		a.charged[id] = charged
	})
	for id, left := range a.left {
		if left.Cmp(a.charged[id]) < 0 {
			c.release(d)
			return false
		}
	}
	return true
}

// release releases the counters of a device.
func (c *counters) release(d *device) {
	a := c.of(d)
	each(d.Device.Device, func(id counterID, amount resource.Quantity) {
		charged := a.charged[id].DeepCopy()
		charged.Sub(amount)
		a.charged[id] = charged
	})
}

// each visits the counters that a device consumes.
func each(d *resourceapi.Device, visit func(counterID, resource.Quantity)) {
	for _, consumption := range d.ConsumesCounters {
		for name, counter := range consumption.Counters {
			visit(counterID{consumption.CounterSet, name}, counter.Value)
		}
	}
}
