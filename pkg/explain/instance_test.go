// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
)

// instance is a claim, or several, for devices of one node that take for ever
// if everything is tried: short has no solution, because very little is
// missing, and enough has one.
type instance struct {
	name          string
	short, enough []any
}

func instances() []instance {
	var list []instance
	add := func(name string, short, enough []any) { list = append(list, instance{name, short, enough}) }

	for _, n := range []int{24, 28, 31} {
		add(fmt.Sprintf("one short: %d of %d", n+1, n), equalDevices(n, n+1), equalDevices(n, n))
	}
	for _, n := range []int{8, 9, 10} {
		add(fmt.Sprintf("groups one short: %d claims for whole groups of %d", n, n-1), groupClaims(n-1, 4, n), groupClaims(n, 4, n))
	}
	add("groups one short: 6 groups of 4 for 5 claims of 3 and 2 of 4", groupSizes(6, 4, 3, 3, 3, 3, 3, 4, 4), groupSizes(7, 4, 3, 3, 3, 3, 3, 4, 4))
	for _, n := range []int{11, 12, 14} {
		add(fmt.Sprintf("pigeonhole: %d distinct of %d values", n+1, n), pigeons(n, 3, n+1), pigeons(n+1, 3, n+1))
	}
	add("pigeonhole: 13 requests, 12 values of 2", pigeonRequests(12, 2, 13), pigeonRequests(13, 2, 13))
	for _, n := range []int{11, 13, 16} {
		add(fmt.Sprintf("competing: %d requests for %d devices", n, n-1), competing(n, n-1), competing(n, n))
	}
	add("competing: the n-th of 22 can do with n of 21", nested(22, 21), nested(22, 22))
	for _, n := range []int{9, 10, 12} {
		add(fmt.Sprintf("match against distinct: %d in one of 6 groups", n), matchDistinct(6, 2*n, n-1, n), matchDistinct(6, 2*n, n, n))
	}
	for _, n := range []int{4, 6, 8} {
		add(fmt.Sprintf("partitions: one unit short on %d GPUs", n), boards(n, 6, 1, n, n, n), boards(n, 6, 0, n, n, n))
	}
	add("partitions: 5 GPUs of 7 for 8 of 3 and 5 of 2", boards(5, 7, 0, 0, 5, 8), boards(5, 7, 0, 0, 4, 8))
	for _, n := range []int{5, 6, 7} {
		add(fmt.Sprintf("several claims: %d pairs on %d roots", n+1, n), pairClaims(n, 4, n+1), pairClaims(n+1, 4, n+1))
	}
	for _, n := range []int{9, 10, 11} {
		add(fmt.Sprintf("prioritized: %d lists of 3, 2 or 1 for %d devices", n, n-1), prioritized(n, n-1), prioritized(n, n))
	}
	add("prioritized: 4 lists of distinct devices", prioritizedDistinct(4, 7), prioritizedDistinct(4, 8))
	for _, n := range []int{4, 5, 6} {
		add(fmt.Sprintf("shares: %d of 3 on %d devices of 10", 3*n+1, n), shares(n, 3*n+1), shares(n, 3*n))
	}
	add("shares: 5, 4 and 3 on 6 devices of 12", mixedShares(6, 9, 0, 10), mixedShares(6, 8, 2, 6))
	for _, n := range []int{10, 12, 14} {
		add(fmt.Sprintf("compatibility groups: %d GPUs, one kind on each", n), compatible(n, n/2+1, n/2), compatible(n, n/2, n/2))
	}
	return list
}

// numbered gives devices an attribute "id" of their own, by which a test can
// ask for them.
func numbered(list []tc.DeviceWrapper) []tc.DeviceWrapper {
	for i := range list {
		list[i].Attributes["id"] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(i))}
	}
	return list
}

// waitingPod returns a pod with claims of these names.
func waitingPod(names ...string) any { return tc.Pod(waiting, tc.Using(names...)) }

// oneNode returns a node with devices and a claim.
func oneNode(list []tc.DeviceWrapper, constraints []resourceapi.DeviceConstraint, requests ...tc.RequestWrapper) []any {
	return []any{tc.Nodes("n1"), tc.Pool("n1", numbered(list)...), tc.Claim(waiting, requests...).Constrained(constraints...), waitingPod(waiting)}
}

// manyClaims returns a node with devices and several claims alike.
func manyClaims(list []tc.DeviceWrapper, n int, requests func(i int) ([]resourceapi.DeviceConstraint, []tc.RequestWrapper)) []any {
	parts := []any{tc.Nodes("n1"), tc.Pool("n1", numbered(list)...)}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%02d", waiting, i))
		constraints, list := requests(i)
		parts = append(parts, tc.Claim(names[i], list...).Constrained(constraints...))
	}
	return append(parts, waitingPod(names...))
}

func equalDevices(n, wanted int) []any {
	return oneNode(tc.Devices(n), nil, tc.GPUs("gpu", int64(wanted)))
}

// roots returns devices with so many values of an attribute, so many of each.
func roots(values, size int) []tc.DeviceWrapper {
	list := tc.Devices(values * size)
	for i := range list {
		list[i] = list[i].With(fmt.Sprintf("root=r%02d", i/size), fmt.Sprintf("slot=s%02d", i%size))
	}
	return list
}

func groupClaims(groups, size, claims int) []any {
	sizes := make([]int, claims)
	for i := range sizes {
		sizes[i] = size
	}
	return groupSizes(groups, size, sizes...)
}

func groupSizes(groups, size int, wanted ...int) []any {
	return manyClaims(roots(groups, size), len(wanted), func(i int) ([]resourceapi.DeviceConstraint, []tc.RequestWrapper) {
		return []resourceapi.DeviceConstraint{tc.MatchAttribute(tc.Driver + "/root")}, []tc.RequestWrapper{tc.GPUs("gpu", int64(wanted[i]))}
	})
}

func pigeons(values, size, wanted int) []any {
	return oneNode(roots(values, size), []resourceapi.DeviceConstraint{tc.DistinctAttribute(tc.Driver + "/root")}, tc.GPUs("gpu", int64(wanted)))
}

// single returns n requests for one device each.
func single(n int, change func(i int, r tc.RequestWrapper) tc.RequestWrapper) []tc.RequestWrapper {
	var list []tc.RequestWrapper
	for i := range n {
		list = append(list, change(i, tc.GPUs(fmt.Sprintf("r%02d", i), 1)))
	}
	return list
}

func plainly(_ int, r tc.RequestWrapper) tc.RequestWrapper { return r }

func pigeonRequests(values, size, requests int) []any {
	return oneNode(roots(values, size), []resourceapi.DeviceConstraint{tc.DistinctAttribute(tc.Driver + "/root")}, single(requests, plainly)...)
}

func competing(requests, n int) []any {
	return oneNode(tc.Devices(n), nil, single(requests, plainly)...)
}

func nested(requests, n int) []any {
	return oneNode(tc.Devices(n), nil, single(requests, func(i int, r tc.RequestWrapper) tc.RequestWrapper {
		return r.Where(fmt.Sprintf(`device.attributes[%q].id >= %d`, tc.Driver, max(0, n-2-i)))
	})...)
}

// matchDistinct returns groups of devices on so many slots: all in one group, and all on
// distinct slots.
func matchDistinct(groups, size, slots, wanted int) []any {
	list := tc.Devices(groups * size)
	for i := range list {
		list[i] = list[i].With(fmt.Sprintf("root=r%02d", i/size), fmt.Sprintf("slot=s%02d", i%size%slots))
	}
	constraints := []resourceapi.DeviceConstraint{tc.MatchAttribute(tc.Driver + "/root"), tc.DistinctAttribute(tc.Driver + "/slot")}
	return oneNode(list, constraints, tc.GPUs("gpu", int64(wanted)))
}

// boards returns GPUs of so many units, in partitions of 1, 2 and 3, of which so many are
// wanted; so many units of the first GPU are missing.
func boards(n, units, missing int, wanted ...int) []any {
	var list []tc.DeviceWrapper
	var sets []resourceapi.CounterSet
	for b := range n {
		set := fmt.Sprintf("board-%d", b)
		sets = append(sets, counterSet(set, units-missing))
		missing = 0
		for _, size := range []int{1, 2, 3} {
			for k := range units / size {
				list = append(list, tc.Device(fmt.Sprintf("gpu-%d-%dg-%d", b, size, k), fmt.Sprintf("model=%dg", size)).Consuming(set, fmt.Sprintf("units=%d", size)))
			}
		}
	}
	var requests []tc.RequestWrapper
	for k, count := range wanted {
		if count > 0 {
			requests = append(requests, tc.GPUs(fmt.Sprintf("p%d", k+1), int64(count), ofModel(fmt.Sprintf("%dg", k+1))))
		}
	}
	return partitioned(list, sets, requests...)
}

func ofModel(model string) string {
	return fmt.Sprintf(`device.attributes[%q].model == %q`, tc.Driver, model)
}

func counterSet(name string, units int) resourceapi.CounterSet {
	return resourceapi.CounterSet{Name: name, Counters: map[string]resourceapi.Counter{"units": {Value: *resource.NewQuantity(int64(units), resource.DecimalSI)}}}
}

// partitioned returns a node with a pool of two slices: devices, counters.
func partitioned(list []tc.DeviceWrapper, sets []resourceapi.CounterSet, requests ...tc.RequestWrapper) []any {
	return []any{
		tc.Nodes("n1"), tc.Pool("n1", numbered(list)...).Of(2),
		tc.Pool("n1").Of(2).Change(func(s *resourceapi.ResourceSlice) { s.Spec.SharedCounters = sets }),
		tc.Claim(waiting, requests...), waitingPod(waiting),
	}
}

// pairClaims returns claims for two pairs each, all four on one root.
func pairClaims(groups, size, claims int) []any {
	return manyClaims(roots(groups, size), claims, func(int) ([]resourceapi.DeviceConstraint, []tc.RequestWrapper) {
		return []resourceapi.DeviceConstraint{tc.MatchAttribute(tc.Driver + "/root")}, []tc.RequestWrapper{tc.GPUs("a", 2), tc.GPUs("b", 2)}
	})
}

func prioritized(lists, n int) []any {
	var requests []tc.RequestWrapper
	for i := range lists {
		requests = append(requests, tc.FirstAvailable(fmt.Sprintf("r%d", i), tc.GPUs("three", 3), tc.GPUs("two", 2), tc.GPUs("one", 1)))
	}
	return oneNode(tc.Devices(n), nil, requests...)
}

// prioritizedDistinct returns lists of two or three devices, all on distinct roots.
func prioritizedDistinct(lists, values int) []any {
	var requests []tc.RequestWrapper
	for i := range lists {
		requests = append(requests, tc.FirstAvailable(fmt.Sprintf("r%d", i), tc.GPUs("three", 3), tc.GPUs("two", 2)))
	}
	return oneNode(roots(values, 3), []resourceapi.DeviceConstraint{tc.DistinctAttribute(tc.Driver + "/root")}, requests...)
}

func sharedDevices(n int, memory string) []tc.DeviceWrapper {
	return tc.Copies(n, tc.Device("", "memory:="+memory).Shareable())
}

func shares(n, requests int) []any {
	return append(oneNode(sharedDevices(n, "10"), nil, single(requests, func(_ int, r tc.RequestWrapper) tc.RequestWrapper {
		return r.WithCapacity("memory", "3")
	})...), tc.Gate("DRAConsumableCapacity", true))
}

func mixedShares(n, fives, fours, threes int) []any {
	wanted := strings.Repeat("5", fives) + strings.Repeat("4", fours) + strings.Repeat("3", threes)
	return append(oneNode(sharedDevices(n, "12"), nil, single(len(wanted), func(i int, r tc.RequestWrapper) tc.RequestWrapper {
		return r.WithCapacity("memory", wanted[i:i+1])
	})...), tc.Gate("DRAConsumableCapacity", true))
}

// compatible returns GPUs that can be cut in two ways, not both at once: each kind is
// wanted whole on so many.
func compatible(n, ofA, ofB int) []any {
	var list []tc.DeviceWrapper
	var sets []resourceapi.CounterSet
	for b := range n {
		set := fmt.Sprintf("board-%d", b)
		sets = append(sets, counterSet(set, 8))
		for _, kind := range []string{"a", "b"} {
			for k := range 2 {
				list = append(list, tc.Device(fmt.Sprintf("gpu-%d-%s-%d", b, kind, k), "model="+kind).Consuming(set, "units=2").InGroups(kind))
			}
		}
	}
	return append(partitioned(list, sets, tc.GPUs("a", int64(2*ofA), ofModel("a")), tc.GPUs("b", int64(2*ofB), ofModel("b"))),
		tc.Gate("DRADeviceCompatibilityGroups", true))
}
