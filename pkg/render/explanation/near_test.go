// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"gotest.tools/v3/golden"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

func gpus(from, to int) []string {
	var ids []string
	for i := from; i <= to; i++ {
		ids = append(ids, fmt.Sprintf("gpu.example.com/gpu-03/gpu-%d", i))
	}
	return ids
}

// oneNode returns a pod that cannot use a node for two reasons, and whose devices would not
// do either.
func oneNode() *api.Explanation {
	return &api.Explanation{
		Target: api.Ref("Pod", "ml", "train-0"), Verdict: api.DoesNotFit,
		Summary:  "Taint team=a:NoSchedule is not tolerated; not enough cpu: 12 wanted, 3500m left of 64; apart from that, request gpus needs 4 and can have 3: 3 not matching the selector, 1 allocated and 1 tainted.",
		Stage:    api.StageAllocation,
		PodCount: 1,
		Pods:     []api.PodStatus{{Namespace: "ml", Name: "train-0", Phase: "Pending", AgeSeconds: 840, Stage: api.StageAllocation}},
		Node: &api.NodeExplanation{
			Name: "gpu-03",
			Misfits: []api.NodeMisfit{
				{Code: api.NodeUnsuitable, Message: "taint team=a:NoSchedule is not tolerated", Evidence: api.Evidence{Object: api.Ref("Node", "", "gpu-03"), Path: "spec.taints[0]", Found: "team=a:NoSchedule", Required: "a toleration in the pod"}},
				{Code: api.NodeUnsuitable, Message: "not enough cpu: 12 wanted, 3500m left of 64", Evidence: api.Evidence{Object: api.Ref("Node", "", "gpu-03"), Path: "status.allocatable['cpu']", Found: "3500m left of 64", Required: "12"}},
			},
			Pools: []api.ReachablePool{
				{Driver: "gpu.example.com", Name: "gpu-03", Generation: 4, Slices: 1, ExpectedSlices: 1, Devices: 8, Usable: true},
				{Driver: "gpu.example.com", Name: "rack-7", Generation: 2, Slices: 1, ExpectedSlices: 2, Devices: 1, Code: api.PoolIncomplete, Message: "1 of 2 slices of pool rack-7 published", Evidence: &api.Evidence{Object: api.Ref("Pool", "", "gpu.example.com/rack-7"), Path: "spec.pool.resourceSliceCount", Found: "1 slice", Required: "2"}},
				{Driver: "nic.example.com", Name: "gpu-03", Generation: 2, Slices: 1, ExpectedSlices: 1, Devices: 3, Usable: true, Code: api.PoolObsolete, Message: "older than generation 2 of pool gpu-03"},
			},
			AllocatorVerdict: api.DoesNotFit, Code: api.CountUnsatisfiable,
			Message: "request gpus needs 4 and can have 3: 3 not matching the selector, 1 allocated and 1 tainted",
		},
		Claims: []api.ClaimExplanation{{
			Namespace: "ml", Name: "train-0-gpus-x7k2p", Template: "four", PodClaim: "gpus",
			Requests: []api.RequestExplanation{{
				Name: "gpus", DeviceClass: "gpu.example.com", Mode: "ExactCount", Needs: 4,
				Considered: 12, Pools: 3, Eligible: 3, EligibleNodes: 1, MostOnOneNode: 3, BestNode: "gpu-03",
				Rejected: []api.Rejection{
					{Code: api.ClassSelectorFalse, Count: 3, Label: "other class", Message: `not of class gpu.example.com: driver is "nic.example.com"`, Devices: []string{"nic.example.com/gpu-03/nic-0", "nic.example.com/gpu-03/nic-1", "nic.example.com/gpu-03/nic-2"}},
					{Code: api.PoolIncomplete, Count: 1, Label: "pool incomplete", Message: "1 of 2 slices of pool rack-7 published", Devices: []string{"gpu.example.com/rack-7/far-0"}},
					{Code: api.RequestSelectorFalse, Count: 3, Label: "selector 2", Message: "memory is 40Gi, must be 80Gi or more", Devices: gpus(0, 2)},
					{Code: api.DeviceAllocated, Count: 1, Label: "allocated", Message: "to claim serving/chat-0", Devices: gpus(3, 3)},
					{Code: api.DeviceTainted, Count: 1, Label: "tainted", Message: "gpu.example.com/xid=79:NoExecute", Devices: gpus(4, 4)},
				},
				EligibleDevices: gpus(5, 7),
			}},
		}},
		NodeCount: 1,
		Nodes:     []api.NodeGroup{{Count: 1, Names: []string{"gpu-03"}, Verdict: api.DoesNotFit, Code: api.NodeUnsuitable, Message: "taint team=a:NoSchedule is not tolerated"}},
	}
}

// oneDevice returns a device that is wrong in more than one way.
func oneDevice() *api.Explanation {
	since := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	passed := func(check, label string) api.DeviceCheck {
		return api.DeviceCheck{Check: check, Label: label, Outcome: api.CheckPassed}
	}
	return &api.Explanation{
		Target: api.Ref("Pod", "ml", "train-0"), Verdict: api.DoesNotFit, NodeCount: 42,
		Summary: "Request gpus needs 4 and can have 3: 5 allocated (node-23).",
		Device: &api.DeviceExplanation{
			Driver: "gpu.example.com", Pool: "gpu-03", Name: "gpu-4", Outcome: api.Rejected,
			Summary: "Request gpus: selector (memory is 40Gi, must be 80Gi or more); it would also fail: allocated and tainted.",
			Slice:   "gpu-03-gpu.example.com-mfzwm", Generation: 4, Nodes: "gpu-03", NodeCount: 1, Shared: true,
			Attributes:        []api.DeviceValue{{Name: "productName", Value: `"Atlas-40"`}, {Name: "resource.kubernetes.io/pcieRoot", Value: `"pci0000:17"`}},
			Capacity:          []api.DeviceCapacity{{Name: "memory", Total: "40Gi", Consumed: "10Gi", Available: "30Gi"}},
			Counters:          []api.DeviceCounter{{CounterSet: "card-1", Counter: "slices", Consumes: "3", Total: "7", Available: "1", UsedBy: []string{"gpu-0", "gpu-1", "gpu-2"}, CompatibilityGroups: []string{"mig"}}},
			Taints:            []api.TaintEvidence{{Taint: "gpu.example.com/xid=79:NoExecute", Since: &since, Evidence: api.Evidence{Object: api.Ref("DeviceTaintRule", "", "broken")}}},
			BindingConditions: []string{"example.com/attached"}, BindingFailureConditions: []string{"example.com/lost"},
			Holders: []api.DeviceHolder{{Namespace: "serving", Name: "chat-0", Request: "gpu", ShareID: "0aa1", ConsumedCapacity: map[string]string{"memory": "10Gi"}, Since: &since, ReservedFor: []api.ObjectRef{api.Ref("Pod", "serving", "chat-0")}, Conditions: []string{"Ready=True"}}},
			Health:  []api.DeviceHealth{{Pod: api.Ref("Pod", "serving", "chat-0"), Health: "Unhealthy", Message: "ECC error count exceeded"}},
			Requests: []api.DeviceRequest{
				{
					Claim: api.Ref("ResourceClaim", "ml", "train-0-gpus-x7k2p"), Name: "gpus", DeviceClass: "gpu.example.com", Node: "gpu-03", Outcome: api.Rejected,
					Message: "memory is 40Gi, must be 80Gi or more",
					Checks: []api.DeviceCheck{
						passed("Class", "class gpu.example.com"), passed("Node", "node takes the pod"), passed("Reach", "in reach of the node"), passed("Slice", "slice"), passed("Pool", "pool"), passed("BindingConditions", "binding conditions"),
						{Check: "Selector", Label: "selector", Outcome: api.CheckFailed, Code: api.RequestSelectorFalse, Message: "memory is 40Gi, must be 80Gi or more", Evidence: []api.Evidence{{Object: api.Ref("ResourceClaim", "ml", "train-0-gpus-x7k2p"), Path: "spec.devices.requests[0].exactly.selectors[0].cel.expression", Found: "memory is 40Gi", Required: `device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0`}}},
						{Check: "InUse", Label: "allocated", Outcome: api.CheckFailed, Code: api.DeviceAllocated, Message: "to claim serving/chat-0"},
						passed("CapacityLeft", "capacity left"), passed("NodeOperations", "node operations"),
						{Check: "Partition", Label: "shared counters", Outcome: api.CheckNotEvaluated, Message: "it is in use and has taken its part already"},
						{Check: "Taint", Label: "tainted", Outcome: api.CheckFailed, Code: api.DeviceTainted, Message: "gpu.example.com/xid=79:NoExecute"},
						passed("Constraint", "the same resource.kubernetes.io/pcieRoot"),
					},
				},
				{
					Claim: api.Ref("ResourceClaim", "ml", "train-0-gpus-x7k2p"), Name: "nic", DeviceClass: "nic.example.com", Node: "gpu-03", Outcome: api.Rejected,
					Message: `driver is "gpu.example.com", must be "nic.example.com"`,
					Checks: []api.DeviceCheck{
						{Check: "Class", Label: "other class", Outcome: api.CheckFailed, Code: api.ClassSelectorFalse, Message: `driver is "gpu.example.com", must be "nic.example.com"`},
						passed("Node", "node takes the pod"),
					},
				},
			},
		},
	}
}

func TestNearMisses(t *testing.T) {
	for name, e := range map[string]*api.Explanation{"one-node": oneNode(), "one-device": oneDevice()} {
		for form, opts := range map[string]render.Options{"80": {Width: 80}, "140": {Width: 140}, "140-wide": {Width: 140, Wide: true}} {
			t.Run(name+"-"+form, func(t *testing.T) {
				out := draw(t, e, opts)
				golden.Assert(t, out, name+"-"+form+".golden")
				if opts.Wide {
					return
				}
				for line := range strings.Lines(out) {
					if got := ansi.StringWidth(strings.TrimSuffix(line, "\n")); got > min(opts.Width, widest) {
						t.Errorf("a line is %d wide: %q", got, line)
					}
				}
			})
		}
	}
}

// TestNodeHeadline covers the headline of each verdict for one node.
func TestNodeHeadline(t *testing.T) {
	for verdict, want := range map[api.Verdict]string{
		api.Allocated:    "Pod ml/train-0: all devices are allocated and can be used on node gpu-03\n",
		api.Fits:         "Pod ml/train-0 fits on node gpu-03\n",
		api.DoesNotFit:   "Pod ml/train-0 does not fit on node gpu-03\n",
		api.Undetermined: "Pod ml/train-0: not known whether it fits on node gpu-03\n",
		api.Blocked:      "Pod ml/train-0 is blocked\n",
		api.Error:        "Pod ml/train-0 cannot be scheduled on any node\n",
	} {
		e := oneNode()
		e.Verdict = verdict
		if out := draw(t, e, render.Options{Width: 80}); !strings.HasPrefix(out, want) {
			t.Errorf("%s: %q", verdict, out[:60])
		}
	}
}

// TestHiddenClaims: nobody can tell that a device is free without all claims.
func TestHiddenClaims(t *testing.T) {
	const reason = "you may not list claims"
	tests := map[string]struct {
		outcome api.DeviceOutcome
		held    bool
		want    []string
	}{
		"picked": {api.Picked, false, []string{
			"Device gpu.example.com/gpu-03/gpu-4 would be picked for Pod ml/train-0, as far as can be determined",
			"Request gpus of claim ml/train-0-gpus-x7k2p, on gpu-03: picked, as far as can be determined",
			"  allocated to  not known: you may not list claims",
		}},
		"a candidate": {api.Eligible, false, []string{
			"Device gpu.example.com/gpu-03/gpu-4 is eligible for Pod ml/train-0; not known whether it is picked",
			"Request gpus of claim ml/train-0-gpus-x7k2p, on gpu-03: eligible",
		}},
		"shared": {api.Rejected, true, []string{
			"Device gpu.example.com/gpu-03/gpu-4 is not eligible for Pod ml/train-0",
			"                possibly more claims: you may not list claims",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := oneDevice()
			e.Verdict = api.Undetermined
			d := e.Device
			d.Outcome, d.Requests[0].Outcome, d.HoldersUnknown = test.outcome, test.outcome, reason
			if !test.held {
				d.Holders = nil
			}
			wantLines(t, draw(t, e, render.Options{Width: 140}), test.want...)
		})
	}
}

// TestManyReasonsOnOneNode covers more reasons than a page can show.
func TestManyReasonsOnOneNode(t *testing.T) {
	e := oneNode()
	r := &e.Claims[0].Requests[0]
	r.Rejected = nil
	for i := range 50 {
		r.Rejected = append(r.Rejected, api.Rejection{Code: api.DeviceAllocated, Count: 1, Label: "allocated", Message: fmt.Sprintf("to claim c-%d", i), Devices: gpus(i, i)})
	}
	if out := draw(t, e, render.Options{Width: 80}); !strings.Contains(out, "to claim c-29 ") || strings.Contains(out, "to claim c-30 ") || !strings.Contains(out, "and 20 more reasons for 20 devices: -o wide lists them") {
		t.Errorf("not shortened:\n%s", out)
	}
	if out := draw(t, e, render.Options{Width: 80, Wide: true}); !strings.Contains(out, "to claim c-49 ") {
		t.Errorf("shortened:\n%s", out)
	}
}

func TestNothingHostileGetsIntoNearMisses(t *testing.T) {
	const evil = "x\x1b[2J\u202egnp\x07\r\nerror:\u009b1m\xff"
	node, device := hostile(), hostile()
	fact := api.Evidence{Object: api.Ref(evil, evil, evil), Path: evil, Found: evil, Required: evil}
	node.Node = &api.NodeExplanation{
		Name: evil, AllocatorVerdict: api.DoesNotFit, Message: evil,
		Misfits: []api.NodeMisfit{{Message: evil, Evidence: fact}},
		Pools:   []api.ReachablePool{{Driver: evil, Name: evil, Message: evil, Evidence: &fact}},
	}
	device.Device = &api.DeviceExplanation{
		Driver: evil, Pool: evil, Name: evil, Outcome: evil, Summary: evil, Slice: evil, Nodes: evil, HoldersUnknown: evil,
		Attributes: []api.DeviceValue{{Name: evil, Value: evil}}, Capacity: []api.DeviceCapacity{{Name: evil, Total: evil, Available: evil}},
		Counters:          []api.DeviceCounter{{CounterSet: evil, Counter: evil, Consumes: evil, Total: evil, UsedBy: []string{evil}, CompatibilityGroups: []string{evil}}},
		Taints:            []api.TaintEvidence{{Taint: evil, Evidence: fact}},
		BindingConditions: []string{evil}, BindingFailureConditions: []string{evil},
		Holders: []api.DeviceHolder{{Namespace: evil, Name: evil, Request: evil, ShareID: evil, ConsumedCapacity: map[string]string{evil: evil}, ReservedFor: []api.ObjectRef{api.Ref(evil, evil, evil)}, Conditions: []string{evil}}},
		Health:  []api.DeviceHealth{{Pod: api.Ref(evil, evil, evil), Health: evil, Message: evil}},
		Requests: []api.DeviceRequest{{Claim: api.Ref(evil, evil, evil), PodClaim: evil, Name: evil, Node: evil, Outcome: evil, Message: evil, Checks: []api.DeviceCheck{
			{Label: evil, Outcome: api.CheckFailed, Message: evil, Evidence: []api.Evidence{fact}}, {Label: evil, Outcome: api.CheckPassed},
		}}},
	}
	for name, e := range map[string]*api.Explanation{"node": node, "device": device} {
		for _, wide := range []bool{false, true} {
			out := strings.ReplaceAll(draw(t, e, render.Options{Width: 80, Wide: wide}), "\n", "")
			if render.Escape(out) != out || strings.Contains(out, evil) {
				t.Errorf("%s, wide=%v: the output has characters that need escaping:\n%q", name, wide, out)
			}
		}
	}
}

// TestMessageOfOtherRequests says of a request that the summary is not about why the
// device is not picked for it.
func TestMessageOfOtherRequests(t *testing.T) {
	e := oneDevice()
	e.Device.Outcome, e.Device.Summary = api.Eligible, "Request gpus: passes every check alone, but the allocator takes gpu-0."
	e.Device.Requests = []api.DeviceRequest{
		{Claim: api.Ref("ResourceClaim", "ml", "train-0"), Name: "gpus", Outcome: api.Eligible, Message: "passes every check alone, but the allocator takes gpu-0"},
		{Claim: api.Ref("ResourceClaim", "ml", "train-0"), Name: "spare", Outcome: api.Eligible, Message: "passes every check alone, but the allocator takes gpu-1"},
	}
	out := draw(t, e, render.Options{Width: 140})
	if n := strings.Count(out, "takes gpu-0"); n != 1 {
		t.Errorf("the reason of the summary is there %d times:\n%s", n, out)
	}
	wantLines(t, out, "  passes every check alone, but the allocator takes gpu-1")
}
