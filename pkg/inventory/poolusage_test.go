// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// partOf takes memory of the counter set "card".
func partOf(memory string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{
			CounterSet: "card", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse(memory)}},
		}}
	}
}

// counted puts a counter set "card" with memory into a slice of its own.
func counted(devices *resourceapi.ResourceSlice, memory string) *resourceapi.ResourceSlice {
	counters := slice(*devices.Spec.NodeName)
	counters.Name = *devices.Spec.NodeName + "-counters"
	counters.Spec.SharedCounters = []resourceapi.CounterSet{{Name: "card", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse(memory)}}}}
	devices.Spec.Pool.ResourceSliceCount, counters.Spec.Pool.ResourceSliceCount = 2, 2
	return counters
}

func poolList(t *testing.T, v *Inventory) []api.Pool {
	t.Helper()
	pools, err := v.Pools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return pools
}

func TestPoolCountersAndPartitions(t *testing.T) {
	parts := slice(node1, device("half-0", partOf("40Gi")), device("half-1", partOf("40Gi")), device("quarter-0", partOf("20Gi")), device("quarter-1", partOf("20Gi")), device("quarter-2", partOf("20Gi")))
	v := inventoryWith(t, gate("DRAPartitionableDevices"), node(node1), parts, counted(parts, "80Gi"), claim("c").has("half-0"))
	pool := poolList(t, v)[0]
	if diff := cmp.Diff([]api.Counter{{CounterSet: "card", Name: "memory", Total: "80Gi", Consumed: "40Gi", Available: "40Gi", ConsumedPercent: 50, UsedBy: []string{"half-0"}}}, pool.Counters); diff != "" {
		t.Errorf("counters, -want +got:\n%s", diff)
	}
	want := []api.Partition{
		{Type: "40Gi memory", Devices: 2, Allocated: 1, MoreFit: ptr.To(1)},
		{Type: "20Gi memory", Devices: 3, MoreFit: ptr.To(2)},
	}
	if diff := cmp.Diff(want, pool.Partitions); diff != "" {
		t.Errorf("partitions, -want +got:\n%s", diff)
	}
}

func TestPoolCapacityAndHealth(t *testing.T) {
	v := inventoryWith(t, gate("DRAConsumableCapacity"), node(node1),
		slice(node1, device("nic-0", tc.Shareable, tc.WithCapacity("bandwidth", "100G")), device("nic-1", tc.Shareable, tc.WithCapacity("bandwidth", "100G")), device("gpu-0", tc.WithCapacity("memory", "80Gi"))),
		claim("c").has("nic-0", share("s1", "bandwidth", "40G")), claim("d").has("nic-0", share("s2", "bandwidth", "10G")),
		claim("e").has("gpu-0").reservedFor("p", "uid-p"),
		pod("p", "e").reports("e", "gpu-0", corev1.ResourceHealthStatusUnhealthy, "it fell off the bus"),
	)
	pool := poolList(t, v)[0]
	if diff := cmp.Diff([]api.Capacity{{Name: driver + "/bandwidth", Total: "200G", Consumed: "50G", Available: "150G", ConsumedPercent: 25}}, pool.Capacity); diff != "" {
		t.Errorf("capacity of what can be shared, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(api.DeviceCounts{Total: 3, Free: 1, Shared: 1, Allocated: 1, Unhealthy: 1}, pool.Devices); diff != "" {
		t.Errorf("devices, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]api.UnhealthyDevice{{Name: "gpu-0", Message: "it fell off the bus"}}, pool.Unhealthy); diff != "" {
		t.Errorf("unhealthy devices, -want +got:\n%s", diff)
	}
}

func TestPoolStates(t *testing.T) {
	incomplete := slice("b", devices("gpu-0")...)
	incomplete.Spec.Pool.ResourceSliceCount = 3
	v := inventoryWith(t, node("a"), node("b"), node("c"), slice("a", devices("gpu-0")...), incomplete, slice("c", devices("gpu-0", "gpu-0")...), slice("d", devices("gpu-0")...))
	got := map[string]api.PoolState{}
	for _, pool := range poolList(t, v) {
		got[pool.Name] = pool.State
	}
	if diff := cmp.Diff(map[string]api.PoolState{"a": api.PoolStateUsable, "b": api.PoolStateIncomplete, "c": api.PoolStateInvalid, "d": api.PoolStateNodeGone}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPoolCapacityOfExclusiveHolder counts all of a device that can be shared
// and that a claim has for itself.
func TestPoolCapacityOfExclusiveHolder(t *testing.T) {
	nic := func(name string) resourceapi.Device {
		return device(name, tc.Shareable, tc.WithCapacity("bandwidth", "10G"))
	}
	v := inventoryWith(t, gate("DRAConsumableCapacity"), node(node1), slice(node1, nic("nic-0"), nic("nic-1")),
		claim("c").has("nic-0"), claim("d").has("nic-1", share("s", "bandwidth", "4G")))
	want := []api.Capacity{{Name: driver + "/bandwidth", Total: "20G", Consumed: "14G", Available: "6G", ConsumedPercent: 70}}
	if diff := cmp.Diff(want, poolList(t, v)[0].Capacity); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
