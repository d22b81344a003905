// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// poolEntry is one pool with the slices of all generations.
type poolEntry struct {
	pool *Pool
	// partitionable is true if the allocator knows counters.
	partitionable bool
	// slices are sorted by name.
	slices []*sliceInfo
	onNode map[string][]*sliceInfo
	shared []*sliceInfo
	// generations are mostly one; newest is the number of the newest.
	generations []generation
	newest      int64
	// views are the views of nodes without a slice of their own, by the slices that they
	// see.
	mutex sync.Mutex
	views map[string]*NodePool
}

// generation has the slices of one generation of a pool.
type generation struct {
	number int64
	// counted is how many of them count for completeness.
	counted int64
	// defect is why they are invalid as a whole.
	defect func() string
}

// generation finds a generation of which there are slices.
func (e *poolEntry) generation(number int64) *generation {
	for i := range e.generations {
		if e.generations[i].number == number {
			return &e.generations[i]
		}
	}
	return nil
}

func (e *poolEntry) add(slice *sliceInfo) {
	slice.index = len(e.slices)
	e.slices = append(e.slices, slice)
	number := slice.Spec.Pool.Generation
	e.newest = max(e.newest, number)
	if e.generation(number) == nil {
		e.generations = append(e.generations, generation{number: number})
	}
	if slice.counts {
		e.generation(number).counted++
	}
	if name := ptr.Deref(slice.Spec.NodeName, ""); name != "" {
		e.onNode[name] = append(e.onNode[name], slice)
	} else {
		e.shared = append(e.shared, slice)
	}
}

// counterSlices returns the slices with counter sets, of all generations.
func (e *poolEntry) counterSlices() []*sliceInfo {
	var found []*sliceInfo
	for _, slice := range e.slices {
		if slice.ignored == nil && len(slice.Spec.SharedCounters) > 0 {
			found = append(found, slice)
		}
	}
	return found
}

// describe fills in the cluster-wide view.
func (e *poolEntry) describe() {
	pool := e.pool
	pool.Generation = e.newest
	for _, slice := range e.slices {
		if slice.Spec.Pool.Generation < e.newest {
			pool.Obsolete = append(pool.Obsolete, slice.ResourceSlice)
			continue
		}
		if len(pool.Slices) == 0 {
			pool.Expected = slice.Spec.Pool.ResourceSliceCount
		}
		pool.Slices = append(pool.Slices, slice.ResourceSlice)
		for i := range slice.Spec.Devices {
			if slice.Spec.Devices[i].BindingConditions != nil {
				pool.BindingConditions = true
			}
		}
	}
	newest := e.generation(e.newest)
	pool.Incomplete = newest.counted != pool.Expected
	if !pool.Incomplete {
		pool.Invalid = cmp.Or(e.certainDuplicate(), newest.defect())
	}
}

// certainDuplicate looks for device names that are used twice among the slices that a node
// certainly sees: its own, and the slices for all nodes.
func (e *poolEntry) certainDuplicate() string {
	var everywhere []*sliceInfo
	for _, slice := range e.shared {
		if slice.Spec.Pool.Generation != e.newest || slice.ignored != nil {
			continue
		}
		if ptr.Deref(slice.Spec.AllNodes, false) {
			everywhere = append(everywhere, slice)
		} else if defect := duplicateDevice([]*sliceInfo{slice}); defect != "" {
			return defect
		}
	}
	names := sets.New[string]()
	if defect := addDevices(names, nil, everywhere); defect != "" {
		return defect
	}
	for _, name := range slices.Sorted(maps.Keys(e.onNode)) {
		var own []*sliceInfo
		for _, slice := range e.onNode[name] {
			if slice.Spec.Pool.Generation == e.newest && slice.ignored == nil {
				own = append(own, slice)
			}
		}
		if defect := addDevices(sets.New[string](), names, own); defect != "" {
			return defect
		}
	}
	return ""
}

// judge judges a pool of which the given slices, all of one generation, concern a node.
func (e *poolEntry) judge(relevant []*sliceInfo) *NodePool {
	p := &NodePool{Pool: e.pool}
	if len(relevant) == 0 {
		p.AllIgnored = true
		return p
	}
	p.Generation = relevant[0].Spec.Pool.Generation
	expected := relevant[0].Spec.Pool.ResourceSliceCount
	if int64(len(relevant)) == expected {
		p.Invalid = cmp.Or(duplicateDevice(relevant), e.counterDefect(relevant))
		return p
	}
	switch {
	case e.newest > p.Generation:
		p.Outdated = true
	case e.generation(p.Generation).counted != expected:
		p.Incomplete = true
	default:
		p.Invalid = cmp.Or(duplicateDevice(relevant), e.generation(p.Generation).defect())
	}
	return p
}

func duplicateDevice(all []*sliceInfo) string {
	return addDevices(sets.New[string](), nil, all)
}

// addDevices adds the names of devices to a set, and returns a duplicate, in this set or
// the other one.
func addDevices(names, others sets.Set[string], all []*sliceInfo) string {
	for _, slice := range all {
		if slice.hasCounterSets {
			continue
		}
		for i := range slice.Spec.Devices {
			name := slice.Spec.Devices[i].Name
			if names.Has(name) || others.Has(name) {
				return fmt.Sprintf("there is more than one device with the name %s", name)
			}
			names.Insert(name)
		}
	}
	return ""
}

// generationDefect returns why a whole generation of a pool is invalid.
func (e *poolEntry) generationDefect(generation int64) string {
	var all []*sliceInfo
	for _, slice := range e.slices {
		if slice.counts && slice.Spec.Pool.Generation == generation {
			all = append(all, slice)
		}
	}
	return e.counterDefect(all)
}

// counterDefect finds counter sets that are defined twice, and devices that consume missing
// counters.
func (e *poolEntry) counterDefect(all []*sliceInfo) string {
	if !e.partitionable {
		return ""
	}
	counterSets := map[string]map[string]resourceapi.Counter{}
	for _, slice := range all {
		for _, set := range slice.Spec.SharedCounters {
			if _, exists := counterSets[set.Name]; exists {
				return fmt.Sprintf("there is more than one counter set with the name %s", set.Name)
			}
			counterSets[set.Name] = set.Counters
		}
	}
	for _, slice := range all {
		if slice.hasCounterSets {
			continue
		}
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			for _, consumed := range device.ConsumesCounters {
				counters, exists := counterSets[consumed.CounterSet]
				if !exists {
					return fmt.Sprintf("device %s consumes counters of the counter set %s, which does not exist", device.Name, consumed.CounterSet)
				}
				for name := range consumed.Counters {
					if _, exists := counters[name]; !exists {
						return fmt.Sprintf("device %s consumes the counter %s of the counter set %s, which does not exist", device.Name, name, consumed.CounterSet)
					}
				}
			}
		}
	}
	return ""
}
