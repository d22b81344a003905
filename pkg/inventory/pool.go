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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Pools lists all pools, sorted by driver and name. How many more partitions
// would fit is asked of the allocator, which ctx bounds.
func (v *Inventory) Pools(ctx context.Context) ([]Pool, error) {
	all := slices.Clone(v.alloc.Pools())
	slices.SortStableFunc(all, func(a, b *allocator.Pool) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Name, b.Name))
	})
	pools := make([]Pool, 0, len(all))
	for _, pool := range all {
		described, err := v.pool(ctx, pool)
		if err != nil {
			return nil, err
		}
		pools = append(pools, described)
	}
	return pools, nil
}

func (v *Inventory) pool(ctx context.Context, pool *allocator.Pool) (Pool, error) {
	out := Pool{
		TypeMeta: typeMeta("Pool"),
		Driver:   pool.Driver, Name: pool.Name, Node: poolNode(pool), Generation: pool.Generation,
		Slices: len(pool.Slices), Declared: pool.Expected, Obsolete: len(pool.Obsolete),
	}
	capacity := map[resourceapi.QualifiedName]*capacitySum{}
	for _, d := range v.devicesOf(pool) {
		state, _ := v.deviceState(&d)
		out.Devices.add(state)
		if health, _ := v.healthOf(&d); health == string(corev1.ResourceHealthStatusUnhealthy) {
			out.Devices.Unhealthy++
		}
		if !ptr.Deref(d.AllowMultipleAllocations, false) {
			continue
		}
		consumed := v.alloc.Consumed(d.ID)
		for name := range d.Capacity {
			if capacity[name] == nil {
				capacity[name] = &capacitySum{}
			}
			capacity[name].total.Add(d.Capacity[name].Value)
			capacity[name].used.Add(consumed[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		out.Capacity = append(out.Capacity, newCapacity(qualifiedName(name, pool.Driver), capacity[name].total, capacity[name].used))
	}
	for _, use := range v.alloc.CountersOf(pool) {
		counter := Counter{CounterSet: use.CounterSet, Name: use.Counter, Total: use.Total.String(), Used: use.Used.String(), Left: use.Left.String()}
		for _, id := range use.By {
			counter.By = append(counter.By, id.Device)
		}
		out.Counters = append(out.Counters, counter)
	}
	out.State, out.Reason = v.poolState(pool, out.Devices.Total)
	var err error
	out.Partitions, err = v.partitions(ctx, pool)
	return out, err
}

type capacitySum struct{ total, used resource.Quantity }

func (c *DeviceCounts) add(state DeviceState) {
	c.Total++
	switch state {
	case DeviceFree:
		c.Free++
	case DeviceAllocated:
		c.Allocated++
	case DeviceShared:
		c.Shared++
	case DeviceBlocked:
		c.Blocked++
	case DeviceTainted:
		c.Tainted++
	case DeviceUnusable:
		c.Unusable++
	}
}

// poolNode is the node that all slices of a pool name.
func poolNode(pool *allocator.Pool) string {
	node := ""
	for i, slice := range pool.Slices {
		name := ptr.Deref(slice.Spec.NodeName, "")
		if i > 0 && name != node {
			return ""
		}
		node = name
	}
	return node
}

func (v *Inventory) poolState(pool *allocator.Pool, devices int) (PoolState, string) {
	switch node := poolNode(pool); {
	case pool.Incomplete:
		return PoolIncomplete, fmt.Sprintf("%d of %d slices", len(pool.Slices), pool.Expected)
	case pool.Invalid != "":
		return PoolInvalid, pool.Invalid
	case node != "" && v.nodeGone(node):
		return PoolNodeGone, fmt.Sprintf("node %s does not exist", node)
	case devices == 0:
		return PoolEmpty, "no devices"
	default:
		return PoolUsable, ""
	}
}

// nodeGone says whether it is known that there is no such node.
func (v *Inventory) nodeGone(name string) bool {
	return v.snap.Node(name) == nil && v.snap.Gap(snapshot.ResourceNodes) == nil && len(v.snap.Nodes) > 0
}

func (v *Inventory) devicesOf(pool *allocator.Pool) []allocator.Device {
	var devices []allocator.Device
	for _, slice := range pool.Slices {
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			devices = append(devices, allocator.Device{
				ID:     allocator.DeviceID{Driver: pool.Driver, Pool: pool.Name, Device: device.Name},
				Device: device, Slice: slice, Pool: pool,
			})
		}
	}
	return devices
}

// partitionKind is what the devices of one kind have in common.
type partitionKind struct{ attribute, value string }

// partitions sorts the devices that use counters by kind.
func (v *Inventory) partitions(ctx context.Context, pool *allocator.Pool) ([]Partition, error) {
	kinds := map[partitionKind][]allocator.Device{}
	var order []partitionKind
	for _, d := range v.devicesOf(pool) {
		if len(d.ConsumesCounters) == 0 {
			continue
		}
		kind := kindOf(&d)
		if kinds[kind] == nil {
			order = append(order, kind)
		}
		kinds[kind] = append(kinds[kind], d)
	}
	partitions := make([]Partition, 0, len(order))
	for _, kind := range order {
		devices := kinds[kind]
		partition := Partition{Type: kind.value, Attribute: kind.attribute, Devices: len(devices)}
		for i := range devices {
			if v.alloc.InUse(devices[i].ID) || v.alloc.Shared(devices[i].ID) {
				partition.Allocated++
			}
		}
		more, err := v.moreFit(ctx, pool, devices)
		if err != nil {
			return nil, err
		}
		partition.MoreFit = more
		partitions = append(partitions, partition)
	}
	return partitions, nil
}

// kindOf gives the type that the driver declares for a device of its slice
// (KEP-5677), or what the device takes of each counter.
func kindOf(d *allocator.Device) partitionKind {
	if name := ptr.Deref(d.Slice.Spec.PartitionTypeAttribute, ""); name != "" {
		for attribute, value := range d.Attributes {
			if qualifiedName(attribute, d.ID.Driver) == string(name) {
				return partitionKind{string(name), attributeText(value)}
			}
		}
	}
	totals := map[string]resource.Quantity{}
	for _, consumption := range d.ConsumesCounters {
		for name, counter := range consumption.Counters {
			sum := totals[name]
			sum.Add(counter.Value)
			totals[name] = sum
		}
	}
	parts := make([]string, 0, len(totals))
	for _, name := range slices.Sorted(maps.Keys(totals)) {
		total := totals[name]
		parts = append(parts, total.String()+" "+name)
	}
	return partitionKind{value: strings.Join(parts, ", ")}
}

// moreFit asks the allocator how many more devices of a kind can be had at the
// same time, on the node that has the most of them. It is nil if the allocator
// does not use the pool.
func (v *Inventory) moreFit(ctx context.Context, pool *allocator.Pool, devices []allocator.Device) (*int, error) {
	if pool.Incomplete || pool.Invalid != "" {
		return nil, nil
	}
	wanted := map[string]bool{}
	for i := range devices {
		wanted[devices[i].ID.Device] = true
	}
	amended := &snapshot.Snapshot{
		Source: v.snap.Source, TakenAt: v.snap.TakenAt, ServerVersion: v.snap.ServerVersion, Gates: v.snap.Gates,
		Nodes: v.nodesOf(pool), Claims: v.snap.Claims,
		Classes: []*resourceapi.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "any"}}},
	}
	for _, slice := range pool.Slices {
		slice = slice.DeepCopy()
		slice.Spec.Devices = slices.DeleteFunc(slice.Spec.Devices, func(d resourceapi.Device) bool {
			id := allocator.DeviceID{Driver: pool.Driver, Pool: pool.Name, Device: d.Name}
			return !wanted[d.Name] && !v.alloc.InUse(id) && !v.alloc.Shared(id)
		})
		for i := range slice.Spec.Devices {
			slice.Spec.Devices[i].Taints = nil
		}
		amended.Slices = append(amended.Slices, slice)
	}
	alloc, err := v.alloc.Amended(ctx, amended)
	if err != nil {
		return nil, fmt.Errorf("set up the allocator for pool %s/%s: %w", pool.Driver, pool.Name, err)
	}
	most := 0
	nodes, _ := alloc.Nodes()
	for _, node := range nodes {
		low, high := most, len(devices)+1
		for high-low > 1 {
			count := (low + high) / 2
			if alloc.Check(ctx, node, []*resourceapi.ResourceClaim{anyDevices(count)}).Outcome == allocator.Fits {
				low = count
			} else {
				high = count
			}
		}
		most = low
	}
	return &most, ctx.Err()
}

// nodesOf lists nodes that can see a pool: its own, or all.
func (v *Inventory) nodesOf(pool *allocator.Pool) []*corev1.Node {
	nodes, _ := v.alloc.Nodes()
	if name := poolNode(pool); name != "" {
		at := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == name })
		if at < 0 {
			return nil
		}
		return nodes[at : at+1]
	}
	return nodes
}

func anyDevices(count int) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "inventory", Name: "any"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "any", Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: "any", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(count),
			},
		}}}},
	}
}
