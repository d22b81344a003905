// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// Pool is a resource pool as the whole cluster sees it. The allocator judges
// pools for each node again; see [Allocator.PoolsFor] for when that differs.
type Pool struct {
	Driver, Name string
	// Generation is the newest one of any slice.
	Generation int64
	// Slices are those of that generation, sorted by name, with the taints of
	// the DeviceTaintRules.
	Slices []*resourceapi.ResourceSlice
	// Obsolete are the slices of older generations.
	Obsolete []*resourceapi.ResourceSlice
	// Expected is how many slices the driver says the pool has.
	Expected int64
	// Incomplete pools have more or fewer slices than that. The allocator
	// takes no device from them, and requests for all devices fail.
	Incomplete bool
	// Invalid is why the allocator refuses the pool, empty if it does not.
	// Device names that are used twice count only if there is a node that sees
	// both of them for certain.
	Invalid string
	// BindingConditions is true if a device has some. The allocator tries such
	// pools last.
	BindingConditions bool
}

// Device is a device of the newest generation of a pool.
type Device struct {
	ID DeviceID
	*resourceapi.Device
	Slice *resourceapi.ResourceSlice
	Pool  *Pool
}

// Pools returns all pools in the order in which the allocator tries them:
// by driver and name, those with binding conditions last. The stable channel
// has no order; there it is the same as for the others.
func (a *Allocator) Pools() []*Pool {
	pools := make([]*Pool, 0, len(a.pools.entries))
	for _, bindingConditions := range []bool{false, true} {
		for _, entry := range a.pools.entries {
			if entry.pool.BindingConditions == bindingConditions {
				pools = append(pools, entry.pool)
			}
		}
	}
	return pools
}

type deviceTable struct {
	list []Device
	byID map[DeviceID]int
}

func (a *Allocator) listDevices() deviceTable {
	table := deviceTable{byID: map[DeviceID]int{}}
	for _, pool := range a.Pools() {
		for _, slice := range pool.Slices {
			for i := range slice.Spec.Devices {
				device := newDevice(pool, slice, i)
				// Of two with one name, the first is the one that counts.
				if _, exists := table.byID[device.ID]; !exists {
					table.byID[device.ID] = len(table.list)
				}
				table.list = append(table.list, device)
			}
		}
	}
	return table
}

func newDevice(pool *Pool, slice *resourceapi.ResourceSlice, index int) Device {
	device := &slice.Spec.Devices[index]
	return Device{
		ID:     DeviceID{Driver: pool.Driver, Pool: pool.Name, Device: device.Name},
		Device: device,
		Slice:  slice,
		Pool:   pool,
	}
}

// Devices returns the devices of the newest generation of all pools, in the
// order in which the allocator tries them. Callers must not change the list.
func (a *Allocator) Devices() []Device {
	return a.devices().list
}

// Device looks a device up in the newest generation of its pool. It returns
// nil if there is none.
func (a *Allocator) Device(id DeviceID) *Device {
	table := a.devices()
	i, ok := table.byID[id]
	if !ok {
		return nil
	}
	return &table.list[i]
}

// poolIndex has all slices by pool, and the pools by the nodes that they
// concern.
//
// The implementations differ. In the stable channel, slices with counter sets
// concern every node, and nothing is sorted; in the others, such slices
// are like any other, and pools and slices are sorted by name.
type poolIndex struct {
	features structured.Features
	stable   bool
	// entries are sorted by driver and name.
	entries []*poolEntry
	// onNode has the pools with slices that name the node, shared those with
	// slices that name no node.
	onNode map[string][]*poolEntry
	shared []*poolEntry
	// incomplete and invalid pools are a nuisance for nodes that no device of
	// theirs targets, because of slices with counter sets (stable channel only).
	incomplete, invalid []*poolEntry
	// unparsable is true if there is a node selector that cannot be parsed.
	unparsable bool
}

type poolID struct {
	driver, name string
}

// poolEntry is one pool with the slices of all generations.
type poolEntry struct {
	index int
	pool  *Pool
	// slices are sorted by name.
	slices []*sliceInfo
	onNode map[string][]*sliceInfo
	shared []*sliceInfo
	// generations are mostly one; newest is the number of the newest.
	generations []generation
	newest      int64
	// views are those of nodes without a slice of their own, by what they see.
	mutex sync.Mutex
	views map[string]*NodePool
}

// generation is what the slices of one generation of a pool are together.
type generation struct {
	number int64
	// counted is how many of them count when the allocator looks for
	// completeness.
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

// indexPools sorts out the slices, which must be sorted by name.
func indexPools(all []*resourceapi.ResourceSlice, features structured.Features, stable bool) poolIndex {
	x := poolIndex{features: features, stable: stable, onNode: map[string][]*poolEntry{}}
	byID, matchers := map[poolID]*poolEntry{}, nodeMatchers{}
	for _, slice := range all {
		id := poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
		entry := byID[id]
		if entry == nil {
			entry = &poolEntry{
				pool:   &Pool{Driver: id.driver, Name: id.name},
				onNode: map[string][]*sliceInfo{},
				newest: slice.Spec.Pool.Generation,
				views:  map[string]*NodePool{},
			}
			byID[id] = entry
			x.entries = append(x.entries, entry)
		}
		entry.add(newSliceInfo(slice, features, stable, matchers))
	}
	for _, matcher := range matchers {
		x.unparsable = x.unparsable || matcher.err != nil
	}
	slices.SortFunc(x.entries, func(a, b *poolEntry) int {
		return cmp.Or(cmp.Compare(a.pool.Driver, b.pool.Driver), cmp.Compare(a.pool.Name, b.pool.Name))
	})
	for i, entry := range x.entries {
		entry.index = i
		for i := range entry.generations {
			g := &entry.generations[i]
			g.defect = sync.OnceValue(func() string { return x.generationDefect(entry, g.number) })
		}
		x.describe(entry)
		for name := range entry.onNode {
			x.onNode[name] = append(x.onNode[name], entry)
		}
		if len(entry.shared) > 0 {
			x.shared = append(x.shared, entry)
		}
		if !stable {
			continue
		}
		switch state := x.judge(entry, newestOf(entry.counterSlices())); {
		case state.Incomplete:
			x.incomplete = append(x.incomplete, entry)
		case state.Invalid != "":
			x.invalid = append(x.invalid, entry)
		}
	}
	return x
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
func (x *poolIndex) describe(e *poolEntry) {
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
		pool.Invalid = cmp.Or(e.certainDuplicate(x), newest.defect())
	}
}

// certainDuplicate looks for device names that are used twice among the slices
// that one node sees without doubt: its own, and those for all nodes.
func (e *poolEntry) certainDuplicate(x *poolIndex) string {
	var everywhere []*sliceInfo
	for _, slice := range e.shared {
		if slice.Spec.Pool.Generation != e.newest || slice.ignored != nil {
			continue
		}
		if ptr.Deref(slice.Spec.AllNodes, false) {
			everywhere = append(everywhere, slice)
		} else if defect := x.duplicateDevice([]*sliceInfo{slice}); defect != "" {
			return defect
		}
	}
	names := sets.New[string]()
	if defect := x.addDevices(names, nil, everywhere); defect != "" {
		return defect
	}
	for _, name := range slices.Sorted(maps.Keys(e.onNode)) {
		var own []*sliceInfo
		for _, slice := range e.onNode[name] {
			if slice.Spec.Pool.Generation == e.newest && slice.ignored == nil {
				own = append(own, slice)
			}
		}
		if defect := x.addDevices(sets.New[string](), names, own); defect != "" {
			return defect
		}
	}
	return ""
}
