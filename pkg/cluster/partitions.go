// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// CounterUse is one counter of a counter set, and what is left of it.
type CounterUse struct {
	CounterSet, Counter string
	// Left is Total less Used. It is negative if more is used than there is.
	Total, Used, Left resource.Quantity
	// By lists the devices in use that take some of it.
	By []DeviceID
}

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

// Partitions are what devices that share counters leave of their pools.
type Partitions struct {
	gates *Gates
	usage *Usage
	// uses has what was asked for so far by Use.
	mutex sync.Mutex
	uses  map[*Pool]*PartitionUse
}

func newPartitions(gates *Gates, usage *Usage) *Partitions {
	return &Partitions{gates: gates, usage: usage, uses: map[*Pool]*PartitionUse{}}
}

// Counters returns the counters of the newest generation of a pool, sorted
// by counter set and counter. A device that is in use, exclusively or by
// shares, takes its counters once. There are none if DRAPartitionableDevices
// is off.
func (p *Partitions) Counters(pool *Pool) []CounterUse {
	if !p.gates.partitionableDevices {
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
			device := DeviceIn(pool, slice, i)
			if !p.usage.InUse(device.ID) && !p.usage.Shared(device.ID) {
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

// Use returns what is left of a pool's newest generation. It is
// worked out once for each pool.
func (p *Partitions) Use(pool *Pool) *PartitionUse {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if use, ok := p.uses[pool]; ok {
		return use
	}
	use := p.use(pool)
	p.uses[pool] = use
	return use
}

func (p *Partitions) use(pool *Pool) *PartitionUse {
	u := &PartitionUse{counters: map[[2]string]CounterUse{}, groups: map[string]GroupUse{}}
	for _, use := range p.Counters(pool) {
		u.counters[[2]string{use.CounterSet, use.Counter}] = use
		if use.Left.Sign() < 0 && u.Overcommitted == nil {
			u.Overcommitted = &use
		}
	}
	for _, slice := range pool.Slices {
		for i := range slice.Spec.Devices {
			device := DeviceIn(pool, slice, i)
			if len(device.ConsumesCounters) == 0 || !p.usage.InUse(device.ID) && !p.usage.Shared(device.ID) && len(p.usage.Consumed(device.ID)) == 0 {
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

// Conflict is why a device that consumes counters is not available as long as
// others are in use, or nil if it is available. What else claims require does not
// matter here.
func (p *Partitions) Conflict(d *Device) *CounterConflict {
	if len(d.ConsumesCounters) == 0 {
		return nil
	}
	if !p.gates.partitionableDevices {
		return &CounterConflict{Gate: GatePartitionableDevices}
	}
	if p.gates.consumableCapacity && ptr.Deref(d.AllowMultipleAllocations, false) &&
		(p.usage.Shared(d.ID) || len(p.usage.Consumed(d.ID)) > 0) {
		// A further share does not charge the counters again.
		return nil
	}
	use := p.Use(d.Pool)
	if p.gates.compatibilityGroups {
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
