// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// concerns is like targets, as the allocator sees it: in the stable channel, slices with
// counter sets concern every node.
func (p *Pools) concerns(slice *sliceInfo, l *look) (bool, error) {
	if p.countersConcernAll && len(slice.Spec.SharedCounters) > 0 {
		return true, nil
	}
	return slice.targets(l)
}

// slicesToLookAt returns the slices of a pool that can concern a node, in the order of the
// allocator.
func (p *Pools) slicesToLookAt(e *poolEntry, node *corev1.Node) []*sliceInfo {
	if p.countersConcernAll {
		return e.slices
	}
	return slices.Concat(e.onNode[node.Name], e.shared)
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
