// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
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
	counters := slice("s-counters", driverA, "pool").of(2).withCounters("gpu-0", "memory=80Gi")
	partition := device("d1").consuming("gpu-0", "memory=40Gi")
	tests := map[string]struct {
		objects []any
		node    *corev1.Node
		want    string
		err     string
	}{
		"own slices only": {
			objects: []any{incubatingGates(), slice("s1", driverA, "p1", device("d1")), slice("s2", driverA, "p2", device("d1")).onNode(node2)},
			want:    "a.example.com/p1@1 d1",
		},
		"by driver and name, binding conditions last, slices by name": {
			objects: []any{
				incubatingGates(), slice("s1", driverB, "p", device("d1")), slice("s2", driverA, "q", device("d2")),
				slice("s4", driverA, "p", device("d4")).of(2), slice("s3", driverA, "p", device("d3").bindingOn("x")).of(2),
			},
			want: "a.example.com/q@1 d2\nb.example.com/p@1 d1\na.example.com/p@1 d3 d4",
		},
		"shared slices": {
			objects: []any{
				incubatingGates(), slice("s1", driverA, "p1", device("d1")).onAllNodes(), slice("s2", driverA, "p2", device("d2")).onNodesWith("zone", "a"),
				slice("s3", driverA, "p3", device("d3")).onNodesWith("zone", "b"),
			},
			node: node(node1, "zone=a"),
			want: "a.example.com/p1@1 d1\na.example.com/p2@1 d2",
		},
		"nodes selected per device": {
			objects: []any{incubatingGates(), slice("s1", driverA, "p", device("d1").onNode(node2), device("d2").onNode(node1)).perDevice()},
			want:    "a.example.com/p@1 d2",
		},
		"nodes selected per device while that is off": {
			objects: []any{slice("s1", driverA, "p", device("d1").onNode(node1)).perDevice()},
			want:    "a.example.com/p@0 all ignored ignores s1 (selects nodes per device, DRAPartitionableDevices)",
		},
		"selector that cannot be parsed": {
			objects: []any{slice("s1", driverA, "p", device("d1")).onNodesWith("not a label", "x")},
			err:     "select nodes for ResourceSlice s1",
		},
		"selector of a device that cannot be parsed": {
			objects: []any{incubatingGates(), slice("s1", driverA, "p", device("d1").change(func(d *resourceapi.Device) {
				d.NodeSelector = nodeSelector("not a label", "x")
			})).perDevice()},
			err: "select nodes for device d1 of ResourceSlice s1",
		},
		"no node selection": {
			objects: []any{slice("s1", driverA, "p", device("d1")).change(func(spec *resourceapi.ResourceSliceSpec) { spec.NodeName = nil })},
			want:    "a.example.com/p@0 all ignored ignores s1 (selects nodes in no known way, )",
		},
		"slice missing": {
			objects: []any{incubatingGates(), slice("s1", driverA, "p", device("d1")).of(2)},
			want:    "a.example.com/p@1 incomplete",
		},
		"slice too many": {
			objects: []any{incubatingGates(), slice("s1", driverA, "p", device("d1")), slice("s2", driverA, "p", device("d2"))},
			want:    "a.example.com/p@1 incomplete",
		},
		"slice too many, but not for this node": {
			objects: []any{incubatingGates(), slice("s1", driverA, "p", device("d1")), slice("s2", driverA, "p", device("d2")).onNode(node2)},
			want:    "a.example.com/p@1 d1",
		},
		"complete with slices for other nodes": {
			objects: []any{incubatingGates(), slice("s1", driverA, "p", device("d1")).of(2), slice("s2", driverA, "p", device("d2")).of(2).onNode(node2)},
			want:    "a.example.com/p@1 d1",
		},
		"newer generation": {
			objects: []any{incubatingGates(), slice("s1", driverA, "p", device("d1")), slice("s2", driverA, "p", device("d2")).generation(2)},
			want:    "a.example.com/p@2 d2",
		},
		"newer generation for other nodes only": {
			objects: []any{incubatingGates(), slice("s1", driverA, "p", device("d1")).of(2), slice("s2", driverA, "p", device("d2")).generation(2).onNode(node2)},
			want:    "a.example.com/p@1 outdated",
		},
		"newer generation for other nodes only, the old one complete": {
			objects: []any{incubatingGates(), slice("s1", driverA, "p", device("d1")), slice("s2", driverA, "p", device("d2")).generation(2).onNode(node2)},
			want:    "a.example.com/p@1 d1",
		},
		"device name twice": {
			objects: []any{incubatingGates(), slice("s1", driverA, "p", device("d1")).of(2), slice("s2", driverA, "p", device("d1")).of(2)},
			want:    "a.example.com/p@1 invalid: there is more than one device with the name d1",
		},
		"device name twice, on different nodes": {
			objects: []any{incubatingGates(), slice("s1", driverA, "p", device("d1")).of(2), slice("s2", driverA, "p", device("d1")).of(2).onNode(node2)},
			want:    "a.example.com/p@1 d1",
		},
		"counters": {
			objects: []any{incubatingGates(), counters, slice("s-devices", driverA, "pool", partition).of(2)},
			want:    "a.example.com/pool@1 d1",
		},
		"counters in a slice for another node": {
			objects: []any{incubatingGates(), counters.onNode(node2), slice("s-devices", driverA, "pool", partition).of(2)},
			want:    "a.example.com/pool@1 d1",
		},
		"counters while they are off": {
			objects: []any{counters, slice("s-devices", driverA, "pool", device("d1")).of(2)},
			want:    "a.example.com/pool@1 ignores s-counters (has shared counters, DRAPartitionableDevices) d1",
		},
		"counter set missing": {
			objects: []any{incubatingGates(), slice("s1", driverA, "p", partition)},
			want:    "a.example.com/p@1 invalid: device d1 consumes counters of the counter set gpu-0, which does not exist",
		},
		"counter set missing for a device on another node": {
			objects: []any{incubatingGates(), slice("s1", driverA, "p", device("d0")).of(2), slice("s2", driverA, "p", partition).of(2).onNode(node2)},
			want:    "a.example.com/p@1 invalid: device d1 consumes counters of the counter set gpu-0, which does not exist",
		},
		"counter missing": {
			objects: []any{incubatingGates(), counters, slice("s-devices", driverA, "pool", device("d1").consuming("gpu-0", "cores=1")).of(2)},
			want:    "a.example.com/pool@1 invalid: device d1 consumes the counter cores of the counter set gpu-0, which does not exist",
		},
		"counter set twice": {
			objects: []any{incubatingGates(), counters, slice("s2", driverA, "pool").of(2).withCounters("gpu-0", "memory=1")},
			want:    "a.example.com/pool@1 invalid: there is more than one counter set with the name gpu-0",
		},
		"compatibility groups while they are off": {
			objects: []any{incubatingGates(), counters.of(3), slice("s1", driverA, "pool", partition).of(3), slice("s2", driverA, "pool", partition.inGroups("x")).of(3)},
			want:    "a.example.com/pool@1 incomplete ignores s2 (has devices with compatibility groups, DRADeviceCompatibilityGroups)",
		},
		"incomplete pool with counter sets on another node": {
			objects: []any{incubatingGates(), counters.onNode(node2)},
			want:    "",
		},
		"incomplete pool with counter sets on another node, stable channel": {
			objects: []any{stableGates(), counters.onNode(node2)},
			want:    "a.example.com/pool@1 incomplete",
		},
		"invalid pool with counter sets on another node, stable channel": {
			objects: []any{
				stableGates(), counters.onNode(node2).of(1).withCounters("gpu-0", "memory=1"),
				slice("s1", driverA, "ok").onNode(node2).withCounters("gpu-0", "memory=1"),
			},
			want: "a.example.com/pool@1 invalid: there is more than one counter set with the name gpu-0",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := tt.node
			if n == nil {
				n = node(node1)
			}
			pools, err := newAllocator(t, cluster(tt.objects...)).PoolsFor(n)
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
	a := newAllocator(t, cluster(incubatingGates(),
		slice("binding", driverA, "p1", device("d1").bindingOn("ready")),
		slice("new", driverA, "p2", device("d1"), device("d2")).generation(3).of(2),
		slice("old", driverA, "p2", device("d0")),
		slice("twice-1", driverA, "p3", device("d1")).of(2), slice("twice-2", driverA, "p3", device("d1")).of(2).onAllNodes(),
		slice("apart-1", driverA, "p4", device("d1")).of(2), slice("apart-2", driverA, "p4", device("d1")).of(2).onNode(node2),
		slice("zone-a", driverA, "p5", device("d1")).of(2).onNodesWith("zone", "a"), slice("zone-b", driverA, "p5", device("d1")).of(2).onNodesWith("zone", "b"),
		slice("one", driverA, "p6", device("d1"), device("d1")).onNodesWith("zone", "a"),
	))
	var got []string
	for _, p := range a.Pools() {
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
	a := newAllocator(t, cluster(incubatingGates(),
		slice("b", driverB, "p", device("d1")), slice("a", driverA, "p", device("d1").bindingOn("ready")),
		slice("c", driverA, "q", device("d2"), device("d1")).generation(2), slice("d", driverA, "q", device("d9")),
	))
	var got []string
	for _, d := range a.Devices() {
		got = append(got, d.ID.String()+" in "+d.Slice.Name)
	}
	want := []string{"a.example.com/q/d2 in c", "a.example.com/q/d1 in c", "b.example.com/p/d1 in b", "a.example.com/p/d1 in a"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d := a.Device(DeviceID{driverA, "q", "d1"}); d == nil || d.Name != "d1" || d.Pool.Name != "q" {
		t.Errorf("Device: got %+v", d)
	}
	if d := a.Device(DeviceID{driverA, "q", "d9"}); d != nil {
		t.Errorf("device of an old generation: got %+v", d)
	}
}
