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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
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

// For returns the pools with slices for the node, in the order in which the allocator tries
// them, including pools that it does not use. In the stable channel an incomplete or
// invalid pool with counter sets can affect nodes that it has no devices for; then the
// first of each kind is listed, too. For fails, as the allocator does, if the node selector
// of a slice is invalid.
func (p *Pools) For(node *corev1.Node) ([]*NodePool, error) {
	p.views.mutex.Lock()
	known := p.views.of[node.Name]
	p.views.mutex.Unlock()
	if known.node == node {
		return known.pools, known.err
	}
	pools, err := p.ForExcept(node, nil)
	p.views.mutex.Lock()
	defer p.views.mutex.Unlock()
	p.views.of[node.Name] = nodeViews{node, pools, err}
	return pools, err
}

// ForExcept is like [Pools.For], without the pools to leave out, and without caching.
func (p *Pools) ForExcept(node *corev1.Node, leaveOut sets.Set[*Pool]) ([]*NodePool, error) {
	var pools []*NodePool
	l := newLook(node)
	for _, entry := range p.candidates(node) {
		if leaveOut.Has(entry.pool) {
			continue
		}
		pool, err := p.view(entry, l)
		if err != nil {
			return nil, err
		}
		if !pool.AllIgnored || len(pool.Ignored) > 0 {
			pools = append(pools, pool)
		}
	}
	slices.SortStableFunc(pools, func(a, b *NodePool) int {
		switch {
		case a.Last == b.Last:
			return 0
		case b.Last:
			return -1
		default:
			return 1
		}
	})
	return pools, nil
}

// view looks at a pool from a node, as GatherPools of the allocator does.
func (p *Pools) view(e *poolEntry, l *look) (*NodePool, error) {
	var ignored []IgnoredSlice
	var relevant []*sliceInfo
	local := false
	for _, slice := range p.slicesToLookAt(e, l.node) {
		name := ptr.Deref(slice.Spec.NodeName, "")
		local = local || name == l.node.Name
		if slice.ignored != nil {
			if name == "" || name == l.node.Name {
				ignored = append(ignored, *slice.ignored)
			}
			continue
		}
		match, err := p.concerns(slice, l)
		if err != nil {
			return nil, err
		}
		if match {
			relevant = append(relevant, slice)
		}
	}
	newest := newestOf(relevant)
	if local {
		return e.newView(l, true, ignored, relevant, newest), nil
	}
	// Without a slice of the node's own, a pool has one view for each set of slices and
	// devices that nodes can see.
	key := l.seen(relevant, newest)
	e.mutex.Lock()
	defer e.mutex.Unlock()
	view, known := e.views[key]
	if !known {
		view = e.newView(l, false, ignored, relevant, newest)
		e.views[key] = view
	}
	return view, nil
}

// slicesToLookAt returns the slices of a pool that can concern a node, in the order of the
// allocator.
func (p *Pools) slicesToLookAt(e *poolEntry, node *corev1.Node) []*sliceInfo {
	if p.countersConcernAll {
		return e.slices
	}
	return slices.Concat(e.onNode[node.Name], e.shared)
}

// concerns is like targets, as the allocator sees it: in the stable channel, slices with
// counter sets concern every node.
func (p *Pools) concerns(slice *sliceInfo, l *look) (bool, error) {
	if p.countersConcernAll && len(slice.Spec.SharedCounters) > 0 {
		return true, nil
	}
	return slice.targets(l)
}

func (e *poolEntry) newView(l *look, local bool, ignored []IgnoredSlice, relevant, newest []*sliceInfo) *NodePool {
	p := e.judge(newest)
	p.Local, p.Ignored = local, ignored
	newest = slices.Clone(newest)
	slices.SortFunc(newest, func(a, b *sliceInfo) int { return cmp.Compare(a.Name, b.Name) })
	for _, slice := range newest {
		p.Slices = append(p.Slices, slice.ResourceSlice)
	}
	for _, slice := range relevant {
		if slice.Spec.Pool.Generation < p.Generation {
			p.Older = append(p.Older, slice.ResourceSlice)
		}
	}
	if !p.Usable() {
		return p
	}
	for _, slice := range newest {
		if slice.hasCounterSets {
			continue
		}
		for i := range slice.Spec.Devices {
			p.Last = p.Last || slice.Spec.Devices[i].BindingConditions != nil
			if slice.devices != nil {
				// An invalid selector selects nothing here; the allocator fails when it
				// reaches this device.
				if match, err := l.meets(slice.devices[i]); err != nil || !match {
					continue
				}
			}
			p.Devices = append(p.Devices, DeviceIn(e.pool, slice.ResourceSlice, i))
		}
	}
	return p
}

// candidates returns, sorted, the pools that can concern the node.
func (p *Pools) candidates(node *corev1.Node) []*poolEntry {
	byIndex := func(a, b *poolEntry) int { return cmp.Compare(a.pool.Index, b.pool.Index) }
	list := slices.Clone(p.shared)
	add := func(entry *poolEntry) bool {
		at, found := slices.BinarySearchFunc(list, entry, byIndex)
		if !found {
			list = slices.Insert(list, at, entry)
		}
		return !found
	}
	for _, entry := range p.onNode[node.Name] {
		add(entry)
	}
	for _, nuisance := range [][]*poolEntry{p.incomplete, p.invalid} {
		// The first such pool is enough.
		_ = slices.ContainsFunc(nuisance, add)
	}
	return list
}

// LostPool is a pool with allocated devices and without slices. The kubelet deletes the
// slices of a driver 30 seconds after it disconnects (wipeResourceSlices of
// pkg/kubelet/cm/dra/plugin); running pods keep their devices.
type LostPool struct {
	Driver, Name string
	// Node is the node of the allocations, empty if that is not one node.
	Node string
	// Devices are the allocated devices, by name; Claims the claims.
	Devices []DeviceID
	Claims  []*resourceapi.ResourceClaim
}

// findLost lists the lost pools by driver and name.
func findLost(snap *snapshot.Snapshot, pools *Pools, usage *Usage) []LostPool {
	if snap.Gap(snapshot.ResourceSlices) != nil {
		return nil
	}
	published := map[snapshot.PoolID]bool{}
	for _, pool := range pools.All() {
		published[snapshot.PoolID{Driver: pool.Driver, Name: pool.Name}] = true
	}
	var lost []LostPool
	for name, pool := range usage.pools.All() {
		if published[name] {
			continue
		}
		p := LostPool{Driver: name.Driver, Name: name.Name}
		nodes := map[string]bool{}
		for h := range pool.Holders() {
			if DeviceReady(h.Claim, h.Result) {
				continue
			}
			if id := (DeviceID{name.Driver, name.Name, h.Result.Device}); !slices.Contains(p.Devices, id) {
				p.Devices = append(p.Devices, id)
			}
			if !slices.Contains(p.Claims, h.Claim) {
				p.Claims = append(p.Claims, h.Claim)
			}
			p.Node = AllocatedNode(h.Claim.Status.Allocation)
			nodes[p.Node] = true
		}
		if len(p.Devices) == 0 {
			continue
		}
		if len(nodes) > 1 {
			p.Node = ""
		}
		slices.SortFunc(p.Devices, func(a, b DeviceID) int { return english.CompareNames(a.Device, b.Device) })
		slices.SortFunc(p.Claims, func(a, b *resourceapi.ResourceClaim) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), english.CompareNames(a.Name, b.Name))
		})
		lost = append(lost, p)
	}
	slices.SortFunc(lost, func(a, b LostPool) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), english.CompareNames(a.Name, b.Name))
	})
	return lost
}

// ByDriver groups pools that are sorted by driver.
func ByDriver(pools []LostPool) [][]LostPool {
	var groups [][]LostPool
	for i := range pools {
		if i == 0 || pools[i].Driver != pools[i-1].Driver {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], pools[i])
	}
	return groups
}

// AllocatedNode returns the node that an allocation names, empty if it names none.
func AllocatedNode(allocation *resourceapi.AllocationResult) string {
	if allocation == nil || allocation.NodeSelector == nil {
		return ""
	}
	terms := allocation.NodeSelector.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchExpressions) != 0 || len(terms[0].MatchFields) != 1 {
		return ""
	}
	if f := terms[0].MatchFields[0]; f.Key == metav1.ObjectNameField && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
		return f.Values[0]
	}
	return ""
}
