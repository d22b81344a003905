// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// PartitionUse is what the devices in use leave of a pool to those that use
// counters: of the counters themselves, and of the compatibility groups.
type PartitionUse struct {
	counters map[[2]string]CounterUse
	groups   map[string]GroupUse
	// Overcommitted is a counter of which more is used than there is, nil if there
	// is none. Then the allocator takes no device of the pool that consumes
	// counters.
	Overcommitted *CounterUse
}

// Counter returns a counter by its set and name.
func (u *PartitionUse) Counter(set, name string) (CounterUse, bool) {
	use, ok := u.counters[[2]string{set, name}]
	return use, ok
}

// Groups returns what the devices in use of a counter set have in common.
func (u *PartitionUse) Groups(set string) GroupUse { return u.groups[set] }

// GroupUse is what the devices in use of a counter set have in common
// (KEP-5963). The zero value is a set that nobody uses.
type GroupUse struct {
	Used bool
	// Declared is true if they declare groups. Others then need one of Groups,
	// of which there is none if those in use have nothing in common; else only
	// devices without groups can be used beside them.
	Declared bool
	Groups   sets.Set[string]
}

// with adds a device in use. Where some declare groups and some do not, which
// no allocator would bring about, the first one counts, as it does upstream.
func (g GroupUse) with(groups []string) GroupUse {
	if !g.Used {
		return GroupUse{Used: true, Declared: len(groups) > 0, Groups: sets.New(groups...)}
	}
	if len(groups) == 0 || !g.Declared {
		return g
	}
	return GroupUse{Used: true, Declared: true, Groups: g.Groups.Intersection(sets.New(groups...))}
}

// Admits reports whether a device of these groups can be used beside the others.
func (g GroupUse) Admits(groups []string) bool {
	switch {
	case !g.Used:
		return true
	case len(groups) == 0:
		return !g.Declared
	default:
		return g.Groups.HasAny(groups...)
	}
}

// PartitionUse returns what is left of a pool's newest generation. It is
// worked out once for each pool.
func (a *Allocator) PartitionUse(pool *Pool) *PartitionUse {
	a.partitionMutex.Lock()
	defer a.partitionMutex.Unlock()
	if use, ok := a.partitions[pool]; ok {
		return use
	}
	use := a.partitionUse(pool)
	a.partitions[pool] = use
	return use
}

func (a *Allocator) partitionUse(pool *Pool) *PartitionUse {
	u := &PartitionUse{counters: map[[2]string]CounterUse{}, groups: map[string]GroupUse{}}
	for _, use := range a.CountersOf(pool) {
		u.counters[[2]string{use.CounterSet, use.Counter}] = use
		if use.Left.Sign() < 0 && u.Overcommitted == nil {
			u.Overcommitted = &use
		}
	}
	for _, slice := range pool.Slices {
		for i := range slice.Spec.Devices {
			device := newDevice(pool, slice, i)
			if len(device.ConsumesCounters) == 0 || !a.InUse(device.ID) && !a.Shared(device.ID) && len(a.Consumed(device.ID)) == 0 {
				continue
			}
			for _, consumption := range device.ConsumesCounters {
				u.groups[consumption.CounterSet] = u.groups[consumption.CounterSet].with(consumption.CompatibilityGroups)
			}
		}
	}
	return u
}

// CounterConflict is why a device is not available as long as others are in use. One
// of the fields is set, besides Required and Groups that go with them.
type CounterConflict struct {
	// Gate is the feature gate without which the allocator takes no device
	// that consumes counters.
	Gate string
	// CounterSet has devices in use of other compatibility groups, Others,
	// than the device's own, Groups.
	CounterSet string
	Others     GroupUse
	Groups     []string
	// Overcommitted is a counter of the pool of which more is used than there is.
	Overcommitted *CounterUse
	// Short is a counter that has less left than the device consumes, Required.
	Short    *CounterUse
	Required resource.Quantity
}

// CounterConflict is why a device that consumes counters is not available as long as
// others are in use, or nil if it is available. What else claims require does not
// matter here.
func (a *Allocator) CounterConflict(d *Device) *CounterConflict {
	if len(d.ConsumesCounters) == 0 {
		return nil
	}
	if !a.features.PartitionableDevices {
		return &CounterConflict{Gate: "DRAPartitionableDevices"}
	}
	if a.features.ConsumableCapacity && ptr.Deref(d.AllowMultipleAllocations, false) &&
		(a.Shared(d.ID) || len(a.Consumed(d.ID)) > 0) {
		// A further share does not charge the counters again.
		return nil
	}
	use := a.PartitionUse(d.Pool)
	if a.FeatureEnabled("DRADeviceCompatibilityGroups") {
		for _, consumption := range d.ConsumesCounters {
			if others := use.Groups(consumption.CounterSet); !others.Admits(consumption.CompatibilityGroups) {
				return &CounterConflict{CounterSet: consumption.CounterSet, Others: others, Groups: consumption.CompatibilityGroups}
			}
		}
	}
	if use.Overcommitted != nil {
		return &CounterConflict{Overcommitted: use.Overcommitted}
	}
	for _, consumption := range d.ConsumesCounters {
		for _, name := range slices.Sorted(maps.Keys(consumption.Counters)) {
			counter, ok := use.Counter(consumption.CounterSet, name)
			wanted := consumption.Counters[name].Value
			if ok && counter.Left.Cmp(wanted) < 0 {
				return &CounterConflict{Short: &counter, Required: wanted}
			}
		}
	}
	return nil
}
