// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

func poolList(t *testing.T, v *Inventory) []api.Pool {
	t.Helper()
	pools, err := v.Pools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return pools
}

func TestPoolCountersAndPartitions(t *testing.T) {
	parts := tc.Pool(tc.Node1, tc.Device("half-0").Consuming("card", "memory=40Gi"), tc.Device("half-1").Consuming("card", "memory=40Gi"), tc.Device("quarter-0").Consuming("card", "memory=20Gi"), tc.Device("quarter-1").Consuming("card", "memory=20Gi"), tc.Device("quarter-2").Consuming("card", "memory=20Gi")).Of(2)
	v := inventoryWith(t, tc.Gate("DRAPartitionableDevices", true), tc.Node(tc.Node1), parts, tc.Pool(tc.Node1).WithCounters("card", "memory=80Gi").Of(2), tc.Claim("c", tc.GPUs("gpu", 1)).Holding("half-0"))
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
	v := inventoryWith(t, tc.Gate("DRAConsumableCapacity", true), tc.Node(tc.Node1),
		tc.Pool(tc.Node1, tc.Device("nic-0", "bandwidth:=100G").Shareable(), tc.Device("nic-1", "bandwidth:=100G").Shareable(), tc.Device("gpu-0", "memory:=80Gi")),
		tc.Claim("c", tc.GPUs("gpu", 1)).Holding("nic-0", tc.AsShare("s1", "bandwidth", "40G")), tc.Claim("d", tc.GPUs("gpu", 1)).Holding("nic-0", tc.AsShare("s2", "bandwidth", "10G")),
		tc.Claim("e", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-p"),
		tc.Pod("p", tc.Using("e"), tc.RunningOn(tc.Node1), tc.ReportedHealth("e", "gpu-0", corev1.ResourceHealthStatusUnhealthy, "it fell off the bus")),
	)
	pool := poolList(t, v)[0]
	if diff := cmp.Diff([]api.Capacity{{Name: tc.Driver + "/bandwidth", Total: "200G", Consumed: "50G", Available: "150G", ConsumedPercent: 25}}, pool.Capacity); diff != "" {
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
	incomplete := tc.Pool("b", tc.NamedDevices("gpu-0")...)
	incomplete.Spec.Pool.ResourceSliceCount = 3
	v := inventoryWith(t, tc.Node("a"), tc.Node("b"), tc.Node("c"), tc.Pool("a", tc.NamedDevices("gpu-0")...), incomplete, tc.Pool("c", tc.NamedDevices("gpu-0", "gpu-0")...), tc.Pool("d", tc.NamedDevices("gpu-0")...))
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
	nic := func(name string) tc.DeviceWrapper {
		return tc.Device(name, "bandwidth:=10G").Shareable()
	}
	v := inventoryWith(t, tc.Gate("DRAConsumableCapacity", true), tc.Node(tc.Node1), tc.Pool(tc.Node1, nic("nic-0"), nic("nic-1")),
		tc.Claim("c", tc.GPUs("gpu", 1)).Holding("nic-0"), tc.Claim("d", tc.GPUs("gpu", 1)).Holding("nic-1", tc.AsShare("s", "bandwidth", "4G")))
	want := []api.Capacity{{Name: tc.Driver + "/bandwidth", Total: "20G", Consumed: "14G", Available: "6G", ConsumedPercent: 70}}
	if diff := cmp.Diff(want, poolList(t, v)[0].Capacity); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
