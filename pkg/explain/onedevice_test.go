// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestOneDevice asks about device x of n1. Checks are written as "code label:
// message"; those that pass are left out.
func TestOneDevice(t *testing.T) {
	inPool := func(name string) func(*resourceapi.ResourceSlice) {
		return func(s *resourceapi.ResourceSlice) { s.Spec.Pool.Name = name }
	}
	large := `device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0 && device.attributes["gpu.example.com"].model == "B"`
	tests := map[string]struct {
		cluster []any
		outcome api.DeviceOutcome
		failed  []string
		summary string
	}{
		"picked": {
			cluster: []any{tc.Pool("n1", tc.Device("x"), tc.Device("y")), tc.Claim(waiting, tc.GPUs("gpu", 1))},
			outcome: api.Picked, summary: "The allocator picks it for request gpu.",
		},
		"others come first": {
			cluster: []any{tc.Pool("n1", tc.Device("a"), tc.Device("b"), tc.Device("x")), tc.Claim(waiting, tc.GPUs("gpu", 2))},
			outcome: api.Eligible, summary: "the allocator takes a, b: of those that fit it takes the first",
		},
		"picked for the other request": {
			cluster: []any{tc.Pool("n1", tc.Device("x"), tc.Device("y")), tc.Claim(waiting, tc.GPUs("one", 1), tc.GPUs("two", 1))},
			outcome: api.Picked, summary: "The allocator picks it for request one.",
		},
		"one that comes later is taken": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x", "root=1"), tc.Device("y", "root=2"), tc.Device("z", "root=2")),
				tc.Claim(waiting, tc.GPUs("gpu", 2)).Matching("gpu.example.com/root"),
			},
			outcome: api.Eligible, summary: "Request gpu: passes every check alone, but the allocator takes y, z.",
		},
		"another node is picked": {
			cluster: []any{tc.Pool("n1", tc.Device("x")), tc.Pool("n2", tc.Devices(2)...), tc.Claim(waiting, tc.GPUs("gpu", 2))},
			outcome: api.Eligible, summary: "Request gpu: passes every check alone, but on n1: 1 available, 2 needed.",
		},
		"another node is as good": {
			cluster: []any{tc.Pool("n1", tc.Device("a")), tc.Pool("n2", tc.Device("x")), tc.Claim(waiting, tc.GPUs("gpu", 1))},
			outcome: api.Eligible, summary: "Request gpu: passes every check alone, but the allocator picks n1.",
		},
		"pools with binding conditions come last": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x").Change(func(d *resourceapi.Device) { d.BindingConditions = []string{"ready"} })).Change(inPool("a")),
				tc.Pool("n1", tc.Device("y")).Change(inPool("b")), tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			outcome: api.Eligible, summary: "takes y: of those that fit it takes the first, in the order of pools, slices and devices; pools with binding conditions, like this one, come last.",
		},
		"claims cannot be seen": {
			cluster: []any{
				tc.Gap(snapshot.ResourceClaims, "you may not list claims"),
				tc.Pool("n1", tc.Device("x", "memory:=80Gi").Shareable().Consuming("board", "slices=3")).Of(2), tc.Pool("n1").Of(2).WithCounters("board", "slices=4"),
				tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			outcome: api.Picked, summary: "As far as can be seen the allocator picks it for request gpu.",
			failed: []string{
				" not allocated: not known: you may not list claims", " capacity available: not known: you may not list claims",
				" shared counters: not known: you may not list claims",
			},
		},
		"claims cannot be seen, another device is picked": {
			cluster: []any{tc.Gap(snapshot.ResourceClaims, "you may not list claims"), tc.Pool("n1", tc.Device("a"), tc.Device("x")), tc.Claim(waiting, tc.GPUs("gpu", 1))},
			outcome: api.Eligible, summary: "passes alone every check that can be made, but as far as can be seen the allocator takes a: of those",
			failed: []string{" not allocated: not known: you may not list claims"},
		},
		"claims cannot be seen, but one has it": {
			cluster: []any{tc.Gap(snapshot.ResourceClaims, "you may not list claims"), tc.Pool("n1", tc.Device("x")), tc.Serving("serve", "n1", "x"), tc.Claim(waiting, tc.GPUs("gpu", 1))},
			outcome: api.Rejected, failed: []string{"DeviceAllocated allocated: to claim serving/serve"},
		},
		"admin access needs no free device": {
			cluster: []any{tc.Gap(snapshot.ResourceClaims, "you may not list claims"), tc.Gate("DRAAdminAccess", true), tc.Pool("n1", tc.Device("x")), tc.Claim(waiting, tc.GPUs("gpu", 1).WithAdminAccess())},
			outcome: api.Picked,
		},
		"no partner": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x", "root=1"), tc.Device("y", "root=2")),
				tc.Claim(waiting, tc.GPUs("gpu", 2)).Matching("gpu.example.com/root"),
			},
			outcome: api.Eligible, summary: "passes every check alone, but on n1: 2 available, at most 1 with the same gpu.example.com/root",
		},
		"everything that is wrong": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x", "memory:=40Gi", "model=A").Tainted("xid", resourceapi.DeviceTaintEffectNoExecute).Tainted("ecc", resourceapi.DeviceTaintEffectNoSchedule)),
				tc.Serving("serve", "n1", "x"), tc.Claim(waiting, tc.GPUs("gpu", 1, large).Tolerating("ecc")).Matching("gpu.example.com/root"),
			},
			outcome: api.Rejected,
			failed: []string{
				`RequestSelectorFalse selector: memory is 40Gi, must be 80Gi or more; model is "A", must be "B"`,
				"DeviceAllocated allocated: to claim serving/serve",
				"DeviceTainted tainted: xid:NoExecute",
				"AttributeMissing attribute missing: has no attribute gpu.example.com/root, which does not exist on the only device",
			},
			summary: "it would also fail: allocated, tainted and attribute missing.",
		},
		"other class": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x")).Change(func(s *resourceapi.ResourceSlice) { s.Spec.Driver = "nic.example.com" }),
				tc.Claim(waiting, tc.GPUs("gpu", 1, `device.attributes["gpu.example.com"].model == "B"`)),
			},
			outcome: api.Rejected,
			failed: []string{
				`ClassSelectorFalse other class: driver is "nic.example.com", must be "gpu.example.com"`,
				" selectors: not evaluated for devices of other classes",
			},
		},
		"the class fails": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x")), tc.Claim(waiting, tc.GPUs("gpu", 1, "true")),
				func(s *snapshot.Snapshot) {
					s.Classes[0].Spec.Selectors = tc.CELSelectors(`device.attributes["gpu.example.com"].type == "gpu"`)
				},
			},
			outcome: api.Rejected,
			failed: []string{
				"SelectorError class selector: no such key: type; attribute type (domain gpu.example.com) does not exist on the only device, and nothing else of that domain does", " selectors: the class fails",
			},
		},
		"the selector would fail if it were free": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x")), tc.Serving("serve", "n1", "x"), tc.Claim(waiting, tc.GPUs("gpu", 1, `device.attributes["gpu.example.com"].model == "B"`)),
			},
			outcome: api.Rejected,
			failed: []string{
				" selector: the allocator passes over allocated devices before it evaluates selectors",
				"DeviceAllocated allocated: to claim serving/serve",
			},
		},
		"share too large": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x", "memory:=80Gi").Shareable()), tc.Sharing("serve", "n1", "x", "memory", "60Gi"),
				tc.Claim(waiting, tc.GPUs("gpu", 1).WithCapacity("memory", "40Gi")),
			},
			outcome: api.Rejected,
			failed:  []string{"CapacityInsufficient capacity: 20Gi of 80Gi memory available, 40Gi required"},
		},
		"counters": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x").Consuming("board", "slices=3"), tc.Device("y").Consuming("board", "slices=2")).Of(2),
				tc.Pool("n1").Of(2).WithCounters("board", "slices=4"), tc.Serving("serve", "n1", "y"), tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			outcome: api.Rejected,
			failed:  []string{"CountersExhausted counters: 2 of 4 available in counter slices, used by y, 3 required"},
		},
		"counters that it has taken itself": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x").Consuming("board", "slices=3")).Of(2),
				tc.Pool("n1").Of(2).WithCounters("board", "slices=4"), tc.Serving("serve", "n1", "x"), tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			outcome: api.Rejected,
			failed: []string{
				"DeviceAllocated allocated: to claim serving/serve",
				" shared counters: it is in use and has taken its part already",
			},
		},
		"device for another node": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x").Change(func(d *resourceapi.Device) { d.NodeName = new("n9") }), tc.Device("y").Change(func(d *resourceapi.Device) { d.NodeName = new("n1") })).Change(func(s *resourceapi.ResourceSlice) {
					s.Spec.NodeName, s.Spec.PerDeviceNodeSelection = nil, new(true)
				}),
				tc.Claim(waiting, tc.GPUs("gpu", 2)),
			},
			outcome: api.Rejected,
			failed: []string{
				"NodeNotReachable not reachable: the node does not exist",
				" slice: no node can reach it", " pool: no node can reach it", " node operations: no node can reach it",
			},
			summary: "Request gpu: not reachable (the node does not exist).",
		},
		"incomplete pool": {
			cluster: []any{tc.Pool("n1", tc.Device("x").Tainted("xid", resourceapi.DeviceTaintEffectNoExecute)).Of(2), tc.Claim(waiting, tc.GPUs("gpu", 1))},
			outcome: api.Rejected,
			failed: []string{
				"PoolIncomplete pool incomplete: 1 of 2 slices of pool n1 published",
				"DeviceTainted tainted: xid:NoExecute",
			},
		},
		"obsolete slice": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x")), tc.Pool("n1", tc.Device("y")).Change(func(s *resourceapi.ResourceSlice) { s.Spec.Pool.Generation = 2 }),
				tc.Claim(waiting, tc.GPUs("gpu", 1)),
			},
			outcome: api.Rejected,
			failed:  []string{"PoolObsolete obsolete: older than generation 2 of pool n1"},
		},
		"node of the device is cordoned": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x")), tc.Claim(waiting, tc.GPUs("gpu", 1)), tc.Pod("train-0", tc.Using(waiting)),
				tc.ChangeNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
			},
			outcome: api.Rejected, failed: []string{"NodeUnsuitable node not suitable: cordoned"},
		},
		"an earlier alternative is taken": {
			cluster: []any{
				tc.Pool("n1", tc.Device("a", "model=A"), tc.Device("x", "model=B")),
				tc.Claim(waiting, tc.FirstAvailable("gpu", tc.GPUs("big", 1, `device.attributes["gpu.example.com"].model == "A"`), tc.GPUs("small", 1, `device.attributes["gpu.example.com"].model == "B"`))),
			},
			outcome: api.Eligible, summary: "but the allocator takes gpu/big instead, which comes first",
		},
		"an earlier alternative wants too many": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x", "model=A"), tc.Device("b", "model=B")),
				tc.Claim(waiting, tc.FirstAvailable("gpu", tc.GPUs("three", 3), tc.GPUs("one", 1, `device.attributes["gpu.example.com"].model == "B"`))),
			},
			outcome: api.Eligible, summary: "but the allocator takes gpu/one instead: request gpu/three: 2 available, 3 needed.",
		},
		"an earlier alternative leaves too little for others": {
			cluster: []any{
				tc.Pool("n1", tc.Device("w", "model=A"), tc.Device("x", "model=A"), tc.Device("b", "model=B")),
				tc.Claim(waiting, tc.FirstAvailable("gpu", tc.GPUs("two", 2, `device.attributes["gpu.example.com"].model == "A"`), tc.GPUs("one", 1, `device.attributes["gpu.example.com"].model == "B"`)), tc.GPUs("other", 1, `device.attributes["gpu.example.com"].model == "A" && device.attributes["gpu.example.com"].model != "C"`)),
			},
			outcome: api.Eligible, summary: "beside the devices of the other requests it finds none for this alternative",
		},
		"an earlier alternative has no partner": {
			cluster: []any{
				tc.Pool("n1", tc.Device("x", "root=1"), tc.Device("y", "root=2")),
				tc.Claim(waiting, tc.FirstAvailable("gpu", tc.GPUs("two", 2), tc.GPUs("one", 1, `device.attributes["gpu.example.com"].root == "2"`))).Matching("gpu.example.com/root"),
			},
			outcome: api.Eligible, summary: "instead: enough devices are available for this alternative, but no set of them that satisfies it",
		},
		"allocated to the claim": {
			cluster: []any{tc.Pool("n1", tc.Device("x")), tc.Serving(waiting, "n1", "x"), func(s *snapshot.Snapshot) { s.Claims[0].Namespace = tc.Namespace }},
			summary: "Allocated to claim train.",
		},
		"no class": {
			cluster: []any{tc.Pool("n1", tc.Device("x")), tc.Claim(waiting, tc.GPUs("gpu", 1).OfClass("gpus"))},
			summary: "Not evaluated: request gpu: DeviceClass gpus does not exist",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append([]any{tc.Nodes("n1", "n2")}, test.cluster...)...)
			e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting), Device: "x"})
			if err != nil {
				t.Fatal(err)
			}
			d := e.Device
			if d.Outcome != test.outcome || !strings.Contains(d.Summary, test.summary) {
				t.Errorf("outcome %q: %s", d.Outcome, d.Summary)
			}
			var failed []string
			for _, r := range d.Requests {
				if r.Outcome != d.Outcome {
					continue
				}
				for _, check := range r.Checks {
					if check.Outcome != api.CheckPassed {
						failed = append(failed, string(check.Code)+" "+check.Label+": "+check.Message)
					}
					if (check.Outcome == api.CheckFailed) != (len(check.Evidence) > 0) {
						t.Errorf("check %s: %s with evidence %v", check.Check, check.Outcome, check.Evidence)
					}
				}
			}
			if diff := cmp.Diff(test.failed, failed); diff != "" {
				t.Errorf("checks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDeviceFacts covers a device with everything that a device can have.
func TestDeviceFacts(t *testing.T) {
	added := metav1.Now()
	snap := tc.Cluster(tc.Nodes("n1", "n2"),
		tc.Pool("n1", tc.Device("x", "memory:=80Gi", "model=A").Shareable().Consuming("board", "slices=3").InGroups("mig").Change(func(d *resourceapi.Device) {
			d.Taints = []resourceapi.DeviceTaint{{Key: "xid", Value: "79", Effect: resourceapi.DeviceTaintEffectNoExecute, TimeAdded: &added}}
			d.BindingConditions, d.BindingFailureConditions = []string{"ready"}, []string{"broken"}
		})).Of(2),
		tc.Pool("n1").Of(2).WithCounters("board", "slices=4"), tc.Sharing("serve", "n1", "x", "memory", "60Gi"),
		func(s *snapshot.Snapshot) {
			c := s.Claims[0]
			share := "share-serve"
			c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "chat-0"}}
			c.Status.Devices = []resourceapi.AllocatedDeviceStatus{{Driver: tc.Driver, Pool: "n1", Device: "x", ShareID: &share, Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Attached"}}}}
			s.TaintRules = append(s.TaintRules, &resourceapi.DeviceTaintRule{
				ObjectMeta: metav1.ObjectMeta{Name: "drain"},
				Spec: resourceapi.DeviceTaintRuleSpec{
					DeviceSelector: &resourceapi.DeviceTaintSelector{Pool: new("n1")},
					Taint:          resourceapi.DeviceTaint{Key: "drain", Effect: resourceapi.DeviceTaintEffectNoSchedule},
				},
			})
		},
		tc.Gate("DRADeviceTaintRules", true),
		tc.Pod("chat-0", tc.Using("serve"), func(p *corev1.Pod) {
			p.Namespace = "serving"
			p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResourcesStatus: []corev1.ResourceStatus{
				{Name: "claim:serve/gpu", Resources: []corev1.ResourceHealth{{ResourceID: "vendor.com/gpu=x", Health: corev1.ResourceHealthStatusUnhealthy, Message: new("too hot")}}},
				{Name: "claim:other", Resources: []corev1.ResourceHealth{{ResourceID: "vendor.com/gpu=y", Health: corev1.ResourceHealthStatusHealthy}}},
			}}}
		}),
		tc.Claim(waiting, tc.GPUs("gpu", 1)),
	)
	before := asJSON(snap)
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting), Device: tc.Driver + "/n1/x"})
	if err != nil {
		t.Fatal(err)
	}
	if asJSON(snap) != before {
		t.Error("the snapshot was changed")
	}
	got := *e.Device
	got.Requests, got.Summary, got.Outcome = nil, "", ""
	for i := range got.Taints {
		got.Taints[i].Since = nil
	}
	want := api.DeviceExplanation{
		Driver: tc.Driver, Pool: "n1", Name: "x", Slice: "n1-00", Generation: 1, Nodes: "n1", NodeCount: 1, Shared: true,
		Attributes: []api.DeviceValue{{Name: "model", Value: `"A"`}},
		Capacity:   []api.DeviceCapacity{{Name: "memory", Total: "80Gi", Consumed: "60Gi", Available: "20Gi"}},
		Counters: []api.DeviceCounter{{
			CounterSet: "board", Counter: "slices", Consumes: "3", Total: "4", Available: "1", UsedBy: []string{"x"}, CompatibilityGroups: []string{"mig"},
		}},
		Taints: []api.TaintEvidence{
			{Taint: "xid=79:NoExecute", Evidence: api.Evidence{Object: api.Ref("ResourceSlice", "", "n1-00"), Path: "spec.devices[name=x].taints", Found: "xid=79:NoExecute"}},
			{Taint: "drain:NoSchedule", Evidence: api.Evidence{Object: api.Ref("DeviceTaintRule", "", "drain"), Path: "spec.taint", Found: "drain:NoSchedule"}},
		},
		BindingConditions: []string{"ready"}, BindingFailureConditions: []string{"broken"},
		Holders: []api.DeviceHolder{{
			Namespace: "serving", Name: "serve", Request: "gpu", ShareID: "share-serve", ConsumedCapacity: map[string]string{"memory": "60Gi"},
			ReservedFor: []api.ObjectRef{api.Ref("Pod", "serving", "chat-0")}, Conditions: []string{"Ready=True (Attached)"},
		}},
		Health: []api.DeviceHealth{{Pod: api.Ref("Pod", "serving", "chat-0"), Health: "Unhealthy", Message: "too hot"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

// TestDeviceNames finds devices by the forms of their names.
func TestDeviceNames(t *testing.T) {
	inPool := func(name string) func(*resourceapi.ResourceSlice) {
		return func(s *resourceapi.ResourceSlice) { s.Spec.Pool.Name = name }
	}
	parts := []any{
		tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Device("gpu-0"), tc.Device("gpu-1"), tc.Device("only")).Change(inPool("rack/n1")),
		tc.Pool("n2", tc.Device("gpu-0"), tc.Device("gpu-1")).Change(inPool("rack/n2")), tc.Claim(waiting, tc.GPUs("gpu", 1)),
	}
	tests := map[string]struct {
		device, node string
		want         string
		hint         string
	}{
		"all of it":          {device: tc.Driver + "/rack/n1/gpu-0", want: "rack/n1 gpu-0"},
		"without the driver": {device: "rack/n2/gpu-1", want: "rack/n2 gpu-1"},
		"alone":              {device: "only", want: "rack/n1 only"},
		"by the node":        {device: "gpu-0", node: "n2", want: "rack/n2 gpu-0"},
		"ambiguous":          {device: "gpu-0", hint: "write one of: gpu.example.com/rack/n1/gpu-0, gpu.example.com/rack/n2/gpu-0"},
		"near":               {device: "onlyy", hint: "did you mean only?"},
		"far":                {device: "tpu", hint: "existing devices: gpu-0, gpu-1, only"},
		"in the pool":        {device: tc.Driver + "/rack/n2/elephant", hint: "its pool has: gpu-0, gpu-1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := Explain(t.Context(), tc.Cluster(parts...), Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting), Device: test.device, Node: test.node})
			var target *TargetError
			switch {
			case test.want == "" && (!errors.As(err, &target) || !strings.HasPrefix(target.Hint, test.hint) && !strings.HasSuffix(err.Error(), "; "+test.hint)):
				t.Errorf("error %v, want the hint %q", err, test.hint)
			case test.want != "" && (err != nil || e.Device.Pool+" "+e.Device.Name != test.want):
				t.Errorf("found %v, %v", e, err)
			}
		})
	}
	e, err := Explain(t.Context(), tc.Cluster(parts...), Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting), Device: "only", Node: "n2"})
	if err != nil {
		t.Fatal(err)
	}
	checks := e.Device.Requests[0].Checks
	if at := slices.IndexFunc(checks, func(c api.DeviceCheck) bool { return c.Outcome == api.CheckFailed }); at < 0 || checks[at].Message != "it is for n1, not for n2" {
		t.Errorf("a device of another node: %s", asJSON(checks))
	}
}

// TestOutOfReach asks about devices that no node can reach, or only another one
// than the one of the question.
func TestOutOfReach(t *testing.T) {
	zone := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
	}}}
	whole := func(change func(*resourceapi.ResourceSlice)) any {
		return tc.Pool("s", tc.Device("x")).Change(func(s *resourceapi.ResourceSlice) { s.Spec.NodeName = nil; change(s) })
	}
	single := func(change func(*resourceapi.Device)) any {
		return tc.Pool("s", tc.Device("x").Change(change)).Change(func(s *resourceapi.ResourceSlice) {
			s.Spec.NodeName, s.Spec.PerDeviceNodeSelection = nil, new(true)
		})
	}
	tests := map[string]struct {
		slice   any
		node    string
		message string
		want    api.Evidence
	}{
		"name of the slice": {
			slice:   whole(func(s *resourceapi.ResourceSlice) { s.Spec.NodeName = new("n9") }),
			message: "the node does not exist",
			want:    api.Evidence{Path: "spec.nodeName", Found: "n9", Required: "a node of the cluster"},
		},
		"selector of the slice": {
			slice:   whole(func(s *resourceapi.ResourceSlice) { s.Spec.NodeSelector = zone }),
			message: "no node matches the node selector",
			want:    api.Evidence{Path: "spec.nodeSelector", Found: "nodes with zone=a", Required: "a node of the cluster"},
		},
		"name of the device": {
			slice:   single(func(d *resourceapi.Device) { d.NodeName = new("n9") }),
			message: "the node does not exist",
			want:    api.Evidence{Path: "spec.devices[name=x].nodeName", Found: "n9", Required: "a node of the cluster"},
		},
		"selector of the device": {
			slice:   single(func(d *resourceapi.Device) { d.NodeSelector = zone }),
			message: "no node matches the node selector",
			want:    api.Evidence{Path: "spec.devices[name=x].nodeSelector", Found: "nodes with zone=a", Required: "a node of the cluster"},
		},
		"another node": {
			slice: single(func(d *resourceapi.Device) { d.NodeName = new("n2") }), node: "n1",
			message: "it is for n2, not for n1",
			want:    api.Evidence{Path: "spec.devices[name=x].nodeName", Found: "n2", Required: "n1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(tc.Nodes("n1", "n2"), test.slice, tc.Claim(waiting, tc.GPUs("gpu", 1)))
			e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting), Device: "x", Node: test.node})
			if err != nil {
				t.Fatal(err)
			}
			test.want.Object = api.Ref("ResourceSlice", "", "s-00")
			for _, check := range e.Device.Requests[0].Checks {
				switch {
				case check.Check == "Reach":
					if diff := cmp.Diff([]api.Evidence{test.want}, check.Evidence); diff != "" || check.Message != test.message {
						t.Errorf("message %q, evidence (-want +got):\n%s", check.Message, diff)
					}
				case check.Outcome == api.CheckNotEvaluated && test.node != "" && check.Message != "the node cannot reach it":
					t.Errorf("%s: %s", check.Check, check.Message)
				}
			}
		})
	}
}

// TestWhereOfMixedDevices: devices of which only some name a node are not said
// to be there.
func TestWhereOfMixedDevices(t *testing.T) {
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("s", tc.Device("x").Change(func(d *resourceapi.Device) { d.NodeName = new("n9") }), tc.Device("y").Change(func(d *resourceapi.Device) {
		d.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n8"}}}}}}
	})).Change(func(s *resourceapi.ResourceSlice) {
		s.Spec.NodeName, s.Spec.PerDeviceNodeSelection = nil, new(true)
	}), tc.Claim(waiting, tc.GPUs("gpu", 1)))
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
	if err != nil {
		t.Fatal(err)
	}
	if rejected := e.Claims[0].Requests[0].Rejected; len(rejected) != 1 || rejected[0].Where != "pool s" {
		t.Errorf("rejected: %s", asJSON(rejected))
	}
}
