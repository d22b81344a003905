// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
)

// describePools sums node pools up, one a line.
func describePools(pools []*NodePool) string {
	var lines []string
	for _, p := range pools {
		line := fmt.Sprintf("%s/%s@%d", p.Pool.Driver, p.Pool.Name, p.Generation)
		for _, state := range []struct {
			name string
			set  bool
		}{{"all ignored", p.AllIgnored}, {"outdated", p.Outdated}, {"incomplete", p.Incomplete}} {
			if state.set {
				line += " " + state.name
			}
		}
		if p.Invalid != "" {
			line += " invalid: " + p.Invalid
		}
		for _, ignored := range p.Ignored {
			line += fmt.Sprintf(" ignores %s (%s, %s)", ignored.Slice.Name, ignored.Reason, ignored.Gate)
		}
		for _, d := range p.Devices {
			line += " " + d.Name
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestPoolsFor(t *testing.T) {
	counters := tc.Slice("s-counters", tc.DriverA, "pool").Of(2).WithCounters("gpu-0", "memory=80Gi")
	partition := tc.Device("d1").Consuming("gpu-0", "memory=40Gi")
	tests := map[string]struct {
		objects []any
		node    *corev1.Node
		want    string
		err     string
	}{
		"own slices only": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p1", tc.Device("d1")), tc.Slice("s2", tc.DriverA, "p2", tc.Device("d1")).OnNode(tc.Node2)},
			want:    "a.example.com/p1@1 d1",
		},
		"by driver and name, binding conditions last, slices by name": {
			objects: []any{
				tc.IncubatingGates(), tc.Slice("s1", tc.DriverB, "p", tc.Device("d1")), tc.Slice("s2", tc.DriverA, "q", tc.Device("d2")),
				tc.Slice("s4", tc.DriverA, "p", tc.Device("d4")).Of(2), tc.Slice("s3", tc.DriverA, "p", tc.Device("d3").BindingOn("x")).Of(2),
			},
			want: "a.example.com/q@1 d2\nb.example.com/p@1 d1\na.example.com/p@1 d3 d4",
		},
		"shared slices": {
			objects: []any{
				tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p1", tc.Device("d1")).OnAllNodes(), tc.Slice("s2", tc.DriverA, "p2", tc.Device("d2")).OnNodesWith("zone", "a"),
				tc.Slice("s3", tc.DriverA, "p3", tc.Device("d3")).OnNodesWith("zone", "b"),
			},
			node: tc.Node(tc.Node1, "zone=a"),
			want: "a.example.com/p1@1 d1\na.example.com/p2@1 d2",
		},
		"nodes selected per device": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p", tc.Device("d1").OnNode(tc.Node2), tc.Device("d2").OnNode(tc.Node1)).PerDevice()},
			want:    "a.example.com/p@1 d2",
		},
		"nodes selected per device while that is off": {
			objects: []any{tc.Slice("s1", tc.DriverA, "p", tc.Device("d1").OnNode(tc.Node1)).PerDevice()},
			want:    "a.example.com/p@0 all ignored ignores s1 (selects nodes per device, DRAPartitionableDevices)",
		},
		"selector that cannot be parsed": {
			objects: []any{tc.Slice("s1", tc.DriverA, "p", tc.Device("d1")).OnNodesWith("not a label", "x")},
			err:     "select nodes for ResourceSlice s1",
		},
		"selector of a device that cannot be parsed": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p", tc.Device("d1").Change(func(d *resourceapi.Device) {
				d.NodeSelector = tc.NodeSelector("not a label", "x")
			})).PerDevice()},
			err: "select nodes for device d1 of ResourceSlice s1",
		},
		"no node selection": {
			objects: []any{tc.Slice("s1", tc.DriverA, "p", tc.Device("d1")).Change(func(s *resourceapi.ResourceSlice) { s.Spec.NodeName = nil })},
			want:    "a.example.com/p@0 all ignored ignores s1 (selects nodes in no known way, )",
		},
		"slice missing": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p", tc.Device("d1")).Of(2)},
			want:    "a.example.com/p@1 incomplete",
		},
		"slice too many": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p", tc.Device("d1")), tc.Slice("s2", tc.DriverA, "p", tc.Device("d2"))},
			want:    "a.example.com/p@1 incomplete",
		},
		"slice too many, but not for this node": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p", tc.Device("d1")), tc.Slice("s2", tc.DriverA, "p", tc.Device("d2")).OnNode(tc.Node2)},
			want:    "a.example.com/p@1 d1",
		},
		"complete with slices for other nodes": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p", tc.Device("d1")).Of(2), tc.Slice("s2", tc.DriverA, "p", tc.Device("d2")).Of(2).OnNode(tc.Node2)},
			want:    "a.example.com/p@1 d1",
		},
		"newer generation": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p", tc.Device("d1")), tc.Slice("s2", tc.DriverA, "p", tc.Device("d2")).Generation(2)},
			want:    "a.example.com/p@2 d2",
		},
		"newer generation for other nodes only": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p", tc.Device("d1")).Of(2), tc.Slice("s2", tc.DriverA, "p", tc.Device("d2")).Generation(2).OnNode(tc.Node2)},
			want:    "a.example.com/p@1 outdated",
		},
		"newer generation for other nodes only, the old one complete": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p", tc.Device("d1")), tc.Slice("s2", tc.DriverA, "p", tc.Device("d2")).Generation(2).OnNode(tc.Node2)},
			want:    "a.example.com/p@1 d1",
		},
		"device name twice": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p", tc.Device("d1")).Of(2), tc.Slice("s2", tc.DriverA, "p", tc.Device("d1")).Of(2)},
			want:    "a.example.com/p@1 invalid: there is more than one device with the name d1",
		},
		"device name twice, on different nodes": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p", tc.Device("d1")).Of(2), tc.Slice("s2", tc.DriverA, "p", tc.Device("d1")).Of(2).OnNode(tc.Node2)},
			want:    "a.example.com/p@1 d1",
		},
		"counters": {
			objects: []any{tc.IncubatingGates(), counters, tc.Slice("s-devices", tc.DriverA, "pool", partition).Of(2)},
			want:    "a.example.com/pool@1 d1",
		},
		"counters in a slice for another node": {
			objects: []any{tc.IncubatingGates(), counters.OnNode(tc.Node2), tc.Slice("s-devices", tc.DriverA, "pool", partition).Of(2)},
			want:    "a.example.com/pool@1 d1",
		},
		"counters while they are off": {
			objects: []any{counters, tc.Slice("s-devices", tc.DriverA, "pool", tc.Device("d1")).Of(2)},
			want:    "a.example.com/pool@1 ignores s-counters (has shared counters, DRAPartitionableDevices) d1",
		},
		"counter set missing": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p", partition)},
			want:    "a.example.com/p@1 invalid: device d1 consumes counters of the counter set gpu-0, which does not exist",
		},
		"counter set missing for a device on another node": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s1", tc.DriverA, "p", tc.Device("d0")).Of(2), tc.Slice("s2", tc.DriverA, "p", partition).Of(2).OnNode(tc.Node2)},
			want:    "a.example.com/p@1 invalid: device d1 consumes counters of the counter set gpu-0, which does not exist",
		},
		"counter missing": {
			objects: []any{tc.IncubatingGates(), counters, tc.Slice("s-devices", tc.DriverA, "pool", tc.Device("d1").Consuming("gpu-0", "cores=1")).Of(2)},
			want:    "a.example.com/pool@1 invalid: device d1 consumes the counter cores of the counter set gpu-0, which does not exist",
		},
		"counter set twice": {
			objects: []any{tc.IncubatingGates(), counters, tc.Slice("s2", tc.DriverA, "pool").Of(2).WithCounters("gpu-0", "memory=1")},
			want:    "a.example.com/pool@1 invalid: there is more than one counter set with the name gpu-0",
		},
		"compatibility groups while they are off": {
			objects: []any{tc.IncubatingGates(), counters.Of(3), tc.Slice("s1", tc.DriverA, "pool", partition).Of(3), tc.Slice("s2", tc.DriverA, "pool", partition.InGroups("x")).Of(3)},
			want:    "a.example.com/pool@1 incomplete ignores s2 (has devices with compatibility groups, DRADeviceCompatibilityGroups)",
		},
		"incomplete pool with counter sets on another node": {
			objects: []any{tc.IncubatingGates(), counters.OnNode(tc.Node2)},
			want:    "",
		},
		"incomplete pool with counter sets on another node, stable channel": {
			objects: []any{tc.StableGates(), counters.OnNode(tc.Node2)},
			want:    "a.example.com/pool@1 incomplete",
		},
		"invalid pool with counter sets on another node, stable channel": {
			objects: []any{
				tc.StableGates(), counters.OnNode(tc.Node2).Of(1).WithCounters("gpu-0", "memory=1"),
				tc.Slice("s1", tc.DriverA, "ok").OnNode(tc.Node2).WithCounters("gpu-0", "memory=1"),
			},
			want: "a.example.com/pool@1 invalid: there is more than one counter set with the name gpu-0",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := tt.node
			if n == nil {
				n = tc.Node(tc.Node1)
			}
			pools, err := newCluster(t, tc.Snapshot(tt.objects...)).Pools.For(n)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("got error %v, want one with %q", err, tt.err)
			}
			if diff := gocmp.Diff(tt.want, describePools(pools)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPools(t *testing.T) {
	a := newCluster(t, tc.Snapshot(tc.IncubatingGates(),
		tc.Slice("binding", tc.DriverA, "p1", tc.Device("d1").BindingOn("ready")),
		tc.Slice("new", tc.DriverA, "p2", tc.Device("d1"), tc.Device("d2")).Generation(3).Of(2),
		tc.Slice("old", tc.DriverA, "p2", tc.Device("d0")),
		tc.Slice("twice-1", tc.DriverA, "p3", tc.Device("d1")).Of(2), tc.Slice("twice-2", tc.DriverA, "p3", tc.Device("d1")).Of(2).OnAllNodes(),
		tc.Slice("apart-1", tc.DriverA, "p4", tc.Device("d1")).Of(2), tc.Slice("apart-2", tc.DriverA, "p4", tc.Device("d1")).Of(2).OnNode(tc.Node2),
		tc.Slice("zone-a", tc.DriverA, "p5", tc.Device("d1")).Of(2).OnNodesWith("zone", "a"), tc.Slice("zone-b", tc.DriverA, "p5", tc.Device("d1")).Of(2).OnNodesWith("zone", "b"),
		tc.Slice("one", tc.DriverA, "p6", tc.Device("d1"), tc.Device("d1")).OnNodesWith("zone", "a"),
	))
	var got []string
	for _, p := range a.Pools.All() {
		line := fmt.Sprintf("%s@%d: %d of %d", p.Name, p.Generation, len(p.Slices), p.Expected)
		if len(p.Obsolete) > 0 {
			line += fmt.Sprintf(", %d obsolete", len(p.Obsolete))
		}
		if p.Incomplete {
			line += ", incomplete"
		}
		if p.Invalid != "" {
			line += ", " + p.Invalid
		}
		got = append(got, line)
	}
	want := []string{
		"p2@3: 1 of 2, 1 obsolete, incomplete",
		"p3@1: 2 of 2, there is more than one device with the name d1",
		"p4@1: 2 of 2",
		"p5@1: 2 of 2",
		"p6@1: 1 of 1, there is more than one device with the name d1",
		"p1@1: 1 of 1",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDevices(t *testing.T) {
	a := newCluster(t, tc.Snapshot(tc.IncubatingGates(),
		tc.Slice("b", tc.DriverB, "p", tc.Device("d1")), tc.Slice("a", tc.DriverA, "p", tc.Device("d1").BindingOn("ready")),
		tc.Slice("c", tc.DriverA, "q", tc.Device("d2"), tc.Device("d1")).Generation(2), tc.Slice("d", tc.DriverA, "q", tc.Device("d9")),
	))
	var got []string
	for _, d := range a.Pools.Devices() {
		got = append(got, d.ID.String()+" in "+d.Slice.Name)
	}
	want := []string{"a.example.com/q/d2 in c", "a.example.com/q/d1 in c", "b.example.com/p/d1 in b", "a.example.com/p/d1 in a"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d := a.Pools.Device(DeviceID{tc.DriverA, "q", "d1"}); d == nil || d.Name != "d1" || d.Pool.Name != "q" {
		t.Errorf("Device: got %+v", d)
	}
	if d := a.Pools.Device(DeviceID{tc.DriverA, "q", "d9"}); d != nil {
		t.Errorf("device of an old generation: got %+v", d)
	}
}
