// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Pools lists all pools, sorted by driver and name. How many more partitions
// would fit is asked of the allocator, which ctx bounds.
func (v *Inventory) Pools(ctx context.Context) ([]api.Pool, error) {
	sorted := sortedPools(v.cluster)
	pools := make([]api.Pool, 0, len(sorted))
	for _, pool := range sorted {
		described, known := v.counter.describePool(pool)
		var err error
		if described.Partitions, err = v.counter.partitions(ctx, pool, known); err != nil {
			return nil, err
		}
		pools = append(pools, described)
	}
	return v.counter.withLost(pools), nil
}

// Usage is like Pools, but says nothing about partitions, so that it asks the
// allocator nothing.
func (v *Inventory) Usage() []api.Pool {
	pools, _ := describedIn(v.cluster).pools.of(func() ([]api.Pool, error) { return v.counter.describePools(), nil })
	return pools
}

func (n *deviceCounter) describePools() []api.Pool {
	sorted := sortedPools(n.cluster)
	pools := make([]api.Pool, 0, len(sorted))
	for _, pool := range sorted {
		described, _ := n.describePool(pool)
		pools = append(pools, described)
	}
	return n.withLost(pools)
}

// withLost adds the pools of which claims have devices and no slice is left.
func (n *deviceCounter) withLost(pools []api.Pool) []api.Pool {
	lost := n.cluster.LostPools()
	for i := range lost {
		p := api.Pool{
			TypeMeta: typeMeta("Pool"), Driver: lost[i].Driver, Name: lost[i].Name, Node: lost[i].Node, CountsFrom: api.CountsFromClaims,
			State: api.PoolStateNoSlices, Reason: fmt.Sprintf("no slices: driver %s publishes nothing for it any more, and claims have its devices", lost[i].Driver),
		}
		if p.Node != "" && nodeGone(n.cluster, p.Node) {
			p.Reason = fmt.Sprintf("no slices: node %s does not exist", p.Node)
		}
		if n.notRead.claims {
			p.CountsFrom = api.CountsFromVisibleClaims
		}
		n.addGone(&p.Devices, func(d *api.Device) bool { return d.Driver == p.Driver && d.Pool == p.Name })
		pools = append(pools, p)
	}
	if len(lost) > 0 {
		slices.SortStableFunc(pools, func(a, b api.Pool) int {
			return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Name, b.Name))
		})
	}
	return pools
}

func sortedPools(facts *cluster.Cluster) []*cluster.Pool {
	all := slices.Clone(facts.Pools.All())
	slices.SortStableFunc(all, func(a, b *cluster.Pool) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// describePool describes a pool without its partitions, and returns the facts that only the
// cluster's own counts have.
func (n *deviceCounter) describePool(pool *cluster.Pool) (api.Pool, known) {
	out := api.Pool{
		TypeMeta: typeMeta("Pool"),
		Driver:   pool.Driver, Name: pool.Name, Node: poolNode(pool), Generation: pool.Generation,
		Slices: len(pool.Slices), Declared: pool.Expected, Obsolete: len(pool.Obsolete), Labels: commonLabels(pool),
	}
	devices := tallyOf(n.eligible, n.plain, pool)
	status, found := n.statuses()[snapshot.PoolID{Driver: pool.Driver, Name: pool.Name}]
	var known known
	if found {
		out.ClusterCounts = status.counts()
		known = n.learn(&status, pool, &devices)
		out.Differences = known.differences
	}
	out.Devices, out.CountsFrom = count(n.notRead, &devices, known)
	if !n.cluster.Gates.Enabled(cluster.GateDeviceTaints) {
		out.Devices.TaintedInUse = 0
	}
	out.Unhealthy = devices.unhealthy
	out.Capacity = poolCapacity(n.cluster, n.notRead, pool, known)
	for _, use := range n.cluster.Partitions.Counters(pool) {
		counter := api.Counter{
			CounterSet: use.CounterSet, Name: use.Counter, Total: use.Total.String(), Consumed: use.Used.String(), Available: use.Left.String(),
			ConsumedPercent:      percent(use.Used, use.Total),
			ConsumedIsLowerBound: n.notRead.claims && use.Left.Sign() > 0 && !known.allHolders,
		}
		for _, id := range use.By {
			counter.UsedBy = append(counter.UsedBy, id.Device)
		}
		out.Counters = append(out.Counters, counter)
	}
	out.State, out.Reason = poolState(n.eligible, pool, out.Devices.Total)
	n.addGone(&out.Devices, func(d *api.Device) bool { return d.Driver == pool.Driver && d.Pool == pool.Name })
	return out, known
}

// capacitySum sums up a capacity: in all devices, in shares, and in devices that claims
// have for themselves.
type capacitySum struct{ total, used, exclusive resource.Quantity }

// poolCapacity sums up the capacity of devices that can be shared.
func poolCapacity(facts *cluster.Cluster, notRead notRead, pool *cluster.Pool, known known) []api.Capacity {
	sums := map[resourceapi.QualifiedName]*capacitySum{}
	for _, d := range devicesOf(pool) {
		if !ptr.Deref(d.AllowMultipleAllocations, false) {
			continue
		}
		consumed := facts.Usage.Consumed(d.ID)
		for name := range d.Capacity {
			if sums[name] == nil {
				sums[name] = &capacitySum{}
			}
			sums[name].total.Add(d.Capacity[name].Value)
			if facts.Usage.InUse(d.ID) {
				sums[name].exclusive.Add(d.Capacity[name].Value)
				continue
			}
			sums[name].used.Add(consumed[name])
		}
	}
	var list []api.Capacity
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		sum := sums[name]
		certain := !notRead.claims
		if consumed, ok := known.consumed[string(name)]; ok && !certain && consumed.Cmp(sum.used) >= 0 {
			sum.used, certain = consumed, true
		}
		sum.used.Add(sum.exclusive)
		capacity := newCapacity(selector.Qualified(name, pool.Driver), sum.total, sum.used)
		capacity.ConsumedIsLowerBound = !certain && sum.used.Cmp(sum.total) < 0
		list = append(list, capacity)
	}
	return list
}

// commonLabels returns the labels that all slices of a pool have, nil if there is none.
func commonLabels(pool *cluster.Pool) map[string]string {
	var common map[string]string
	for i, slice := range pool.Slices {
		if i == 0 {
			common = maps.Clone(slice.Labels)
			continue
		}
		maps.DeleteFunc(common, func(key, value string) bool {
			other, ok := slice.Labels[key]
			return !ok || other != value
		})
	}
	if len(common) == 0 {
		return nil
	}
	return common
}

func poolState(eligible *eligibility.Devices, pool *cluster.Pool, devices int) (api.PoolState, string) {
	switch node := poolNode(pool); {
	case pool.Incomplete:
		return api.PoolStateIncomplete, pool.WhyIncomplete()
	case pool.Invalid != "":
		return api.PoolStateInvalid, pool.Invalid
	case node != "" && nodeGone(eligible.Facts, node):
		return api.PoolStateNodeGone, fmt.Sprintf("node %s does not exist", node)
	case devices == 0:
		return api.PoolStateEmpty, "no devices"
	}
	switch why := reasonOfAll(eligible, devicesOf(pool)); {
	case why == nil:
		return api.PoolStateUsable, olderText(eligible, pool)
	case why.Defect() != "":
		return api.PoolStateInvalid, why.Defect()
	default:
		return api.PoolStateUnusable, why.Alone()
	}
}

// olderText says that the allocator takes devices besides those that are listed,
// which are the ones of the newest generation.
func olderText(eligible *eligibility.Devices, pool *cluster.Pool) string {
	var names []string
	for _, slice := range pool.Obsolete {
		if eligible.StillTaken(slice) > 0 {
			names = append(names, slice.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("not counted: devices of earlier generations, which the allocator still takes for nodes without newer slices (%s)", strings.Join(names, ", "))
}

// reasonOfAll returns why the allocator takes none of the devices, nil if there are none or
// it takes one.
func reasonOfAll(eligible *eligibility.Devices, devices []cluster.Device) *eligibility.Reason {
	var first *eligibility.Reason
	for i := range devices {
		why := eligible.Reason(&devices[i])
		if why == nil {
			return nil
		}
		if first == nil {
			first = why
		}
	}
	return first
}

// nodeGone reports whether it is known that there is no such node.
func nodeGone(facts *cluster.Cluster, name string) bool {
	return facts.Snapshot.Node(name) == nil && facts.Snapshot.Gap(snapshot.ResourceNodes) == nil && len(facts.Snapshot.Nodes) > 0
}

// counts returns the numbers of a status, as they are.
func (s *poolStatus) counts() *api.ClusterCounts {
	c := &api.ClusterCounts{
		Request: s.request.Name, Total: s.TotalDevices, Allocated: s.AllocatedDevices,
		Available: s.AvailableDevices, Unavailable: s.UnavailableDevices, Error: ptr.Deref(s.ValidationError, ""),
	}
	if at := snapshot.AnsweredAt(s.request); !at.IsZero() {
		c.AnsweredAt = &at
	}
	return c
}

// learn compares a status with what can be seen. What contradicts itself, or
// is of another moment, is not used.
func (n *deviceCounter) learn(s *poolStatus, pool *cluster.Pool, t *tally) known {
	var k known
	differ := func(format string, args ...any) { k.differences = append(k.differences, fmt.Sprintf(format, args...)) }
	if s.TotalDevices == nil || s.AllocatedDevices == nil || s.AvailableDevices == nil || s.UnavailableDevices == nil {
		return k
	}
	if s.Generation != pool.Generation || int(*s.TotalDevices) != t.total {
		differ("the cluster counts %d devices of generation %d, the slices have %d of generation %d: the pool changed in between",
			*s.TotalDevices, s.Generation, t.total, pool.Generation)
		return k
	}
	if pool.Invalid != "" {
		// None of its devices is free, and names may be there twice.
		return k
	}
	gone := n.gone()[snapshot.PoolID{Driver: pool.Driver, Name: pool.Name}]
	k.rules = int(*s.UnavailableDevices) == t.tainted
	hidden := int(*s.AllocatedDevices) - t.inUse() - gone
	if !n.notRead.claims {
		k.differences = compare(n.notRead, s, t, gone)
		return k
	}
	switch {
	case hidden < 0:
		differ("the cluster counts %d allocated devices, and %d are seen: a claim changed in between", *s.AllocatedDevices, t.inUse()+gone)
		return k
	case hidden > t.open():
		differ("the cluster counts %d allocated devices, more than there can be: claims have some that no slice has any more, or changed in between", *s.AllocatedDevices)
		return k
	}
	k.claims, k.hidden, k.allHolders = true, hidden, hidden == 0
	k.consumed, k.allocatable = map[string]resource.Quantity{}, map[partitionKind]int{}
	if shareable := s.ShareableSummary; shareable != nil {
		if n.cluster.Gates.Enabled("DRAConsumableCapacity") && shareable.PartiallyAvailableDevices != nil {
			k.hiddenShared = int(*shareable.PartiallyAvailableDevices) - t.shareableInUse
			k.split = k.hiddenShared >= 0 && k.hiddenShared <= min(hidden, t.openShareable)
		}
		for _, c := range shareable.Capacity {
			if c.Consumed != nil {
				k.consumed[c.Name] = *c.Consumed
			}
		}
	}
	if !k.split {
		k.hiddenShared = 0
	}
	for _, p := range s.PartitionSummary {
		if p.Allocatable != nil {
			k.allocatable[partitionKind{p.Attribute, p.Type}] = int(*p.Allocatable)
		}
	}
	return k
}

// compare lists the differences between a status and the objects, if all of them were read,
// and the cluster's rules that explain them.
func compare(notRead notRead, s *poolStatus, t *tally, gone int) []string {
	var differences []string
	allocated, available, unavailable := int(*s.AllocatedDevices), int(*s.AvailableDevices), int(*s.UnavailableDevices)
	if used := t.inUse() + gone; allocated != used {
		differences = append(differences, fmt.Sprintf("the cluster counts %d allocated devices, and claims have %d: a claim changed in between", allocated, used))
		return differences
	}
	if unavailable != t.tainted && !notRead.rules {
		differences = append(differences, fmt.Sprintf("the cluster counts %d unavailable devices, and %d have a taint: a taint changed in between", unavailable, t.tainted))
		return differences
	}
	free := t.by[api.DeviceStateFree]
	if free == available {
		return nil
	}
	var reasons []string
	reason := func(n int, text string) {
		if n > 0 {
			reasons = append(reasons, fmt.Sprintf("%d %s", n, text))
		}
	}
	reason(t.by[api.DeviceStateBlocked], "blocked by others, which it does not look at")
	reason(t.by[api.DeviceStateUnusable], "that the allocator does not look at")
	reason(t.taintedInUse, "tainted and in use, which it takes off twice")
	reason(gone, "of claims that no slice has any more")
	text := fmt.Sprintf("the cluster counts %d available devices, and %d are free", available, free)
	if len(reasons) > 0 {
		text += "; there are " + strings.Join(reasons, ", ")
	}
	return append(differences, text)
}

// Slices lists all ResourceSlices by driver, pool and name.
func (v *Inventory) Slices() []api.Slice {
	list := make([]api.Slice, 0, len(v.cluster.Snapshot.Slices))
	for _, pool := range v.cluster.Pools.All() {
		all := slices.Concat(pool.Obsolete, pool.Slices)
		for _, slice := range all {
			list = append(list, describeSlice(v.eligible, v.notRead, pool, slice))
		}
	}
	return list
}

func describeSlice(eligible *eligibility.Devices, notRead notRead, pool *cluster.Pool, slice *resourceapi.ResourceSlice) api.Slice {
	out := api.Slice{
		TypeMeta: typeMeta("Slice"),
		Name:     slice.Name, Driver: pool.Driver, Pool: pool.Name, Labels: slice.Labels,
		Generation: slice.Spec.Pool.Generation, PoolGeneration: pool.Generation,
		Devices: len(slice.Spec.Devices),
	}
	out.Node, out.Scope = scopeOf(slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector)
	out.Created, out.AgeSeconds = age(eligible.Facts, slice.CreationTimestamp)
	for _, set := range slice.Spec.SharedCounters {
		out.Counters += len(set.Counters)
	}
	out.State, out.Reason = sliceState(eligible, pool, slice)
	if slice.Spec.Pool.Generation < pool.Generation {
		return out
	}
	for i := range slice.Spec.Devices {
		device := cluster.DeviceIn(pool, slice, i)
		state, _ := deviceState(eligible, &device)
		if state == api.DeviceStateFree {
			out.Free++
			out.FreeIsUpperBound = notRead.uncertain(state)
		}
	}
	return out
}

// StillTaken counts the devices of earlier generations that the allocator takes
// all the same, for nodes without newer slices. They are in no list and no count
// of devices.
func (v *Inventory) StillTaken() int {
	count := 0
	for _, pool := range v.cluster.Pools.All() {
		for _, slice := range pool.Obsolete {
			count += v.eligible.StillTaken(slice)
		}
	}
	return count
}

// stillTaken is said of devices of an earlier generation that are not listed.
const stillTaken = "the allocator still takes its devices for nodes without newer slices"

func sliceState(eligible *eligibility.Devices, pool *cluster.Pool, slice *resourceapi.ResourceSlice) (api.SliceState, string) {
	node := ptr.Deref(slice.Spec.NodeName, "")
	switch {
	case slice.Spec.Pool.Generation < pool.Generation && eligible.StillTaken(slice) > 0:
		return api.SliceStateObsolete, fmt.Sprintf("generation %d, the pool is at %d; %s", slice.Spec.Pool.Generation, pool.Generation, stillTaken)
	case slice.Spec.Pool.Generation < pool.Generation:
		return api.SliceStateObsolete, fmt.Sprintf("generation %d, the pool is at %d", slice.Spec.Pool.Generation, pool.Generation)
	case node != "" && nodeGone(eligible.Facts, node):
		return api.SliceStateNodeGone, fmt.Sprintf("node %s does not exist", node)
	case pool.Incomplete:
		return api.SliceStateIncomplete, pool.WhyIncomplete()
	case pool.Invalid != "":
		return api.SliceStateInvalid, pool.Invalid
	case len(slice.Spec.Devices) == 0 && len(slice.Spec.SharedCounters) == 0:
		return api.SliceStateEmpty, "no devices"
	case node != "" && notReady(eligible.Facts.Snapshot.Node(node)):
		return api.SliceStateNodeNotReady, fmt.Sprintf("node %s is not ready", node)
	default:
		return api.SliceStateCurrent, ""
	}
}

func notReady(node *corev1.Node) bool { return node != nil && cluster.NotReady(node) != nil }
