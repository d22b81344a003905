// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"path"
	"reflect"
	"testing"

	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestNodesThatAreNotThere gives verdicts for nodes that only slices or a preview
// name.
func TestNodesThatAreNotThere(t *testing.T) {
	devices := tc.Slice("b", tc.DriverA, "p2", tc.Device("d"), tc.Device("e")).OnNode(tc.Node2)
	class := tc.Class(tc.ClassA, tc.DriverA)
	for name, snap := range map[string]*snapshot.Snapshot{
		"made up": tc.Snapshot(tc.IncubatingGates(), devices, class),
		"preview": snapshot.WithPreview(tc.Snapshot(tc.IncubatingGates(), class, tc.Node(tc.Node1)), tc.Snapshot(devices)),
	} {
		a := newAllocator(t, snap)
		nodes, _ := a.Facts.Nodes.All()
		last := nodes[len(nodes)-1]
		if v := check(t, a, last, tc.Claim("c", tc.Request("r", tc.ClassA, 2))); v.Outcome != Fits || last.Name != tc.Node2 {
			t.Errorf("%s: got %s (%v) on %s", name, v.Outcome, v.Err, last.Name)
		}
	}
}

func TestExtendedResourcesAreAllocated(t *testing.T) {
	gpu := tc.Class(tc.ClassA, tc.DriverA)
	gpu.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
	a := newAllocator(t, tc.Snapshot(append(tc.IncubatingGates(), cluster.GateExtendedResource), gpu, tc.Slice("s", tc.DriverA, "pool", tc.Device("d1"), tc.Device("d2"))))
	for count, want := range map[string]Outcome{"2": Fits, "3": DoesNotFit} {
		c, err := a.Facts.Claims.ExtendedResourceClaim(tc.Pod("p", tc.Requesting("example.com/gpu="+count)), tc.Node(tc.Node1))
		if err != nil {
			t.Fatal(err)
		}
		if v := check(t, a, tc.Node(tc.Node1), tc.ClaimWrapper{ResourceClaim: c}); v.Outcome != want {
			t.Errorf("%s devices: got %s (%v), want %s", count, v.Outcome, v.Err, want)
		}
	}
}

// TestChannels holds the choice of pkg/cluster against upstream's, which is not part
// of its exported API; but each implementation is a package of its own, named like
// its channel.
func TestChannels(t *testing.T) {
	gates := []string{
		cluster.GateAdminAccess, cluster.GateCompatibilityGroups, cluster.GateConsumableCapacity, cluster.GateDerivedAttributes,
		cluster.GateBindingConditions, cluster.GateDeviceStatus, cluster.GateDeviceTaints, cluster.GateFractionalCapacity,
		cluster.GateListTypeAttributes, cluster.GateOptionalNodeOps, cluster.GatePartitionableDevices, cluster.GatePrioritizedList,
	}
	for set := range 1 << len(gates) {
		var on tc.Gates
		for i, gate := range gates {
			if set&(1<<i) != 0 {
				on = append(on, gate)
			}
		}
		facts := cluster.New(tc.Snapshot(on))
		upstream, err := structured.NewAllocator(t.Context(), featuresOf(facts.Gates), structured.AllocatedState{}, nil, nil, nil)
		if err != nil {
			t.Fatalf("%v: %v", on, err)
		}
		if want := path.Base(reflect.TypeOf(upstream).Elem().PkgPath()); facts.Gates.Channel() != want {
			t.Fatalf("%v: channel %s, upstream takes %s", on, facts.Gates.Channel(), want)
		}
	}
}
