// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Pools has all slices by pool, and the pools by the nodes that they
// concern.
//
// The implementations differ. In the stable channel, slices with counter sets
// concern every node, and nothing is sorted; in the others, such slices
// are like any other, and pools and slices are sorted by name.
type Pools struct {
	countersConcernAll bool
	// entries are sorted by driver and name.
	entries []*poolEntry
	// onNode has the pools with slices that name the node, shared those with
	// slices that name no node.
	onNode map[string][]*poolEntry
	shared []*poolEntry
	// incomplete and invalid pools affect nodes that no device of theirs targets, because
	// of slices with counter sets (stable channel only).
	incomplete, invalid []*poolEntry
	// unparsable is true if a node selector is invalid.
	unparsable bool
	every      func() []Device
	devices    func() deviceTable
	views      viewCache
}

// viewCache has the answers of [Pools.For], by the name of the node.
type viewCache struct {
	mutex sync.Mutex
	of    map[string]nodeViews
}

// nodeViews is the answer of [Pools.For] for a node. There is another one if the node changes.
type nodeViews struct {
	node  *corev1.Node
	pools []*NodePool
	err   error
}

type deviceTable struct {
	list []Device
	byID map[DeviceID]int
}

// newPools groups the slices, which must be sorted by name.
func newPools(all []*resourceapi.ResourceSlice, features *features) *Pools {
	p := &Pools{countersConcernAll: features.countersConcernAll, onNode: map[string][]*poolEntry{}}
	p.views.of = map[string]nodeViews{}
	p.every, p.devices = sync.OnceValue(p.listEvery), sync.OnceValue(p.listDevices)
	byID, matchers := map[snapshot.PoolID]*poolEntry{}, nodeMatchers{}
	for _, slice := range all {
		id := snapshot.PoolOf(slice)
		entry := byID[id]
		if entry == nil {
			entry = &poolEntry{
				pool:          &Pool{Driver: id.Driver, Name: id.Name},
				partitionable: features.partitionableDevices,
				onNode:        map[string][]*sliceInfo{},
				newest:        slice.Spec.Pool.Generation,
				views:         map[string]*NodePool{},
			}
			byID[id] = entry
			p.entries = append(p.entries, entry)
		}
		entry.add(newSliceInfo(slice, features, matchers))
	}
	for _, matcher := range matchers {
		p.unparsable = p.unparsable || matcher.err != nil
	}
	slices.SortFunc(p.entries, func(a, b *poolEntry) int {
		return cmp.Or(cmp.Compare(a.pool.Driver, b.pool.Driver), cmp.Compare(a.pool.Name, b.pool.Name))
	})
	for i, entry := range p.entries {
		entry.pool.Index = i
		for i := range entry.generations {
			g := &entry.generations[i]
			g.defect = sync.OnceValue(func() string { return entry.generationDefect(g.number) })
		}
		entry.describe()
		for name := range entry.onNode {
			p.onNode[name] = append(p.onNode[name], entry)
		}
		if len(entry.shared) > 0 {
			p.shared = append(p.shared, entry)
		}
		if !p.countersConcernAll {
			continue
		}
		switch state := entry.judge(newestOf(entry.counterSlices())); {
		case state.Incomplete:
			p.incomplete = append(p.incomplete, entry)
		case state.Invalid != "":
			p.invalid = append(p.invalid, entry)
		}
	}
	return p
}

// All returns all pools in the order in which the allocator tries them:
// by driver and name, those with binding conditions last. The stable channel
// has no order; there it is the same as for the others.
func (p *Pools) All() []*Pool {
	pools := make([]*Pool, 0, len(p.entries))
	for _, bindingConditions := range []bool{false, true} {
		for _, entry := range p.entries {
			if entry.pool.BindingConditions == bindingConditions {
				pools = append(pools, entry.pool)
			}
		}
	}
	return pools
}

func (p *Pools) listEvery() []Device {
	total := 0
	p.eachSlice(func(_ *Pool, slice *resourceapi.ResourceSlice) { total += len(slice.Spec.Devices) })
	list := make([]Device, 0, total)
	p.eachSlice(func(pool *Pool, slice *resourceapi.ResourceSlice) {
		for i := range slice.Spec.Devices {
			list = append(list, DeviceIn(pool, slice, i))
		}
	})
	return list
}

// eachSlice visits the slices of all pools, of each pool earlier generations first.
func (p *Pools) eachSlice(visit func(*Pool, *resourceapi.ResourceSlice)) {
	for _, pool := range p.All() {
		for _, slice := range pool.Obsolete {
			visit(pool, slice)
		}
		for _, slice := range pool.Slices {
			visit(pool, slice)
		}
	}
}

func (p *Pools) listDevices() deviceTable {
	table := deviceTable{list: p.every(), byID: map[DeviceID]int{}}
	if slices.ContainsFunc(p.All(), func(pool *Pool) bool { return len(pool.Obsolete) > 0 }) {
		table.list = slices.DeleteFunc(slices.Clone(table.list), func(d Device) bool { return slices.Contains(d.Pool.Obsolete, d.Slice) })
	}
	for i := range table.list {
		// Of two with one name, the first one counts.
		id := table.list[i].ID
		if _, exists := table.byID[id]; !exists {
			table.byID[id] = i
		}
	}
	return table
}

// EveryDevice returns the devices of all pools, of each pool earlier generations first.
// Callers must not change the list.
func (p *Pools) EveryDevice() []Device { return p.every() }

// Devices returns the devices of the newest generation of all pools, in the
// order in which the allocator tries them. Callers must not change the list.
func (p *Pools) Devices() []Device {
	return p.devices().list
}

// Device looks a device up in the newest generation of its pool. It returns
// nil if there is none.
func (p *Pools) Device(id DeviceID) *Device {
	table := p.devices()
	i, ok := table.byID[id]
	if !ok {
		return nil
	}
	return &table.list[i]
}

// SlicesOf returns all slices of a pool, of all generations, sorted by name.
func (p *Pools) SlicesOf(pool *Pool) []*resourceapi.ResourceSlice {
	entry := p.entries[pool.Index]
	all := make([]*resourceapi.ResourceSlice, 0, len(entry.slices))
	for _, slice := range entry.slices {
		all = append(all, slice.ResourceSlice)
	}
	return all
}

// Plain returns the pools that need no look from any node: each slice is for an existing
// node, by name, and the allocator has no reason to refuse a device. Large fleets consist
// of them.
func (p *Pools) Plain(nodes []*corev1.Node) sets.Set[*Pool] {
	found := sets.Set[*Pool]{}
	if p.unparsable {
		// The allocator fails for some nodes, whatever is on them.
		return found
	}
	names := make(sets.Set[string], len(nodes))
	for _, node := range nodes {
		names.Insert(node.Name)
	}
	odd := func(slice *sliceInfo) bool {
		spec := &slice.Spec
		return slice.ignored != nil || !names.Has(slice.target.name) || len(spec.SkipNodeOperations) > 0 ||
			len(spec.SharedCounters) > 0 && len(spec.Devices) > 0
	}
	for _, entry := range p.entries {
		pool := entry.pool
		if !pool.Incomplete && pool.Invalid == "" && len(pool.Obsolete) == 0 && !slices.ContainsFunc(entry.slices, odd) {
			found.Insert(pool)
		}
	}
	return found
}

// Ignored returns why the allocator does not look at a slice, nil if it does.
func (p *Pools) Ignored(slice *resourceapi.ResourceSlice) *IgnoredSlice {
	id := snapshot.PoolOf(slice)
	at, found := slices.BinarySearchFunc(p.entries, id, func(e *poolEntry, id snapshot.PoolID) int {
		return cmp.Or(cmp.Compare(e.pool.Driver, id.Driver), cmp.Compare(e.pool.Name, id.Name))
	})
	if !found {
		return nil
	}
	for _, info := range p.entries[at].slices {
		if info.ResourceSlice == slice {
			return info.ignored
		}
	}
	return nil
}

// Guard rewrites a selector so that it does not fail for missing values of devices. It is
// not ok if there is none to guard, or if it cannot be written down.
func (p *Pools) Guard(ctx context.Context, evaluator *selector.Evaluator, expression string) (guarded string, ok bool) {
	compiled := evaluator.Compile(expression)
	var missing []selector.Reading
	devices := p.Devices()
	for i := range devices {
		for _, lacks := range evaluator.Evaluate(ctx, compiled, devices[i].ID.Driver, devices[i].Device).Detail(ctx).Missing {
			if !slices.Contains(missing, lacks) {
				missing = append(missing, lacks)
			}
		}
	}
	if len(missing) == 0 {
		return "", false
	}
	return evaluator.Guard(compiled, missing)
}
