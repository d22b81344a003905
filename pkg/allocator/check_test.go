// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestCheck(t *testing.T) {
	attribute := func(name string) string { return fmt.Sprintf("device.attributes[%q].%s", tc.DriverA, name) }
	counters := tc.Slice("s-counters", tc.DriverA, "pool").Of(2).WithCounters("gpu-0", "memory=80Gi")
	listed := func(name string, values ...string) tc.DeviceWrapper {
		return tc.Device(name).Change(func(d *resourceapi.Device) {
			d.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"numa": {StringValues: values}}
		})
	}
	skipping := tc.Slice("s", tc.DriverA, "pool", tc.Device("d")).Change(func(s *resourceapi.ResourceSlice) {
		s.Spec.SkipNodeOperations = []resourceapi.SkipNodeOperation{"*"}
	})
	capable := tc.Node(tc.Node1)
	capable.Status.DeclaredFeatures = []string{cluster.GateOptionalNodeOps}
	derived := func(expression string) tc.ClaimWrapper {
		return tc.Claim("c", tc.Request("r", tc.ClassA, 2).Change(func(r *resourceapi.ExactDeviceRequest) {
			r.DerivedAttributes = []resourceapi.DeviceDerivedAttribute{{Name: "example.com/side", Expression: expression}}
		})).Matching("example.com/side")
	}

	tests := map[string]struct {
		objects []any
		node    *corev1.Node
		claims  []tc.ClaimWrapper
		want    Outcome
		picked  string
		err     string
	}{
		"one device": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1"), tc.Device("d2"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"no claims": {want: Fits},
		"too few devices": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 2))},
			want:    DoesNotFit,
		},
		"devices of another node": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1")).OnNode(tc.Node2)},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    DoesNotFit,
		},
		"two claims in the order of the pod": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1"), tc.Device("d2"))},
			claims:  []tc.ClaimWrapper{tc.Claim("z", tc.Request("r", tc.ClassA, 1)), tc.Claim("y", tc.Request("r", tc.ClassA, 1))},
			want:    Fits, picked: "a.example.com/pool/d1 | a.example.com/pool/d2",
		},
		"selector": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1", "model=a"), tc.Device("d2", "model=b"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1, attribute("model")+` == "b"`))},
			want:    Fits, picked: "a.example.com/pool/d2",
		},
		"selector fails on a device": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1, attribute("model")+` == "b"`))},
			want:    Failed, err: "no such key: model",
		},
		"unknown class": {
			objects: []any{tc.StableGates()},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", "other", 1))},
			want:    Failed, err: `"other" not found`,
		},
		"more devices than a claim may have": {
			objects: []any{tc.StableGates()},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 33))},
			want:    Failed, err: "exceeds the claim limit of 32",
		},
		"device in use": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1")), tc.Claim("other").Holding("a.example.com/pool/d1")},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    DoesNotFit,
		},
		"device in use by an admin": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1")), tc.Claim("other").Holding("a.example.com/pool/d1", tc.ForAdmin)},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"admin access to a device in use": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1")), tc.Claim("other").Holding("a.example.com/pool/d1")},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1).WithAdminAccess())},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"admin access while it is off": {
			objects: []any{tc.Slice("s", tc.DriverA, "pool", tc.Device("d1"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1).WithAdminAccess())},
			want:    Failed, err: "admin access is requested, but the feature is disabled",
		},
		"all devices": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1"), tc.Device("d2"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 0).All())},
			want:    Fits, picked: "a.example.com/pool/d1 a.example.com/pool/d2",
		},
		"all devices, but one is in use": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1"), tc.Device("d2")), tc.Claim("other").Holding("a.example.com/pool/d2")},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 0).All())},
			want:    DoesNotFit,
		},
		"all devices of an incomplete pool": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1")).Of(2)},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 0).All())},
			want:    Failed, err: "a.example.com/pool is currently being updated",
		},
		"one device of an incomplete pool": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1")).Of(2)},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    DoesNotFit,
		},
		"one device of an invalid pool": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1"), tc.Device("d1"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    NodeError, err: "invalid resource pools",
		},
		"one device beside an invalid pool": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1"), tc.Device("d1")), tc.Slice("t", tc.DriverA, "other", tc.Device("d1"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    Fits, picked: "a.example.com/other/d1",
		},
		"node selector that cannot be parsed": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1")).OnNodesWith("not a label", "x")},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    Failed, err: "failed to parse node selector",
		},
		"same attribute": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1", "root=x"), tc.Device("d2", "root=y"), tc.Device("d3", "root=y"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 2)).Matching("a.example.com/root")},
			want:    Fits, picked: "a.example.com/pool/d2 a.example.com/pool/d3",
		},
		"never the same attribute": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1", "root=x"), tc.Device("d2", "root=y"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 2)).Matching("a.example.com/root")},
			want:    DoesNotFit,
		},
		"distinct attribute": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1", "root=x"), tc.Device("d2", "root=x"), tc.Device("d3", "root=y"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 2)).Distinct("a.example.com/root")},
			want:    Fits, picked: "a.example.com/pool/d1 a.example.com/pool/d3",
		},
		"no distinct attribute": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1", "root=x"), tc.Device("d2", "root=x"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 2)).Distinct("a.example.com/root")},
			want:    DoesNotFit,
		},
		"second alternative": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.FirstAvailable("r", tc.Request("two", tc.ClassA, 2), tc.Request("one", tc.ClassA, 1)))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"no alternative": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.FirstAvailable("r", tc.Request("three", tc.ClassA, 3), tc.Request("two", tc.ClassA, 2)))},
			want:    DoesNotFit,
		},
		"alternatives while they are off": {
			objects: []any{tc.Slice("s", tc.DriverA, "pool", tc.Device("d1"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.FirstAvailable("r", tc.Request("one", tc.ClassA, 1)))},
			want:    Failed, err: "DRAPrioritizedList feature is disabled",
		},
		"taint": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1").Tainted("broken", resourceapi.DeviceTaintEffectNoSchedule))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    DoesNotFit,
		},
		"tolerated taint": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1").Tainted("broken", resourceapi.DeviceTaintEffectNoExecute))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1).Tolerating("broken"))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"taint without effect": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1").Tainted("broken", resourceapi.DeviceTaintEffectNone))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"taints while they are off": {
			objects: []any{tc.Slice("s", tc.DriverA, "pool", tc.Device("d1").Tainted("broken", resourceapi.DeviceTaintEffectNoSchedule))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"taint rule": {
			objects: []any{append(tc.StableGates(), cluster.GateDeviceTaintRules), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1")), tc.TaintRule("rule", tc.DriverA, "", "")},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    DoesNotFit,
		},
		"taint rules while they are off": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1")), tc.TaintRule("rule", tc.DriverA, "", "")},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"counters": {
			objects: []any{tc.StableGates(), counters, tc.Slice("s-devices", tc.DriverA, "pool",
				tc.Device("d1").Consuming("gpu-0", "memory=40Gi"), tc.Device("d2").Consuming("gpu-0", "memory=40Gi")).Of(2)},
			claims: []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 2))},
			want:   Fits, picked: "a.example.com/pool/d1 a.example.com/pool/d2",
		},
		"counters exhausted": {
			objects: []any{
				tc.StableGates(), counters, tc.Slice("s-devices", tc.DriverA, "pool",
					tc.Device("d1").Consuming("gpu-0", "memory=40Gi"), tc.Device("d2").Consuming("gpu-0", "memory=80Gi")).Of(2),
				tc.Claim("other").Holding("a.example.com/pool/d1"),
			},
			claims: []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:   DoesNotFit,
		},
		"counters taken by a device with shares": {
			objects: []any{
				tc.IncubatingGates(), counters, tc.Slice("s-devices", tc.DriverA, "pool",
					tc.Device("d1", "size=half").Consuming("gpu-0", "memory=40Gi"), tc.Device("d2", "size=full").Consuming("gpu-0", "memory=80Gi").Shareable()).Of(2),
				tc.Claim("other").Holding("a.example.com/pool/d2", tc.AsShare("1", "", "")),
			},
			claims: []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1, attribute("size")+` == "half"`))},
			want:   DoesNotFit,
		},
		"another share of a device that takes all counters": {
			objects: []any{
				tc.IncubatingGates(), counters, tc.Slice("s-devices", tc.DriverA, "pool",
					tc.Device("d2").Consuming("gpu-0", "memory=80Gi").Shareable()).Of(2),
				tc.Claim("other").Holding("a.example.com/pool/d2", tc.AsShare("1", "", "")),
			},
			claims: []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:   Fits, picked: "a.example.com/pool/d2",
		},
		"counters while they are off": {
			objects: []any{counters, tc.Slice("s-devices", tc.DriverA, "pool", tc.Device("d1").Consuming("gpu-0", "memory=40Gi")).Of(2)},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    DoesNotFit,
		},
		"compatibility groups": {
			objects: []any{tc.ExperimentalGates(), counters, tc.Slice("s-devices", tc.DriverA, "pool",
				tc.Device("d1").Consuming("gpu-0", "memory=40Gi").InGroups("x"), tc.Device("d2").Consuming("gpu-0", "memory=40Gi").InGroups("x", "y")).Of(2)},
			claims: []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 2))},
			want:   Fits, picked: "a.example.com/pool/d1 a.example.com/pool/d2",
		},
		"compatibility groups that do not go together": {
			objects: []any{tc.ExperimentalGates(), counters, tc.Slice("s-devices", tc.DriverA, "pool",
				tc.Device("d1").Consuming("gpu-0", "memory=40Gi").InGroups("x"), tc.Device("d2").Consuming("gpu-0", "memory=40Gi").InGroups("y")).Of(2)},
			claims: []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 2))},
			want:   DoesNotFit,
		},
		"shares": {
			objects: []any{
				tc.IncubatingGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1", "memory:=40Gi").Shareable()),
				tc.Claim("other").Holding("a.example.com/pool/d1", tc.AsShare("1", "memory", "30Gi")),
			},
			claims: []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1).WithCapacity("memory", "10Gi"))},
			want:   Fits, picked: "a.example.com/pool/d1",
		},
		"too little capacity left": {
			objects: []any{
				tc.IncubatingGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1", "memory:=40Gi").Shareable()),
				tc.Claim("other").Holding("a.example.com/pool/d1", tc.AsShare("1", "memory", "30Gi")),
			},
			claims: []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1).WithCapacity("memory", "20Gi"))},
			want:   DoesNotFit,
		},
		"capacity while it is off, in the stable channel": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1", "memory:=10Gi"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1).WithCapacity("memory", "20Gi"))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"capacity while it is off, in other channels": {
			objects: []any{tc.Gates{cluster.GateBindingConditions, cluster.GateDeviceStatus}, tc.Slice("s", tc.DriverA, "pool", tc.Device("d1", "memory:=40Gi"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1).WithCapacity("memory", "20Gi"))},
			want:    Failed, err: "DRAConsumableCapacity feature is disabled",
		},
		"shares while they are off": {
			objects: []any{
				tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1", "memory:=40Gi").Shareable()),
				tc.Claim("other").Holding("a.example.com/pool/d1", tc.AsShare("1", "memory", "1Gi")),
			},
			claims: []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:   DoesNotFit,
		},
		"binding conditions last": {
			objects: []any{tc.IncubatingGates(), tc.Slice("s", tc.DriverA, "pool-1", tc.Device("d1").BindingOn("ready")), tc.Slice("t", tc.DriverA, "pool-2", tc.Device("d1"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 2))},
			want:    Fits, picked: "a.example.com/pool-2/d1 a.example.com/pool-1/d1",
		},
		"binding conditions while they are off": {
			objects: []any{tc.StableGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1").BindingOn("ready"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    DoesNotFit,
		},
		"list attributes in common": {
			objects: []any{tc.ExperimentalGates(), tc.Slice("s", tc.DriverA, "pool", listed("d1", "0", "1"), listed("d2", "1", "2"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 2)).Matching("a.example.com/numa")},
			want:    Fits, picked: "a.example.com/pool/d1 a.example.com/pool/d2",
		},
		"no list attributes in common": {
			objects: []any{tc.ExperimentalGates(), tc.Slice("s", tc.DriverA, "pool", listed("d1", "0"), listed("d2", "1", "2"))},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 2)).Matching("a.example.com/numa")},
			want:    DoesNotFit,
		},
		"derived attributes": {
			objects: []any{tc.ExperimentalGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1", "slot=left-1"), tc.Device("d2", "slot=left-2"))},
			claims:  []tc.ClaimWrapper{derived(attribute("slot") + `.substring(0, 4)`)},
			want:    Fits, picked: "a.example.com/pool/d1 a.example.com/pool/d2",
		},
		"derived attributes that differ": {
			objects: []any{tc.ExperimentalGates(), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1", "slot=left-1"), tc.Device("d2", "slot=right-2"))},
			claims:  []tc.ClaimWrapper{derived(attribute("slot") + `.substring(0, 4)`)},
			want:    DoesNotFit,
		},
		"node operations": {
			objects: []any{tc.ExperimentalGates(), skipping},
			node:    capable,
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    Fits, picked: "a.example.com/pool/d",
		},
		"node without optional node operations": {
			objects: []any{tc.ExperimentalGates(), skipping},
			claims:  []tc.ClaimWrapper{tc.Claim("c", tc.Request("r", tc.ClassA, 1))},
			want:    DoesNotFit,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := newAllocator(t, tc.Snapshot(append(tt.objects, tc.Class(tc.ClassA, tc.DriverA))...))
			n := tt.node
			if n == nil {
				n = tc.Node(tc.Node1)
			}
			v := check(t, a, n, tt.claims...)
			if v.Outcome != tt.want {
				t.Errorf("got %s (%v), want %s", v.Outcome, v.Err, tt.want)
			}
			if got := picked(v); got != tt.picked {
				t.Errorf("got devices %q, want %q", got, tt.picked)
			}
			if (v.Err == nil) != (tt.err == "") || v.Err != nil && !strings.Contains(v.Err.Error(), tt.err) {
				t.Errorf("got error %v, want one with %q", v.Err, tt.err)
			}
		})
	}
}

// hopeless returns a search that takes hours: 32 of 31 devices. Each device doubles the
// time, and 25 of 24 take more than a minute.
func hopeless() (*snapshot.Snapshot, tc.ClaimWrapper) {
	var devices []tc.DeviceWrapper
	for i := range 31 {
		devices = append(devices, tc.Device(fmt.Sprintf("d%d", i)))
	}
	snap := tc.Snapshot(tc.IncubatingGates(), tc.Class(tc.ClassA, tc.DriverA), tc.Slice("s", tc.DriverA, "pool", devices...), tc.Slice("t", tc.DriverA, "pool-2").OnNode(tc.Node2))
	return snap, tc.Claim("c", tc.Request("r", tc.ClassA, 32))
}

func TestCheckTimesOut(t *testing.T) {
	snap, c := hopeless()
	a := newAllocator(t, snap, WithTimeout(50*time.Millisecond))
	v := check(t, a, tc.Node(tc.Node1), c)
	if v.Outcome != TimedOut || !errors.Is(v.Err, context.DeadlineExceeded) {
		t.Errorf("got %s (%v), want TimedOut with DeadlineExceeded", v.Outcome, v.Err)
	}
	if v.Duration < 50*time.Millisecond {
		t.Errorf("took %s with a limit of 50ms", v.Duration)
	}
}

func TestCheckIsCancelled(t *testing.T) {
	snap, c := hopeless()
	a := newAllocator(t, snap)
	claims := []*resourceapi.ResourceClaim{c.ResourceClaim}

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if v := a.Check(ctx, tc.Node(tc.Node1), claims); v.Outcome != Cancelled || !errors.Is(v.Err, context.DeadlineExceeded) {
		t.Errorf("caller's deadline: got %s (%v), want Cancelled", v.Outcome, v.Err)
	}
	if v := a.Check(ctx, tc.Node(tc.Node2), claims); v.Outcome != Cancelled {
		t.Errorf("done context: got %s (%v), want Cancelled", v.Outcome, v.Err)
	}
}

func TestTimeoutFollowsTheGate(t *testing.T) {
	if a := newAllocator(t, tc.Snapshot(tc.Gates{cluster.GateFilterTimeout})); a.timeout != 10*time.Second {
		t.Errorf("gate on: got a limit of %s, want 10s", a.timeout)
	}
	if a := newAllocator(t, tc.Snapshot()); a.timeout != 0 {
		t.Errorf("gate off: got a limit of %s, want none", a.timeout)
	}
}

func TestCheckAll(t *testing.T) {
	var objects []any
	var nodes []*corev1.Node
	for i := range 20 {
		name := fmt.Sprintf("node-%02d", i)
		nodes = append(nodes, tc.Node(name))
		objects = append(objects, tc.Slice(name, tc.DriverA, name, tc.Device("d", fmt.Sprintf("i=%d", i))).OnNode(name))
	}
	objects = append(objects, tc.StableGates(), tc.Class(tc.ClassA, tc.DriverA))
	a := newAllocator(t, tc.Snapshot(objects...))

	one := tc.Claim("c", tc.Request("r", tc.ClassA, 1))
	for i, v := range a.CheckAll(context.Background(), nodes, fixedClaims(one.ResourceClaim)) {
		if want := fmt.Sprintf("a.example.com/%s/d", nodes[i].Name); v.Outcome != Fits || picked(v) != want {
			t.Errorf("%s: got %s with %s, want %s", nodes[i].Name, v.Outcome, picked(v), want)
		}
	}

	broken := tc.Claim("c", tc.Request("r", tc.ClassA, 1, `device.attributes["a.example.com"].missing == "x"`))
	verdicts := a.CheckAll(context.Background(), nodes, func(n *corev1.Node) ([]*resourceapi.ResourceClaim, error) {
		switch n.Name {
		case "node-03":
			return nil, errors.New("nothing for this node")
		case "node-07", "node-09":
			return []*resourceapi.ResourceClaim{broken.ResourceClaim}, nil
		default:
			return []*resourceapi.ResourceClaim{one.ResourceClaim}, nil
		}
	})
	for i, v := range verdicts {
		want := Fits
		switch {
		case i == 3:
			want = NodeError
		case i == 7:
			want = Failed
		case i > 7:
			want = NotTried
		}
		if v.Outcome != want {
			t.Errorf("node %d: got %s (%v), want %s", i, v.Outcome, v.Err, want)
		}
	}
	if v := a.CheckAll(context.Background(), nil, fixedClaims()); len(v) != 0 {
		t.Errorf("no nodes: got %d verdicts", len(v))
	}
}

func TestCheckAllStopsASlowSearchAfterTheEnd(t *testing.T) {
	snap, c := hopeless()
	a := newAllocator(t, snap)
	start := time.Now()
	verdicts := a.CheckAll(context.Background(), []*corev1.Node{tc.Node(tc.Node2), tc.Node(tc.Node1)}, func(n *corev1.Node) ([]*resourceapi.ResourceClaim, error) {
		if n.Name == tc.Node2 {
			return []*resourceapi.ResourceClaim{tc.Claim("c", tc.Request("r", "other", 1)).ResourceClaim}, nil
		}
		return []*resourceapi.ResourceClaim{c.ResourceClaim}, nil
	})
	if verdicts[0].Outcome != Failed || verdicts[1].Outcome != NotTried {
		t.Errorf("got %s and %s, want Failed and NotTried", verdicts[0].Outcome, verdicts[1].Outcome)
	}
	if took := time.Since(start); took > 10*time.Minute {
		t.Errorf("took %s: the search on the second node was not stopped", took)
	}
}

func TestAmendedAnswersForTheOtherSnapshot(t *testing.T) {
	snap := tc.Snapshot(tc.IncubatingGates(), tc.Class(tc.ClassA, tc.DriverA), tc.Slice("s", tc.DriverA, "pool", tc.Device("d1")))
	a := newAllocator(t, snap, WithTimeout(time.Minute))
	c := tc.Claim("c", tc.Request("r", tc.ClassA, 2))
	amended := Of(a.Facts.Amended(snap.With(&snapshot.Snapshot{Slices: []*resourceapi.ResourceSlice{
		tc.Slice("t", tc.DriverA, "pool-2", tc.Device("d1")).ResourceSlice,
	}})))
	if v := check(t, a, tc.Node(tc.Node1), c); v.Outcome != DoesNotFit {
		t.Errorf("before: got %s (%v)", v.Outcome, v.Err)
	}
	if v := check(t, amended, tc.Node(tc.Node1), c); v.Outcome != Fits {
		t.Errorf("after: got %s (%v)", v.Outcome, v.Err)
	}
	if amended.timeout != time.Minute {
		t.Errorf("the option is lost: limit %s", amended.timeout)
	}
}

// fixedClaims returns claims for [Allocator.CheckAll] that are the same on every node.
func fixedClaims(claims ...*resourceapi.ResourceClaim) func(*corev1.Node) ([]*resourceapi.ResourceClaim, error) {
	return func(*corev1.Node) ([]*resourceapi.ResourceClaim, error) { return claims, nil }
}
