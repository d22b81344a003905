// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// CounterUse is a counter of a counter set, and the amount left of it.
type CounterUse struct {
	CounterSet, Counter string
	// Left is Total less Used. It is negative if more is used than exists.
	Total, Used, Left resource.Quantity
	// By lists the devices in use that take some of it.
	By []DeviceID
}

// PartitionUse has the counters and the compatibility groups of a pool that the devices in
// use leave to others.
type PartitionUse struct {
	counters map[[2]string]CounterUse
	groups   map[string]GroupUse
	// mixed are the counter sets where some of the devices in use declare compatibility
	// groups and some do not, in slices for different nodes. Then the node decides, see
	// [Partitions.GroupsOn].
	mixed sets.Set[string]
	// Overcommitted is a counter whose use exceeds its total, nil if there is none. The
	// allocator then uses no device of the pool that consumes counters.
	Overcommitted *CounterUse
}

// Counter returns a counter by its set and name.
func (u *PartitionUse) Counter(set, name string) (CounterUse, bool) {
	use, ok := u.counters[[2]string{set, name}]
	return use, ok
}

// GroupUse has the compatibility groups that the devices in use of a counter set have in
// common (KEP-5963). The zero value is an unused set.
type GroupUse struct {
	Used bool
	// Declared is true if they declare groups. Other devices then need one of Groups, which
	// is empty if the devices in use have no group in common; else only devices without
	// groups can be used beside them.
	Declared bool
	Groups   sets.Set[string]
}

// with adds a device in use. If some declare groups and some do not, the first one counts,
// as upstream. No allocator causes that; a driver that changes its slices can.
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

// Partitions say how much is left of pools whose devices share counters.
type Partitions struct {
	gates *Gates
	usage *Usage
	pools *Pools
	uses  *partitionUses
}

// partitionUses has the last result for each pool. It is valid as long as the usage of the
// pool is the same.
type partitionUses struct {
	mutex sync.Mutex
	last  map[*Pool]partitionUse
}

type partitionUse struct {
	of  *PoolUsage
	use *PartitionUse
}

func newPartitions(gates *Gates, usage *Usage, pools *Pools) *Partitions {
	return &Partitions{gates: gates, usage: usage, pools: pools, uses: &partitionUses{last: map[*Pool]partitionUse{}}}
}

// with returns the partitions of the same pools with another usage.
func (p *Partitions) with(usage *Usage) *Partitions {
	return &Partitions{gates: p.gates, usage: usage, pools: p.pools, uses: p.uses}
}

// Counters returns the counters of the newest generation of a pool, sorted by counter set
// and counter. A device in use, exclusively or by shares, takes its counters once. There
// are none if DRAPartitionableDevices is off.
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
				// Two sets of one name make the pool invalid.
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

// Use returns the use of a pool's newest generation. It is computed once for each pool, as
// long as its usage stays the same.
func (p *Partitions) Use(pool *Pool) *PartitionUse {
	of := p.usage.OfPool(pool.Driver, pool.Name)
	p.uses.mutex.Lock()
	defer p.uses.mutex.Unlock()
	if last, ok := p.uses.last[pool]; ok && last.of == of {
		return last.use
	}
	use := p.use(pool)
	p.uses.last[pool] = partitionUse{of, use}
	return use
}

func (p *Partitions) use(pool *Pool) *PartitionUse {
	u := &PartitionUse{counters: map[[2]string]CounterUse{}, groups: map[string]GroupUse{}, mixed: sets.New[string]()}
	for _, use := range p.Counters(pool) {
		u.counters[[2]string{use.CounterSet, use.Counter}] = use
		if use.Left.Sign() < 0 && u.Overcommitted == nil {
			u.Overcommitted = &use
		}
	}
	for _, slice := range pool.Slices {
		p.eachConsumption(slice, func(c *resourceapi.DeviceCounterConsumption) {
			before := u.groups[c.CounterSet]
			if before.Used && before.Declared != (len(c.CompatibilityGroups) > 0) && !onOneNode(pool) {
				u.mixed.Insert(c.CounterSet)
			}
			u.groups[c.CounterSet] = before.with(c.CompatibilityGroups)
		})
	}
	return u
}

// onOneNode reports whether all slices of a pool name the same node.
func onOneNode(pool *Pool) bool {
	name := ptr.Deref(pool.Slices[0].Spec.NodeName, "")
	return name != "" && !slices.ContainsFunc(pool.Slices, func(s *resourceapi.ResourceSlice) bool { return ptr.Deref(s.Spec.NodeName, "") != name })
}

// DependsOnNode reports whether the compatibility groups left by the devices in use of a
// pool differ between nodes.
func (p *Partitions) DependsOnNode(pool *Pool) bool {
	return p.gates.compatibilityGroups && p.Use(pool).mixed.Len() > 0
}

// eachConsumption visits the counter consumption of the devices in use of a slice.
func (p *Partitions) eachConsumption(slice *resourceapi.ResourceSlice, visit func(*resourceapi.DeviceCounterConsumption)) {
	for i := range slice.Spec.Devices {
		d := &slice.Spec.Devices[i]
		id := DeviceID{slice.Spec.Driver, slice.Spec.Pool.Name, d.Name}
		if len(d.ConsumesCounters) == 0 || !p.usage.InUse(id) && !p.usage.Shared(id) && len(p.usage.Consumed(id)) == 0 {
			continue
		}
		for j := range d.ConsumesCounters {
			visit(&d.ConsumesCounters[j])
		}
	}
}

// GroupsOn returns the common groups of the devices in use of a counter set when the
// allocator tries a node: it meets devices in slices for the node first. A nil node stands
// for all nodes; that makes a difference only if devices in use disagree about having
// groups.
func (p *Partitions) GroupsOn(pool *Pool, set string, node *corev1.Node) GroupUse {
	use := p.Use(pool)
	if node == nil || !use.mixed.Has(set) {
		return use.groups[set]
	}
	var first []*resourceapi.ResourceSlice
	// The allocator fails as well, and tries no device of the node.
	pools, _ := p.pools.For(node)
	for _, view := range pools {
		if view.Pool == pool {
			first = view.Slices
		}
	}
	var groups GroupUse
	add := func(slice *resourceapi.ResourceSlice) {
		p.eachConsumption(slice, func(c *resourceapi.DeviceCounterConsumption) {
			if c.CounterSet == set {
				groups = groups.with(c.CompatibilityGroups)
			}
		})
	}
	for _, slice := range first {
		add(slice)
	}
	for _, slice := range pool.Slices {
		if !slices.Contains(first, slice) {
			add(slice)
		}
	}
	return groups
}

// CounterConflict is why a device is not available as long as others are in use. One of the
// fields is set, besides Required and Groups that go with them.
type CounterConflict struct {
	// Gate is the feature gate without which the allocator uses no device that consumes
	// counters.
	Gate string
	// CounterSet has devices in use of other compatibility groups, Others,
	// than the device's own, Groups.
	CounterSet string
	Others     GroupUse
	Groups     []string
	// Overcommitted is a counter of the pool whose use exceeds its total.
	Overcommitted *CounterUse
	// Short is a counter with less left than the device consumes, Required.
	Short    *CounterUse
	Required resource.Quantity
}

// Conflict returns why a device that consumes counters is not available as long as others
// are in use, or nil if it is available. Other requirements of claims do not matter here.
func (p *Partitions) Conflict(d *Device) *CounterConflict {
	if len(d.ConsumesCounters) == 0 {
		return nil
	}
	if !p.gates.partitionableDevices {
		return &CounterConflict{Gate: GatePartitionableDevices}
	}
	if p.charged(d) {
		return nil
	}
	use := p.Use(d.Pool)
	if conflict := p.groupConflict(d, nil); conflict != nil {
		return conflict
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

// ConflictOn returns the conflict that a device has on one node, besides those that it has
// on all of them.
func (p *Partitions) ConflictOn(d *Device, node *corev1.Node) *CounterConflict {
	if node == nil || len(d.ConsumesCounters) == 0 || !p.DependsOnNode(d.Pool) || p.charged(d) {
		return nil
	}
	return p.groupConflict(d, node)
}

// charged reports whether shares of the device are in use, so that a further share does not
// charge the counters again.
func (p *Partitions) charged(d *Device) bool {
	return p.gates.consumableCapacity && ptr.Deref(d.AllowMultipleAllocations, false) &&
		(p.usage.Shared(d.ID) || len(p.usage.Consumed(d.ID)) > 0)
}

// groupConflict compares the compatibility groups of a device to the groups in use, for a
// node. Without a node, only groups that are the same for all nodes are compared.
func (p *Partitions) groupConflict(d *Device, node *corev1.Node) *CounterConflict {
	if !p.gates.compatibilityGroups {
		return nil
	}
	for _, c := range d.ConsumesCounters {
		if node == nil && p.Use(d.Pool).mixed.Has(c.CounterSet) {
			continue
		}
		if others := p.GroupsOn(d.Pool, c.CounterSet, node); !others.Admits(c.CompatibilityGroups) {
			return &CounterConflict{CounterSet: c.CounterSet, Others: others, Groups: c.CompatibilityGroups}
		}
	}
	return nil
}
