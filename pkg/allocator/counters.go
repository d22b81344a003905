// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// CounterUse is one counter of a counter set, and what is left of it.
type CounterUse struct {
	CounterSet, Counter string
	// Left is Total less Used. It is negative if more is used than there is.
	Total, Used, Left resource.Quantity
	// By lists the devices in use that take some of it.
	By []DeviceID
}

// CountersOf returns the counters of the newest generation of a pool, sorted
// by counter set and counter. A device that is in use, exclusively or by
// shares, takes its counters once. There are none if DRAPartitionableDevices
// is off.
func (a *Allocator) CountersOf(pool *Pool) []CounterUse {
	if !a.features.PartitionableDevices {
		return nil
	}
	type key struct{ set, counter string }
	index := map[key]int{}
	var uses []CounterUse
	for _, slice := range pool.Slices {
		for _, set := range slice.Spec.SharedCounters {
			for name, counter := range set.Counters {
				// Two sets with one name make the pool invalid.
				if _, exists := index[key{set.Name, name}]; exists {
					continue
				}
				index[key{set.Name, name}] = len(uses)
				uses = append(uses, CounterUse{
					CounterSet: set.Name, Counter: name,
					Total: counter.Value.DeepCopy(), Left: counter.Value.DeepCopy(),
				})
			}
		}
	}
	if len(uses) == 0 {
		return nil
	}
	for _, slice := range pool.Slices {
		if len(slice.Spec.SharedCounters) > 0 {
			continue
		}
		for i := range slice.Spec.Devices {
			device := newDevice(pool, slice, i)
			if !a.InUse(device.ID) && !a.Shared(device.ID) {
				continue
			}
			for _, consumed := range device.ConsumesCounters {
				for name, counter := range consumed.Counters {
					u, exists := index[key{consumed.CounterSet, name}]
					if !exists {
						continue
					}
					uses[u].Used.Add(counter.Value)
					uses[u].Left.Sub(counter.Value)
					uses[u].By = append(uses[u].By, device.ID)
				}
			}
		}
	}
	slices.SortFunc(uses, func(a, b CounterUse) int {
		return cmp.Or(cmp.Compare(a.CounterSet, b.CounterSet), cmp.Compare(a.Counter, b.Counter))
	})
	return uses
}
