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
