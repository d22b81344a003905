// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// fitSteps bounds the search for room for one kind of partition: a second or two.
const fitSteps = 10_000_000

// wantedDomain is the domain of the attribute that marks the devices for which room is
// looked for.
const wantedDomain = "inventory.dra.kubectl.dev"

// partitions sorts the devices that use counters by kind.
func (n *deviceCounter) partitions(ctx context.Context, pool *cluster.Pool, known known) ([]api.Partition, error) {
	kinds := map[partitionKind][]cluster.Device{}
	var order []partitionKind
	for _, d := range devicesOf(pool) {
		if len(d.ConsumesCounters) == 0 {
			continue
		}
		kind := kindOf(&d)
		if kinds[kind] == nil {
			order = append(order, kind)
		}
		kinds[kind] = append(kinds[kind], d)
	}
	partitions := make([]api.Partition, 0, len(order))
	for _, kind := range order {
		devices := kinds[kind]
		partition := api.Partition{Type: kind.value, Attribute: kind.attribute, Devices: len(devices)}
		for i := range devices {
			if n.cluster.Usage.InUse(devices[i].ID) || n.cluster.Usage.Shared(devices[i].ID) {
				partition.Allocated++
			}
		}
		more, err := moreFit(ctx, n.cluster, n.eligible, pool, devices)
		if err != nil {
			return nil, err
		}
		partition.MoreFit = more
		if n.notRead.claims && !known.allHolders && more != nil && *more > 0 {
			if allocatable, ok := known.allocatable[kind]; ok {
				*more = min(*more, allocatable)
			}
			partition.MoreFitIsUpperBound = *more > 0
		}
		if n.notRead.rules && !known.rules && more != nil && *more > 0 {
			partition.MoreFitIsUpperBound = true
		}
		partitions = append(partitions, partition)
	}
	return partitions, nil
}

// PartitionKind returns the attribute with the type of a partition and its value; without such an
// attribute, the counters that the partition takes.
func PartitionKind(d *cluster.Device) (attribute, value string) {
	kind := kindOf(d)
	return kind.attribute, kind.value
}

// kindOf returns the type that the driver declares for a device of its slice (KEP-5677), or
// what the device takes of each counter.
func kindOf(d *cluster.Device) partitionKind {
	if name := ptr.Deref(d.Slice.Spec.PartitionTypeAttribute, ""); name != "" {
		for attribute, value := range d.Attributes {
			if selector.Qualified(attribute, d.ID.Driver) == string(name) {
				return partitionKind{string(name), selector.Plain(value)}
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
		parts = append(parts, selector.QuantityText(total)+" "+name)
	}
	return partitionKind{value: strings.Join(parts, ", ")}
}

// moreFit asks the allocator how many more devices of a kind an ordinary request
// can have at the same time, on the node that has the most of them; devices with
// a taint against scheduling are none of them. It is nil if the allocator does
// not use the pool, if it depends on nodes that are not known, or if it cannot
// tell within fitSteps: it tries all combinations.
func moreFit(ctx context.Context, c *cluster.Cluster, eligible *eligibility.Devices, pool *cluster.Pool, devices []cluster.Device) (*int, error) {
	if pool.Incomplete || pool.Invalid != "" {
		return nil, nil
	}
	known := nodesOf(eligible.Facts, pool)
	switch complete := eligible.Facts.Snapshot.Gap(snapshot.ResourceNodes) == nil && len(eligible.Facts.Snapshot.Nodes) > 0; {
	case !complete && (len(known) == 0 || poolNode(pool) == ""):
		// There may be nodes that can see the pool, and nothing is known of them.
		return nil, nil
	case len(known) == 0:
		return new(int), nil
	}
	wanted := map[string]bool{}
	for i := range devices {
		wanted[devices[i].ID.Device] = true
	}
	amended := &snapshot.Snapshot{
		Source: eligible.Facts.Snapshot.Source, Clock: eligible.Facts.Snapshot.Clock, Release: eligible.Facts.Snapshot.Release,
		Nodes: known, Claims: eligible.Facts.Snapshot.Claims,
		Classes: []*resourceapi.DeviceClass{{
			ObjectMeta: metav1.ObjectMeta{Name: "any"},
			// Of others only those are left that are in use; there may be shares of
			// them to be had.
			Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
				Expression: `has(device.attributes["` + wantedDomain + `"].wanted)`,
			}}}},
		}},
	}
	for _, slice := range pool.Slices {
		slice = slice.DeepCopy()
		slice.Spec.Devices = slices.DeleteFunc(slice.Spec.Devices, func(d resourceapi.Device) bool {
			id := cluster.DeviceID{Driver: pool.Driver, Pool: pool.Name, Device: d.Name}
			return !wanted[d.Name] && !eligible.Facts.Usage.InUse(id) && !eligible.Facts.Usage.Shared(id)
		})
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			if wanted[d.Name] {
				if d.Attributes == nil {
					d.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
				}
				d.Attributes[wantedDomain+"/wanted"] = resourceapi.DeviceAttribute{BoolValue: ptr.To(true)}
			}
		}
		amended.Slices = append(amended.Slices, slice)
	}
	c = c.Amended(amended)
	limited, budget := allocator.WithBudget(ctx, fitSteps)
	defer budget.End()
	most, room := 0, roomFor(eligible, pool, devices)
	nodes, _ := c.Nodes.All()
	for _, node := range nodes {
		// Mostly there is room for as many as the counters allow.
		low, high, count := most, room+1, room
		for high-low > 1 {
			switch verdict := allocator.Of(c).Check(limited, node, anyDevices(count)); verdict.Outcome {
			case allocator.Fits:
				low = count
			case allocator.DoesNotFit:
				high = count
			default:
				return nil, ctx.Err()
			}
			count = (low + high) / 2
		}
		most = low
	}
	return &most, ctx.Err()
}

// roomFor returns how many more devices of a kind can be had at most: those that nobody
// has, and of these only as many as there is left for of a counter that they take from.
func roomFor(eligible *eligibility.Devices, pool *cluster.Pool, devices []cluster.Device) int {
	type counter struct{ set, name string }
	fresh := map[counter]int{}
	least := map[counter]resource.Quantity{}
	for i := range devices {
		d := &devices[i]
		if ptr.Deref(d.AllowMultipleAllocations, false) {
			// It takes from the counters only once.
			return len(devices)
		}
		if state, _ := deviceState(eligible, d); state != api.DeviceStateFree {
			continue
		}
		// One counter is enough for a bound. It must be the same for devices
		// that take the same.
		var charged counter
		if names := slices.Sorted(maps.Keys(d.ConsumesCounters[0].Counters)); len(names) > 0 {
			charged = counter{d.ConsumesCounters[0].CounterSet, names[0]}
			wanted := d.ConsumesCounters[0].Counters[names[0]].Value
			if known, ok := least[charged]; !ok || wanted.Cmp(known) < 0 {
				least[charged] = wanted
			}
		}
		fresh[charged]++
	}
	use := eligible.Facts.Partitions.Use(pool)
	room := 0
	for charged, count := range fresh {
		left, ok := use.Counter(charged.set, charged.name)
		wanted := least[charged]
		if ok && wanted.Sign() > 0 {
			count = min(count, int(left.Left.AsApproximateFloat64()/wanted.AsApproximateFloat64()*(1+1e-9)))
		}
		room += count
	}
	return room
}

// nodesOf lists nodes that can see a pool: its own, or all.
func nodesOf(facts *cluster.Cluster, pool *cluster.Pool) []*corev1.Node {
	nodes, _ := facts.Nodes.All()
	if name := poolNode(pool); name != "" {
		at := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == name })
		if at < 0 {
			return nil
		}
		return nodes[at : at+1]
	}
	return nodes
}

// anyDevices returns claims for so many devices, each for as many as a claim can have.
func anyDevices(count int) []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	for ; count > 0; count -= resourceapi.AllocationResultsMaxSize {
		name := fmt.Sprintf("any-%d", len(claims))
		claims = append(claims, &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "inventory", Name: name, UID: types.UID(name)},
			Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
				Name: "any", Exactly: &resourceapi.ExactDeviceRequest{
					DeviceClassName: "any", AllocationMode: resourceapi.DeviceAllocationModeExactCount,
					Count: int64(min(count, resourceapi.AllocationResultsMaxSize)),
				},
			}}}},
		})
	}
	return claims
}
