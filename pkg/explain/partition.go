// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
)

// checkPartition checks shared counters and compatibility groups against what
// the allocated devices of the pool have left.
func (c *checks) checkPartition(d *allocator.Device) *reason {
	if len(d.ConsumesCounters) == 0 {
		return nil
	}
	if !c.enabled("DRAPartitionableDevices") {
		return featureOff(rankPartitions, "DRAPartitionableDevices", sliceObject(d), devicePath(d, "consumesCounters"))
	}
	if c.enabled("DRAConsumableCapacity") && d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations &&
		(c.alloc.Shared(d.ID) || len(c.alloc.Consumed(d.ID)) > 0) {
		// A further share does not charge the counters again.
		return nil
	}
	state := c.pools.of(d.Pool)
	if c.enabled("DRADeviceCompatibilityGroups") {
		for _, consumption := range d.ConsumesCounters {
			groups := state.groups[consumption.CounterSet]
			if groups.admits(consumption.CompatibilityGroups) {
				continue
			}
			return &reason{
				rank: rankGroups, code: CompatibilityGroupConflict, label: "incompatible",
				text: fmt.Sprintf("counter set %s is used by devices of %s", consumption.CounterSet, groups),
				fact: Evidence{
					Object: sliceObject(d), Path: devicePath(d, "consumesCounters.compatibilityGroups"),
					Found: groupsText(consumption.CompatibilityGroups), Wanted: groups.String(),
				},
			}
		}
	}
	if state.overdrawn != nil {
		return &reason{
			rank: rankCounters, code: CountersExhausted, label: "counters",
			text: fmt.Sprintf("counter %s of %s is overdrawn, so no device of its pool that uses counters can be had", state.overdrawn.Counter, state.overdrawn.CounterSet),
			fact: Evidence{Object: poolObject(d.Pool), Path: counterPath(*state.overdrawn), Found: state.overdrawn.Left.String() + " left"},
		}
	}
	for _, consumption := range d.ConsumesCounters {
		for _, name := range slices.Sorted(maps.Keys(consumption.Counters)) {
			use, ok := state.counters[[2]string{consumption.CounterSet, name}]
			wanted := consumption.Counters[name].Value
			if !ok || use.Left.Cmp(wanted) >= 0 {
				continue
			}
			by := make([]string, 0, len(use.By))
			for _, id := range use.By {
				by = append(by, id.Device)
			}
			text := fmt.Sprintf("%s of %s left of counter %s", use.Left.String(), use.Total.String(), name)
			if len(by) > 0 {
				text += fmt.Sprintf(", used by %s", sample(by, 3))
			}
			return &reason{
				rank: rankCounters, code: CountersExhausted, label: "counters", text: text, wanted: wanted.String(),
				fact: Evidence{
					Object: poolObject(d.Pool), Path: counterPath(use),
					Found: fmt.Sprintf("%s of %s left", use.Left.String(), use.Total.String()), Wanted: wanted.String(),
				},
			}
		}
	}
	return nil
}

// poolStates remembers what the allocated devices of each pool leave over.
type poolStates struct {
	alloc *allocator.Allocator
	known map[*allocator.Pool]*poolState
}

type poolState struct {
	counters map[[2]string]allocator.CounterUse
	// overdrawn is a counter of which more is used than there is: then the
	// allocator takes no device of the pool that consumes counters.
	overdrawn *allocator.CounterUse
	groups    map[string]groupUse
}

func (p *poolStates) of(pool *allocator.Pool) *poolState {
	if state, ok := p.known[pool]; ok {
		return state
	}
	state := &poolState{counters: map[[2]string]allocator.CounterUse{}, groups: map[string]groupUse{}}
	for _, use := range p.alloc.CountersOf(pool) {
		state.counters[[2]string{use.CounterSet, use.Counter}] = use
		if use.Left.Sign() < 0 && state.overdrawn == nil {
			state.overdrawn = &use
		}
	}
	for _, slice := range pool.Slices {
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			id := allocator.DeviceID{Driver: pool.Driver, Pool: pool.Name, Device: device.Name}
			if len(device.ConsumesCounters) == 0 || !p.alloc.InUse(id) && !p.alloc.Shared(id) && len(p.alloc.Consumed(id)) == 0 {
				continue
			}
			for _, consumption := range device.ConsumesCounters {
				state.groups[consumption.CounterSet] = state.groups[consumption.CounterSet].with(consumption.CompatibilityGroups)
			}
		}
	}
	p.known[pool] = state
	return state
}

// groupUse is what the devices on a counter set have in common (KEP-5963): all
// of them without groups, or at least one group that all of them have.
type groupUse struct {
	used   bool
	groups sets.Set[string]
}

func (g groupUse) with(groups []string) groupUse {
	if !g.used {
		return groupUse{used: true, groups: sets.New(groups...)}
	}
	if len(groups) == 0 || g.groups.Len() == 0 {
		return g
	}
	return groupUse{used: true, groups: g.groups.Intersection(sets.New(groups...))}
}

func (g groupUse) admits(groups []string) bool {
	if !g.used || len(groups) == 0 && g.groups.Len() == 0 {
		return true
	}
	return g.groups.HasAny(groups...)
}

func (g groupUse) String() string { return groupsText(sets.List(g.groups)) }

func groupsText(groups []string) string {
	if len(groups) == 0 {
		return "no compatibility group"
	}
	return "compatibility group " + joinAnd(groups)
}
