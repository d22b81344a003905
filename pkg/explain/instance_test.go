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
	short, enough []part
}

func instances() []instance {
	var list []instance
	add := func(name string, short, enough []part) { list = append(list, instance{name, short, enough}) }

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
func numbered(list []resourceapi.Device) []resourceapi.Device {
	for i := range list {
		list[i].Attributes["id"] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(i))}
	}
	return list
}

// waitingPod is a pod with claims of these names.
func waitingPod(names ...string) part { return pod(waiting, names...) }

// oneNode is a node with devices and a claim.
func oneNode(list []resourceapi.Device, constraints []resourceapi.DeviceConstraint, requests ...resourceapi.DeviceRequest) []part {
	return []part{nodes("n1"), pool("n1", numbered(list)...), constrained(waiting, constraints, requests...), waitingPod(waiting)}
}

// manyClaims is a node with devices and several claims alike.
func manyClaims(list []resourceapi.Device, n int, requests func(i int) ([]resourceapi.DeviceConstraint, []resourceapi.DeviceRequest)) []part {
	parts := []part{nodes("n1"), pool("n1", numbered(list)...)}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%02d", waiting, i))
		constraints, list := requests(i)
		parts = append(parts, constrained(names[i], constraints, list...))
	}
	return append(parts, waitingPod(names...))
}

func equalDevices(n, wanted int) []part {
	return oneNode(devices(n), nil, exact("gpu", int64(wanted)))
}

// roots are devices with so many values of an attribute, so many of each.
func roots(values, size int) []resourceapi.Device {
	list := devices(values * size)
	for i := range list {
		tc.WithAttribute("root", fmt.Sprintf("r%02d", i/size))(&list[i])
		tc.WithAttribute("slot", fmt.Sprintf("s%02d", i%size))(&list[i])
	}
	return list
}

func groupClaims(groups, size, claims int) []part {
	sizes := make([]int, claims)
	for i := range sizes {
		sizes[i] = size
	}
	return groupSizes(groups, size, sizes...)
}

func groupSizes(groups, size int, wanted ...int) []part {
	return manyClaims(roots(groups, size), len(wanted), func(i int) ([]resourceapi.DeviceConstraint, []resourceapi.DeviceRequest) {
		return same(driver + "/root"), []resourceapi.DeviceRequest{exact("gpu", int64(wanted[i]))}
	})
}

func pigeons(values, size, wanted int) []part {
	return oneNode(roots(values, size), distinct(driver+"/root"), exact("gpu", int64(wanted)))
}

// single are n requests for one device each.
func single(n int, changes func(i int) []func(*resourceapi.ExactDeviceRequest)) []resourceapi.DeviceRequest {
	var list []resourceapi.DeviceRequest
	for i := range n {
		list = append(list, exact(fmt.Sprintf("r%02d", i), 1, changes(i)...))
	}
	return list
}

func plainly(int) []func(*resourceapi.ExactDeviceRequest) { return nil }

func pigeonRequests(values, size, requests int) []part {
	return oneNode(roots(values, size), distinct(driver+"/root"), single(requests, plainly)...)
}

func competing(requests, n int) []part { return oneNode(devices(n), nil, single(requests, plainly)...) }

func nested(requests, n int) []part {
	return oneNode(devices(n), nil, single(requests, func(i int) []func(*resourceapi.ExactDeviceRequest) {
		return []func(*resourceapi.ExactDeviceRequest){where(fmt.Sprintf(`device.attributes[%q].id >= %d`, driver, max(0, n-2-i)))}
	})...)
}

// matchDistinct has groups of devices on so many slots: all in one group, and
// all on distinct slots.
func matchDistinct(groups, size, slots, wanted int) []part {
	list := devices(groups * size)
	for i := range list {
		tc.WithAttribute("root", fmt.Sprintf("r%02d", i/size))(&list[i])
		tc.WithAttribute("slot", fmt.Sprintf("s%02d", i%size%slots))(&list[i])
	}
	constraints := append(same(driver+"/root"), distinct(driver+"/slot")...)
	return oneNode(list, constraints, exact("gpu", int64(wanted)))
}

// boards are GPUs of so many units, in partitions of 1, 2 and 3, of which so
// many are wanted; so many units of the first GPU are missing.
func boards(n, units, missing int, wanted ...int) []part {
	var list []resourceapi.Device
	var sets []resourceapi.CounterSet
	for b := range n {
		set := fmt.Sprintf("board-%d", b)
		sets = append(sets, counterSet(set, units-missing))
		missing = 0
		for _, size := range []int{1, 2, 3} {
			for k := range units / size {
				list = append(list, device(fmt.Sprintf("gpu-%d-%dg-%d", b, size, k), withModel(fmt.Sprintf("%dg", size)), withCounter(set, "units", fmt.Sprint(size))))
			}
		}
	}
	var requests []resourceapi.DeviceRequest
	for k, count := range wanted {
		if count > 0 {
			requests = append(requests, exact(fmt.Sprintf("p%d", k+1), int64(count), ofModel(fmt.Sprintf("%dg", k+1))))
		}
	}
	return partitioned(list, sets, requests...)
}

func ofModel(model string) func(*resourceapi.ExactDeviceRequest) {
	return where(fmt.Sprintf(`device.attributes[%q].model == %q`, driver, model))
}

func counterSet(name string, units int) resourceapi.CounterSet {
	return resourceapi.CounterSet{Name: name, Counters: map[string]resourceapi.Counter{"units": {Value: *resource.NewQuantity(int64(units), resource.DecimalSI)}}}
}

// partitioned is a node with a pool of two slices: devices, counters.
func partitioned(list []resourceapi.Device, sets []resourceapi.CounterSet, requests ...resourceapi.DeviceRequest) []part {
	return []part{
		nodes("n1"), slice("n1", twoSlices, numbered(list)...),
		slice("n1", func(s *resourceapi.ResourceSlice) { twoSlices(s); s.Spec.SharedCounters = sets }),
		claim(waiting, requests...), waitingPod(waiting),
	}
}

// pairClaims are claims for two pairs each, all four on one root.
func pairClaims(groups, size, claims int) []part {
	return manyClaims(roots(groups, size), claims, func(int) ([]resourceapi.DeviceConstraint, []resourceapi.DeviceRequest) {
		return same(driver + "/root"), []resourceapi.DeviceRequest{exact("a", 2), exact("b", 2)}
	})
}

func prioritized(lists, n int) []part {
	var requests []resourceapi.DeviceRequest
	for i := range lists {
		requests = append(requests, firstOf(fmt.Sprintf("r%d", i), alternative("three", 3), alternative("two", 2), alternative("one", 1)))
	}
	return oneNode(devices(n), nil, requests...)
}

// prioritizedDistinct are lists of two or three devices, all on distinct roots.
func prioritizedDistinct(lists, values int) []part {
	var requests []resourceapi.DeviceRequest
	for i := range lists {
		requests = append(requests, firstOf(fmt.Sprintf("r%d", i), alternative("three", 3), alternative("two", 2)))
	}
	return oneNode(roots(values, 3), distinct(driver+"/root"), requests...)
}

func sharedDevices(n int, memory string) []resourceapi.Device {
	return devices(n, withMemory(memory), tc.Shareable)
}

func shares(n, requests int) []part {
	return append(oneNode(sharedDevices(n, "10"), nil, single(requests, func(int) []func(*resourceapi.ExactDeviceRequest) {
		return []func(*resourceapi.ExactDeviceRequest){wanting("memory", "3")}
	})...), gate("DRAConsumableCapacity", true))
}

func mixedShares(n, fives, fours, threes int) []part {
	wanted := strings.Repeat("5", fives) + strings.Repeat("4", fours) + strings.Repeat("3", threes)
	return append(oneNode(sharedDevices(n, "12"), nil, single(len(wanted), func(i int) []func(*resourceapi.ExactDeviceRequest) {
		return []func(*resourceapi.ExactDeviceRequest){wanting("memory", wanted[i:i+1])}
	})...), gate("DRAConsumableCapacity", true))
}

// compatible are GPUs that can be cut in two ways, not both at once: each kind
// is wanted whole on so many.
func compatible(n, ofA, ofB int) []part {
	var list []resourceapi.Device
	var sets []resourceapi.CounterSet
	for b := range n {
		set := fmt.Sprintf("board-%d", b)
		sets = append(sets, counterSet(set, 8))
		for _, kind := range []string{"a", "b"} {
			for k := range 2 {
				list = append(list, device(fmt.Sprintf("gpu-%d-%s-%d", b, kind, k), withModel(kind), withCounter(set, "units", "2", kind)))
			}
		}
	}
	return append(partitioned(list, sets, exact("a", int64(2*ofA), ofModel("a")), exact("b", int64(2*ofB), ofModel("b"))),
		gate("DRADeviceCompatibilityGroups", true))
}
