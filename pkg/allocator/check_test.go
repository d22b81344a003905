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

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestCheck(t *testing.T) {
	attribute := func(name string) string { return fmt.Sprintf("device.attributes[%q].%s", driverA, name) }
	counters := slice("s-counters", driverA, "pool").of(2).withCounters("gpu-0", "memory=80Gi")
	listed := func(name string, values ...string) wrapDevice {
		return device(name).change(func(d *resourceapi.Device) {
			d.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"numa": {StringValues: values}}
		})
	}
	skipping := slice("s", driverA, "pool", device("d")).change(func(spec *resourceapi.ResourceSliceSpec) {
		spec.SkipNodeOperations = []resourceapi.SkipNodeOperation{"*"}
	})
	capable := node(node1)
	capable.Status.DeclaredFeatures = []string{gateOptionalNodeOps}
	derived := func(expression string) wrapClaim {
		return claim("c").withRequests(request("r", classA, 2).change(func(r *resourceapi.ExactDeviceRequest) {
			r.DerivedAttributes = []resourceapi.DeviceDerivedAttribute{{Name: "example.com/side", Expression: expression}}
		})).matching("example.com/side")
	}

	tests := map[string]struct {
		objects []any
		node    *corev1.Node
		claims  []wrapClaim
		want    Outcome
		picked  string
		err     string
	}{
		"one device": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1"), device("d2"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"no claims": {want: Fits},
		"too few devices": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 2))},
			want:    DoesNotFit,
		},
		"devices of another node": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1")).onNode(node2)},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    DoesNotFit,
		},
		"two claims in the order of the pod": {
			objects: []any{incubatingGates(), slice("s", driverA, "pool", device("d1"), device("d2"))},
			claims:  []wrapClaim{claim("z").withRequests(request("r", classA, 1)), claim("y").withRequests(request("r", classA, 1))},
			want:    Fits, picked: "a.example.com/pool/d1 | a.example.com/pool/d2",
		},
		"selector": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1", "model=a"), device("d2", "model=b"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1, attribute("model")+` == "b"`))},
			want:    Fits, picked: "a.example.com/pool/d2",
		},
		"selector fails on a device": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1, attribute("model")+` == "b"`))},
			want:    Failed, err: "no such key: model",
		},
		"unknown class": {
			objects: []any{stableGates()},
			claims:  []wrapClaim{claim("c").withRequests(request("r", "other", 1))},
			want:    Failed, err: `"other" not found`,
		},
		"more devices than a claim may have": {
			objects: []any{stableGates()},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 33))},
			want:    Failed, err: "exceeds the claim limit of 32",
		},
		"device in use": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1")), claim("other").holding("a.example.com/pool/d1")},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    DoesNotFit,
		},
		"device in use by an admin": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1")), claim("other").holding("a.example.com/pool/d1", forAdmin)},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"admin access to a device in use": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1")), claim("other").holding("a.example.com/pool/d1")},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1).withAdminAccess())},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"admin access while it is off": {
			objects: []any{slice("s", driverA, "pool", device("d1"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1).withAdminAccess())},
			want:    Failed, err: "admin access is requested, but the feature is disabled",
		},
		"all devices": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1"), device("d2"))},
			claims:  []wrapClaim{claim("c").withRequests(requestAll("r", classA))},
			want:    Fits, picked: "a.example.com/pool/d1 a.example.com/pool/d2",
		},
		"all devices, but one is in use": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1"), device("d2")), claim("other").holding("a.example.com/pool/d2")},
			claims:  []wrapClaim{claim("c").withRequests(requestAll("r", classA))},
			want:    DoesNotFit,
		},
		"all devices of an incomplete pool": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1")).of(2)},
			claims:  []wrapClaim{claim("c").withRequests(requestAll("r", classA))},
			want:    Failed, err: "a.example.com/pool is currently being updated",
		},
		"one device of an incomplete pool": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1")).of(2)},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    DoesNotFit,
		},
		"one device of an invalid pool": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1"), device("d1"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    NodeError, err: "invalid resource pools",
		},
		"one device beside an invalid pool": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1"), device("d1")), slice("t", driverA, "other", device("d1"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    Fits, picked: "a.example.com/other/d1",
		},
		"node selector that cannot be parsed": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1")).onNodesWith("not a label", "x")},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    Failed, err: "failed to parse node selector",
		},
		"same attribute": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1", "root=x"), device("d2", "root=y"), device("d3", "root=y"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 2)).matching("a.example.com/root")},
			want:    Fits, picked: "a.example.com/pool/d2 a.example.com/pool/d3",
		},
		"never the same attribute": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1", "root=x"), device("d2", "root=y"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 2)).matching("a.example.com/root")},
			want:    DoesNotFit,
		},
		"distinct attribute": {
			objects: []any{incubatingGates(), slice("s", driverA, "pool", device("d1", "root=x"), device("d2", "root=x"), device("d3", "root=y"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 2)).distinct("a.example.com/root")},
			want:    Fits, picked: "a.example.com/pool/d1 a.example.com/pool/d3",
		},
		"no distinct attribute": {
			objects: []any{incubatingGates(), slice("s", driverA, "pool", device("d1", "root=x"), device("d2", "root=x"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 2)).distinct("a.example.com/root")},
			want:    DoesNotFit,
		},
		"second alternative": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1"))},
			claims:  []wrapClaim{claim("c").withRequests(firstAvailable("r", request("two", classA, 2), request("one", classA, 1)))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"no alternative": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1"))},
			claims:  []wrapClaim{claim("c").withRequests(firstAvailable("r", request("three", classA, 3), request("two", classA, 2)))},
			want:    DoesNotFit,
		},
		"alternatives while they are off": {
			objects: []any{slice("s", driverA, "pool", device("d1"))},
			claims:  []wrapClaim{claim("c").withRequests(firstAvailable("r", request("one", classA, 1)))},
			want:    Failed, err: "DRAPrioritizedList feature is disabled",
		},
		"taint": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1").tainted("broken", resourceapi.DeviceTaintEffectNoSchedule))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    DoesNotFit,
		},
		"tolerated taint": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1").tainted("broken", resourceapi.DeviceTaintEffectNoExecute))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1).tolerating("broken"))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"taint without effect": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1").tainted("broken", resourceapi.DeviceTaintEffectNone))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"taints while they are off": {
			objects: []any{slice("s", driverA, "pool", device("d1").tainted("broken", resourceapi.DeviceTaintEffectNoSchedule))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"taint rule": {
			objects: []any{append(stableGates(), gateDeviceTaintRules), slice("s", driverA, "pool", device("d1")), taintRule("rule", driverA, "", "")},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    DoesNotFit,
		},
		"taint rules while they are off": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1")), taintRule("rule", driverA, "", "")},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"counters": {
			objects: []any{stableGates(), counters, slice("s-devices", driverA, "pool",
				device("d1").consuming("gpu-0", "memory=40Gi"), device("d2").consuming("gpu-0", "memory=40Gi")).of(2)},
			claims: []wrapClaim{claim("c").withRequests(request("r", classA, 2))},
			want:   Fits, picked: "a.example.com/pool/d1 a.example.com/pool/d2",
		},
		"counters exhausted": {
			objects: []any{
				stableGates(), counters, slice("s-devices", driverA, "pool",
					device("d1").consuming("gpu-0", "memory=40Gi"), device("d2").consuming("gpu-0", "memory=80Gi")).of(2),
				claim("other").holding("a.example.com/pool/d1"),
			},
			claims: []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:   DoesNotFit,
		},
		"counters taken by a device with shares": {
			objects: []any{
				incubatingGates(), counters, slice("s-devices", driverA, "pool",
					device("d1", "size=half").consuming("gpu-0", "memory=40Gi"), device("d2", "size=full").consuming("gpu-0", "memory=80Gi").shareable()).of(2),
				claim("other").holding("a.example.com/pool/d2", asShare("1", "", "")),
			},
			claims: []wrapClaim{claim("c").withRequests(request("r", classA, 1, attribute("size")+` == "half"`))},
			want:   DoesNotFit,
		},
		"another share of a device that takes all counters": {
			objects: []any{
				incubatingGates(), counters, slice("s-devices", driverA, "pool",
					device("d2").consuming("gpu-0", "memory=80Gi").shareable()).of(2),
				claim("other").holding("a.example.com/pool/d2", asShare("1", "", "")),
			},
			claims: []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:   Fits, picked: "a.example.com/pool/d2",
		},
		"counters while they are off": {
			objects: []any{counters, slice("s-devices", driverA, "pool", device("d1").consuming("gpu-0", "memory=40Gi")).of(2)},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    DoesNotFit,
		},
		"compatibility groups": {
			objects: []any{experimentalGates(), counters, slice("s-devices", driverA, "pool",
				device("d1").consuming("gpu-0", "memory=40Gi").inGroups("x"), device("d2").consuming("gpu-0", "memory=40Gi").inGroups("x", "y")).of(2)},
			claims: []wrapClaim{claim("c").withRequests(request("r", classA, 2))},
			want:   Fits, picked: "a.example.com/pool/d1 a.example.com/pool/d2",
		},
		"compatibility groups that do not go together": {
			objects: []any{experimentalGates(), counters, slice("s-devices", driverA, "pool",
				device("d1").consuming("gpu-0", "memory=40Gi").inGroups("x"), device("d2").consuming("gpu-0", "memory=40Gi").inGroups("y")).of(2)},
			claims: []wrapClaim{claim("c").withRequests(request("r", classA, 2))},
			want:   DoesNotFit,
		},
		"shares": {
			objects: []any{
				incubatingGates(), slice("s", driverA, "pool", device("d1", "memory:=40Gi").shareable()),
				claim("other").holding("a.example.com/pool/d1", asShare("1", "memory", "30Gi")),
			},
			claims: []wrapClaim{claim("c").withRequests(request("r", classA, 1).withCapacity("memory", "10Gi"))},
			want:   Fits, picked: "a.example.com/pool/d1",
		},
		"too little capacity left": {
			objects: []any{
				incubatingGates(), slice("s", driverA, "pool", device("d1", "memory:=40Gi").shareable()),
				claim("other").holding("a.example.com/pool/d1", asShare("1", "memory", "30Gi")),
			},
			claims: []wrapClaim{claim("c").withRequests(request("r", classA, 1).withCapacity("memory", "20Gi"))},
			want:   DoesNotFit,
		},
		"capacity while it is off, in the stable channel": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1", "memory:=10Gi"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1).withCapacity("memory", "20Gi"))},
			want:    Fits, picked: "a.example.com/pool/d1",
		},
		"capacity while it is off, in other channels": {
			objects: []any{gates{gateBindingConditions, gateDeviceStatus}, slice("s", driverA, "pool", device("d1", "memory:=40Gi"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1).withCapacity("memory", "20Gi"))},
			want:    Failed, err: "DRAConsumableCapacity feature is disabled",
		},
		"shares while they are off": {
			objects: []any{
				stableGates(), slice("s", driverA, "pool", device("d1", "memory:=40Gi").shareable()),
				claim("other").holding("a.example.com/pool/d1", asShare("1", "memory", "1Gi")),
			},
			claims: []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:   DoesNotFit,
		},
		"binding conditions last": {
			objects: []any{incubatingGates(), slice("s", driverA, "pool-1", device("d1").bindingOn("ready")), slice("t", driverA, "pool-2", device("d1"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 2))},
			want:    Fits, picked: "a.example.com/pool-2/d1 a.example.com/pool-1/d1",
		},
		"binding conditions while they are off": {
			objects: []any{stableGates(), slice("s", driverA, "pool", device("d1").bindingOn("ready"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    DoesNotFit,
		},
		"list attributes in common": {
			objects: []any{experimentalGates(), slice("s", driverA, "pool", listed("d1", "0", "1"), listed("d2", "1", "2"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 2)).matching("a.example.com/numa")},
			want:    Fits, picked: "a.example.com/pool/d1 a.example.com/pool/d2",
		},
		"no list attributes in common": {
			objects: []any{experimentalGates(), slice("s", driverA, "pool", listed("d1", "0"), listed("d2", "1", "2"))},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 2)).matching("a.example.com/numa")},
			want:    DoesNotFit,
		},
		"derived attributes": {
			objects: []any{experimentalGates(), slice("s", driverA, "pool", device("d1", "slot=left-1"), device("d2", "slot=left-2"))},
			claims:  []wrapClaim{derived(attribute("slot") + `.substring(0, 4)`)},
			want:    Fits, picked: "a.example.com/pool/d1 a.example.com/pool/d2",
		},
		"derived attributes that differ": {
			objects: []any{experimentalGates(), slice("s", driverA, "pool", device("d1", "slot=left-1"), device("d2", "slot=right-2"))},
			claims:  []wrapClaim{derived(attribute("slot") + `.substring(0, 4)`)},
			want:    DoesNotFit,
		},
		"node operations": {
			objects: []any{experimentalGates(), skipping},
			node:    capable,
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    Fits, picked: "a.example.com/pool/d",
		},
		"node without optional node operations": {
			objects: []any{experimentalGates(), skipping},
			claims:  []wrapClaim{claim("c").withRequests(request("r", classA, 1))},
			want:    DoesNotFit,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := newAllocator(t, cluster(append(tt.objects, class(classA, driverA))...))
			n := tt.node
			if n == nil {
				n = node(node1)
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

// hopeless is a search that takes hours: 32 of 31 devices. Each device
// doubles the time, and 25 of 24 take more than a minute.
func hopeless() (*snapshot.Snapshot, wrapClaim) {
	var devices []wrapDevice
	for i := range 31 {
		devices = append(devices, device(fmt.Sprintf("d%d", i)))
	}
	snap := cluster(incubatingGates(), class(classA, driverA), slice("s", driverA, "pool", devices...), slice("t", driverA, "pool-2").onNode(node2))
	return snap, claim("c").withRequests(request("r", classA, 32))
}

func TestCheckTimesOut(t *testing.T) {
	snap, c := hopeless()
	a := newAllocator(t, snap, WithTimeout(50*time.Millisecond))
	v := check(t, a, node(node1), c)
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
	if v := a.Check(ctx, node(node1), claims); v.Outcome != Cancelled || !errors.Is(v.Err, context.DeadlineExceeded) {
		t.Errorf("caller's deadline: got %s (%v), want Cancelled", v.Outcome, v.Err)
	}
	if v := a.Check(ctx, node(node2), claims); v.Outcome != Cancelled {
		t.Errorf("done context: got %s (%v), want Cancelled", v.Outcome, v.Err)
	}
}

func TestTimeoutFollowsTheGate(t *testing.T) {
	if a := newAllocator(t, cluster(gates{gateFilterTimeout})); a.timeout != 10*time.Second {
		t.Errorf("gate on: got a limit of %s, want 10s", a.timeout)
	}
	if a := newAllocator(t, cluster()); a.timeout != 0 {
		t.Errorf("gate off: got a limit of %s, want none", a.timeout)
	}
}

func TestCheckAll(t *testing.T) {
	var objects []any
	var nodes []*corev1.Node
	for i := range 20 {
		name := fmt.Sprintf("node-%02d", i)
		nodes = append(nodes, node(name))
		objects = append(objects, slice(name, driverA, name, device("d", fmt.Sprintf("i=%d", i))).onNode(name))
	}
	objects = append(objects, stableGates(), class(classA, driverA))
	a := newAllocator(t, cluster(objects...))

	one := claim("c").withRequests(request("r", classA, 1))
	for i, v := range a.CheckAll(context.Background(), nodes, FixedClaims(one.ResourceClaim)) {
		if want := fmt.Sprintf("a.example.com/%s/d", nodes[i].Name); v.Outcome != Fits || picked(v) != want {
			t.Errorf("%s: got %s with %s, want %s", nodes[i].Name, v.Outcome, picked(v), want)
		}
	}

	broken := claim("c").withRequests(request("r", classA, 1, `device.attributes["a.example.com"].missing == "x"`))
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
	if v := a.CheckAll(context.Background(), nil, FixedClaims()); len(v) != 0 {
		t.Errorf("no nodes: got %d verdicts", len(v))
	}
}

func TestCheckAllStopsASlowSearchAfterTheEnd(t *testing.T) {
	snap, c := hopeless()
	a := newAllocator(t, snap)
	start := time.Now()
	verdicts := a.CheckAll(context.Background(), []*corev1.Node{node(node2), node(node1)}, func(n *corev1.Node) ([]*resourceapi.ResourceClaim, error) {
		if n.Name == node2 {
			return []*resourceapi.ResourceClaim{claim("c").withRequests(request("r", "other", 1)).ResourceClaim}, nil
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
	snap := cluster(incubatingGates(), class(classA, driverA), slice("s", driverA, "pool", device("d1")))
	a := newAllocator(t, snap, WithTimeout(time.Minute))
	c := claim("c").withRequests(request("r", classA, 2))
	amended, err := a.Amended(context.Background(), snap.With(&snapshot.Snapshot{Slices: []*resourceapi.ResourceSlice{
		slice("t", driverA, "pool-2", device("d1")).ResourceSlice,
	}}))
	if err != nil {
		t.Fatal(err)
	}
	if v := check(t, a, node(node1), c); v.Outcome != DoesNotFit {
		t.Errorf("before: got %s (%v)", v.Outcome, v.Err)
	}
	if v := check(t, amended, node(node1), c); v.Outcome != Fits {
		t.Errorf("after: got %s (%v)", v.Outcome, v.Err)
	}
	if amended.timeout != time.Minute {
		t.Errorf("the option is lost: limit %s", amended.timeout)
	}
}

func TestNewIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := New(ctx, cluster()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
