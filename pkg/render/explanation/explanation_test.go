// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

func nodes(prefix string, from, to int) []string {
	var names []string
	for i := from; i <= to; i++ {
		names = append(names, fmt.Sprintf("%s-%d", prefix, i))
	}
	return names
}

// tooMany returns a claim for more devices than any node has with one pcieRoot.
func tooMany() *api.Explanation {
	return &api.Explanation{
		Target:   api.Ref("ResourceClaim", "ml", "train-gpus"),
		Verdict:  api.DoesNotFit,
		Summary:  "There are 8 devices, but at most 4 with one resource.kubernetes.io/pcieRoot (12 nodes).",
		Stage:    api.StageAllocation,
		PodCount: 1,
		Conflict: &api.Conflict{Node: "node-23", AnyOneSuffices: true, OtherNodeCount: 11, Facts: []api.ConflictFact{
			{Text: "request gpus wants 8 devices"},
			{Text: "all devices have the same resource.kubernetes.io/pcieRoot"},
		}},
		MoreRemedies: 3,
		Remedies: []api.Remedy{
			{
				Actor: api.ActorUser, Change: "ask for 4 instead of 8 devices in request gpus", Node: "node-23", Nodes: 12,
				Devices: []api.AllocatedDevice{{Device: "gpu-0"}, {Device: "gpu-1"}, {Device: "gpu-2"}, {Device: "gpu-3"}},
				Diff:    "--- train.yaml\n+++ train.yaml\n@@ -9,7 +9,7 @@\n       - name: gpus\n         exactly:\n           deviceClassName: gpu.nvidia.com\n-          count: 8\n+          count: 4\n       constraints:\n       - matchAttribute: resource.kubernetes.io/pcieRoot\n",
			},
			{Actor: api.ActorNobody, Change: "claim serving/chat-0 gives back its devices", Node: "node-23", Devices: []api.AllocatedDevice{{Device: "gpu-0"}}},
		},
		Pods: []api.PodStatus{
			{Namespace: "ml", Name: "train-0", Phase: "Pending", AgeSeconds: 840, Stage: api.StageAllocation},
		},
		SchedulerMessage: &api.SchedulerMessage{
			Text:   "0/42 nodes are available: 42 cannot allocate all claims. still not schedulable, preemption: 0/42 nodes are available: 42 Preemption is not helpful for scheduling.",
			Source: "condition PodScheduled",
			Time:   &metav1.Time{Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		},
		Allocator: api.AllocatorInfo{
			Library: "v0.37.2", Channel: "incubating", Cluster: "v1.36.3", FeatureSource: "metrics",
			Features: []string{"DRADeviceTaints", "DRAPrioritizedList"},
		},
		Claims: []api.ClaimExplanation{{
			Namespace: "ml", Name: "train-gpus",
			Constraints: []string{"the same resource.kubernetes.io/pcieRoot"},
			Requests: []api.RequestExplanation{{
				Name: "gpus", DeviceClass: "gpu.nvidia.com", Mode: "ExactCount", Needs: 8,
				Considered: 336, Pools: 42, Eligible: 66, EligibleNodes: 12, MostOnOneNode: 4, BestNode: "node-23",
				Rejected: []api.Rejection{
					{
						Code: api.RequestSelectorFalse, Count: 160, Label: "selector 1",
						Message: "memory is 40Gi on all of them, must be 80Gi", Where: "A100-SXM4-40GB on 20 nodes",
						Evidence: []api.Evidence{{
							Object: api.Ref("ResourceSlice", "", "node-1-gpu"), Path: "spec.devices[0].capacity.memory", Found: "40Gi", Required: "80Gi", Count: 160,
						}},
						Devices: []string{"gpu.nvidia.com/node-1/gpu-0", "gpu.nvidia.com/node-1/gpu-1"},
					},
					{
						Code: api.DeviceAllocated, Count: 102, Label: "allocated",
						Message: "to 31 claims, 60 devices in namespace serving", Where: "17 nodes",
					},
					{
						Code: api.DeviceTainted, Count: 8, Label: "tainted",
						Message: "gpu.nvidia.com/xid=79:NoExecute", Where: "node-17",
					},
				},
				EligibleDevices: []string{"gpu.nvidia.com/node-23/gpu-0", "gpu.nvidia.com/node-23/gpu-1"},
				Selectors:       selectorTraces(),
			}},
		}},
		NodeCount: 42,
		Nodes: []api.NodeGroup{
			{
				Count: 12, Names: nodes("node", 23, 34), Verdict: api.DoesNotFit, Code: api.ConstraintUnsatisfiable,
				Message: "there are 8 devices, but at most 4 with one resource.kubernetes.io/pcieRoot",
			},
			{Count: 30, Names: nodes("node", 1, 30), Verdict: api.DoesNotFit, Code: api.CountUnsatisfiable, Message: "no eligible device"},
		},
		NextSteps: []api.NextStep{
			{Actor: api.ActorUser, Text: "ask for 4 devices instead of 8"},
			{Actor: api.ActorAdmin, Text: "free devices with one pcieRoot: see who holds them with kubectl get resourceclaims -A"},
			{Actor: api.ActorNobody, Text: "until claims of namespace serving are gone"},
		},
	}
}

// selectorTraces returns a selector of one part and one of each kind.
func selectorTraces() []api.SelectorTrace {
	return []api.SelectorTrace{
		{
			Source: "class", Object: api.Ref("DeviceClass", "", "gpu.nvidia.com"), Path: "spec.selectors[0].cel.expression",
			Expression: `device.driver == "gpu.nvidia.com"`, Cost: 4, CostLimit: 1000000,
			Outcomes: api.SelectorOutcomes{True: 336},
			Parts: []api.SelectorPart{{
				Expression: `device.driver == "gpu.nvidia.com"`, Requirement: `"gpu.nvidia.com"`, Outcomes: api.SelectorOutcomes{True: 336},
				Values: []api.SelectorValue{{Found: `driver is "gpu.nvidia.com"`, Outcome: api.OutcomeTrue, Count: 336}},
			}},
		},
		{
			Source: "request", Object: api.Ref("ResourceClaim", "ml", "train-gpus"), Path: "spec.devices.requests[0].exactly.selectors[0].cel.expression",
			Expression: `device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) >= 0 && (device.attributes["gpu.nvidia.com"].ecc || device.attributes["gpu.nvidia.com"].model == "H100")`,
			Cost:       2400000, CostLimit: 1000000,
			Outcomes: api.SelectorOutcomes{True: 170, False: 160, Fails: 6},
			Error:    "no such key: ecc",
			Notes:    []string{"In the worst case it costs 2,400,000, the limit is 1,000,000."},
			Parts: []api.SelectorPart{
				{
					Expression: `device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) >= 0`, Requirement: "80Gi or more",
					Outcomes: api.SelectorOutcomes{True: 176, False: 160},
					Values: []api.SelectorValue{
						{Found: "memory is 80Gi", Outcome: api.OutcomeTrue, Count: 176},
						{Found: "memory is 40Gi", Outcome: api.OutcomeFalse, Count: 100},
						{Found: "memory is 24Gi", Outcome: api.OutcomeFalse, Count: 50},
					},
					MoreValues: 2,
				},
				{
					Expression: `device.attributes["gpu.nvidia.com"].ecc || device.attributes["gpu.nvidia.com"].model == "H100"`,
					Outcomes:   api.SelectorOutcomes{True: 170, Fails: 6, NotEvaluated: 160},
					Operands: []api.SelectorPart{
						{
							Expression: `device.attributes["gpu.nvidia.com"].ecc`, Outcomes: api.SelectorOutcomes{True: 170, Fails: 6, NotEvaluated: 160},
							Values: []api.SelectorValue{
								{Found: "ecc is true", Outcome: api.OutcomeTrue, Count: 170},
								{Found: "ecc is not set", Outcome: api.OutcomeFails, Count: 6},
							},
						},
						{
							Expression: `device.attributes["gpu.nvidia.com"].model == "H100"`, Outcomes: api.SelectorOutcomes{False: 6, NotEvaluated: 330},
							Values: []api.SelectorValue{{Found: `model is "T4"`, Outcome: api.OutcomeFalse, Count: 6}},
						},
					},
				},
			},
		},
	}
}

// TestBlockedHeadline says what devices there are beside what blocks the pod.
func TestBlockedHeadline(t *testing.T) {
	fitting := []api.NodeGroup{{Count: 2, Names: []string{"node-1", "node-2"}, Verdict: api.Fits}, {Count: 1, Names: []string{"node-3"}, Verdict: api.DoesNotFit, Code: api.NodeUnsuitable}}
	tests := map[string]struct {
		nodes     []api.NodeGroup
		placement *api.Placement
		want      string
	}{
		"available": {fitting, &api.Placement{Node: "node-1"}, "Pod ml/train-0 is blocked, although devices are available on 2 of 3 nodes\n"},
		"allocated": {fitting, nil, "Pod ml/train-0 is blocked, although its claims are allocated\n"},
		"unknown":   {nil, nil, "Pod ml/train-0 is blocked\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out := draw(t, &api.Explanation{
				Target: api.Ref("Pod", "ml", "train-0"), Verdict: api.Blocked, Code: api.QuotaExceeded,
				Nodes: test.nodes, NodeCount: 3, Placement: test.placement,
			}, render.Options{Width: 80})
			if !strings.HasPrefix(out, test.want) {
				t.Errorf("%q, want %q", out, test.want)
			}
		})
	}
}

// fits returns a pod with two claims that would find its devices.
func fits() *api.Explanation {
	return &api.Explanation{
		Target: api.Ref("Pod", "ml", "infer-0"), Verdict: api.Fits,
		Summary:  "The allocator picks node-2.",
		Stage:    api.StageAllocation,
		PodCount: 1,
		Pods:     []api.PodStatus{{Namespace: "ml", Name: "infer-0", Phase: "Pending", AgeSeconds: 5, Stage: api.StageAllocation}},
		Claims: []api.ClaimExplanation{
			{
				Namespace: "ml", Name: "infer-0-gpu-x7k2p", Template: "one-gpu", PodClaim: "gpu",
				Requests: []api.RequestExplanation{{
					Name: "gpu", DeviceClass: "gpu.example.com", Mode: "ExactCount", Needs: 1,
					Considered: 4, Pools: 2, Eligible: 3, EligibleNodes: 2, MostOnOneNode: 2, BestNode: "node-2",
					Rejected: []api.Rejection{{Code: api.DeviceAllocated, Count: 1, Label: "allocated", Message: "to claim ml/other", Where: "node-1"}},
				}},
			},
			{
				Template: "shared-nic", PodClaim: "nic",
				Constraints: []string{"the same example.com/numa"},
				Requests: []api.RequestExplanation{
					{Name: "nic/fast", DeviceClass: "nic.example.com", Mode: "All", Considered: 2, Pools: 2, Eligible: 2, EligibleNodes: 2, MostOnOneNode: 1, BestNode: "node-1"},
					{Name: "nic/slow", DeviceClass: "nic.example.com", Mode: "ExactCount", Needs: 1, AdminAccess: true, Considered: 1, Pools: 1, Eligible: 0},
				},
			},
		},
		NodeCount: 3,
		Nodes: []api.NodeGroup{
			{Count: 1, Names: []string{"node-2"}, Verdict: api.Fits, Score: 8},
			{Count: 1, Names: []string{"node-1"}, Verdict: api.Fits},
			{Count: 1, Names: []string{"control-plane"}, Verdict: api.DoesNotFit, Code: api.NodeUnsuitable, Message: "taint node-role.kubernetes.io/control-plane:NoSchedule is not tolerated"},
		},
		Placement: &api.Placement{Node: "node-2", Score: 8, Claims: []api.PlacementClaim{
			{Namespace: "ml", Name: "infer-0-gpu-x7k2p", Devices: []api.AllocatedDevice{{Request: "gpu", Driver: "gpu.example.com", Pool: "node-2", Device: "gpu-0"}}},
			{Namespace: "ml", Name: "infer-0-nic", Devices: []api.AllocatedDevice{{
				Request: "nic/fast", Driver: "nic.example.com", Pool: "node-2", Device: "nic-0",
				ShareID: "0aa1", ConsumedCapacity: map[string]string{"bandwidth": "10G", "buffers": "4"},
			}}},
		}},
		Assumptions: []string{
			"Pods on other nodes could not be read, so the CPU and memory of the nodes were taken to be free.",
		},
	}
}

// allocated returns a claim that holds devices, one of which is gone.
func allocated() *api.Explanation {
	return &api.Explanation{
		Target: api.Ref("ResourceClaim", "ml", "train-gpus"), Verdict: api.Allocated,
		Summary: "It has 2 devices for node-1; 1 of them is in no ResourceSlice any more.",
		Stage:   api.StageRunning, PodCount: 12,
		Pods: []api.PodStatus{
			{Namespace: "ml", Name: "a", Phase: "Running", Node: "node-1", Stage: api.StageRunning},
			{Namespace: "ml", Name: "b", Phase: "Succeeded", Node: "node-1"},
			{Namespace: "ml", Name: "c", Node: "node-1", Stage: api.StagePreparation},
			{Namespace: "ml", Name: "d"},
		},
		Claims: []api.ClaimExplanation{{
			Namespace: "ml", Name: "train-gpus",
			Allocation: &api.Allocation{
				Since: &metav1.Time{Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}, AgeSeconds: 3 * 86400,
				Nodes: "node-1", ReservedFor: []api.ObjectRef{api.Ref("Pod", "ml", "a"), api.Ref("Pod", "ml", "b"), api.Ref("Pod", "ml", "c"), api.Ref("Pod", "ml", "d"), api.Ref("Pod", "ml", "e"), api.Ref("Pod", "ml", "f")},
				Devices: []api.AllocatedDevice{
					{Request: "gpus", Driver: "gpu.example.com", Pool: "node-1", Device: "gpu-0", AdminAccess: true},
					{Request: "gpus", Driver: "gpu.example.com", Pool: "node-1", Device: "gpu-1", Missing: true},
				},
			},
		}},
	}
}

// noClass returns a claim that makes the allocator itself fail.
func noClass() *api.Explanation {
	const reason = "request gpu: DeviceClass gpus.example.com does not exist; did you mean gpu.example.com"
	return &api.Explanation{
		Target: api.Ref("ResourceClaim", "ml", "typo"), Verdict: api.Error,
		Summary: "R" + reason[1:] + ".", NodeCount: 2,
		Claims:    []api.ClaimExplanation{{Namespace: "ml", Name: "typo"}},
		Nodes:     []api.NodeGroup{{Count: 2, Names: nodes("node", 1, 2), Verdict: api.Error, Code: api.ClassNotFound, Message: reason}},
		NextSteps: []api.NextStep{{Actor: api.ActorUser, Text: "name an existing DeviceClass"}},
	}
}

// manyGroups returns a large cluster in which every node has a reason of its own.
func manyGroups() *api.Explanation {
	e := &api.Explanation{
		Target: api.Ref("Deployment", "ml", "infer"), Verdict: api.Undetermined,
		Summary: "This user may not list resourceclaims.", Stage: api.StageNodeFit, NodeCount: 1200,
		Claims: []api.ClaimExplanation{{
			Namespace: "ml", Name: "c", ExtendedResources: true,
			Requests: []api.RequestExplanation{{Name: "r", DeviceClass: "gpu.example.com", Needs: 1}},
		}},
	}
	for i := range 12 {
		e.Nodes = append(e.Nodes, api.NodeGroup{
			Count: 100, Names: nodes(fmt.Sprintf("a-node-with-a-rather-long-name-in-zone-%d.example.com", i), 1, 100),
			Verdict: api.Undetermined, Message: fmt.Sprintf("cpu: 4 wanted, %d left", i%4),
		})
	}
	return e
}

// stuck returns a pod that does not start on its node.
func stuck() *api.Explanation {
	e := allocated()
	e.Target = api.Ref("Pod", "ml", "train-0")
	e.Summary = "DRA driver gpu.example.com is not registered with the kubelet of node node-1 (12 times, last 30s ago)."
	e.Stage = api.StagePreparation
	e.StageEvidence = []api.Evidence{
		{Object: api.Ref("Event", "ml", "train-0.18a2"), Path: "message", Found: "Failed to prepare dynamic resources: DRA driver gpu.example.com is not registered", Required: "no event FailedPrepareDynamicResources of Pod/ml/train-0"},
		{Object: api.Ref("ResourceSlice", "", ""), Path: "spec.nodeName", Found: "none of driver gpu.example.com for node node-1", Required: "what the driver publishes where it runs"},
		{Object: api.Ref("Node", "", "node-1"), Path: "status.nodeInfo.kubeletVersion", Found: "v1.34.1", Required: "v1.34.2 or newer"},
		{Object: api.Ref("Pod", "ml", "train-0"), Path: "metadata.deletionTimestamp", Found: "2026-07-01T11:40:30Z"},
	}
	return e
}

// hostile returns an explanation with escape sequences in everything that a cluster can
// set.
func hostile() *api.Explanation {
	const evil = "x\x1b[2J\u202egnp\x07\r\nerror:\u009b1m\xff"
	return &api.Explanation{
		Target: api.Ref(evil, evil, evil), Verdict: api.Error, Summary: evil,
		Pods:             []api.PodStatus{{Namespace: evil, Name: evil, Phase: evil, Node: evil, Stage: api.Stage(evil)}},
		StageEvidence:    []api.Evidence{{Object: api.Ref(evil, evil, evil), Path: evil, Found: evil, Required: evil}},
		SchedulerMessage: &api.SchedulerMessage{Text: evil + evil, Source: evil},
		Allocator:        api.AllocatorInfo{Library: evil, Channel: evil, Cluster: evil, FeatureSource: evil, Features: []string{evil}},
		Assumptions:      []string{evil},
		Claims: []api.ClaimExplanation{{
			Namespace: evil, Name: evil, Template: evil, PodClaim: evil, Constraints: []string{evil},
			Allocation: &api.Allocation{
				Nodes: evil, ReservedFor: []api.ObjectRef{api.Ref(evil, evil, evil)},
				Devices: []api.AllocatedDevice{{
					Request: evil, Driver: evil, Pool: evil, Device: evil, ShareID: evil,
					ConsumedCapacity: map[string]string{evil: evil},
				}},
			},
			Requests: []api.RequestExplanation{{
				Name: evil, DeviceClass: evil, Considered: 1, Pools: 1, Eligible: 1, EligibleNodes: 1, BestNode: evil,
				Rejected: []api.Rejection{{
					Label: evil, Message: evil + evil, Where: evil, Devices: []string{evil},
					Evidence: []api.Evidence{{Object: api.Ref(evil, evil, evil), Path: evil, Found: evil, Required: evil}},
				}},
				EligibleDevices: []string{evil},
				Selectors: []api.SelectorTrace{{
					Source: evil, Object: api.Ref(evil, evil, evil), Path: evil, Expression: evil, Error: evil, Notes: []string{evil},
					Parts: []api.SelectorPart{{
						Expression: evil, Requirement: evil, Outcomes: api.SelectorOutcomes{False: 1},
						Values:   []api.SelectorValue{{Found: evil, Outcome: api.OutcomeFalse, Count: 1}},
						Operands: []api.SelectorPart{{Expression: evil}},
					}},
				}},
			}},
		}},
		Nodes:     []api.NodeGroup{{Count: 1, Names: []string{evil}, Verdict: api.Error, Message: evil, Code: api.Code(evil)}},
		Placement: &api.Placement{Node: evil, Claims: []api.PlacementClaim{{Namespace: evil, Name: evil}}},
		NextSteps: []api.NextStep{{Actor: evil, Text: evil}},
	}
}

func draw(t *testing.T, e *api.Explanation, opts render.Options) string {
	t.Helper()
	before := e.DeepCopy()
	var out bytes.Buffer
	if err := Full(&out, e, opts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, e); diff != "" {
		t.Errorf("the explanation was changed (-before +after):\n%s", diff)
	}
	return out.String()
}

// ofOtherScheduler returns a pod that fits, if its scheduler decides as kube-scheduler
// does.
func ofOtherScheduler() *api.Explanation {
	e := fits()
	e.OtherScheduler = &api.OtherScheduler{Name: "volcano", Message: "scheduler volcano decides about the pod, and the verdict is that of kube-scheduler: it holds if volcano is one of its profiles"}
	return e
}

func TestExplanation(t *testing.T) {
	examples := map[string]*api.Explanation{
		"no-class": noClass(), "mixed": mixed(),
		"too-many": tooMany(), "fits": fits(), "allocated": allocated(), "many-groups": manyGroups(), "stuck": stuck(), "hostile": hostile(), "other-scheduler": ofOtherScheduler(),
	}
	forms := map[string]render.Options{
		"80":       {Width: 80},
		"140":      {Width: 140},
		"80-color": {Width: 80, Color: true},
		"140-wide": {Width: 140, Wide: true},
	}
	for name, e := range examples {
		for form, opts := range forms {
			t.Run(name+"-"+form, func(t *testing.T) {
				golden.Assert(t, draw(t, e, opts), name+"-"+form+".golden")
			})
		}
	}
}

func TestLinesStayWithinWidth(t *testing.T) {
	for _, width := range []int{80, 100, 140, 200} {
		for name, e := range map[string]*api.Explanation{"too-many": tooMany(), "fits": fits(), "allocated": allocated(), "stuck": stuck()} {
			for line := range strings.Lines(draw(t, e, render.Options{Width: width})) {
				line = strings.TrimSuffix(line, "\n")
				if got := ansi.StringWidth(line); got > min(width, widest) {
					t.Errorf("%s at width %d: a line is %d wide: %q", name, width, got, line)
				}
				if line != strings.TrimRight(line, " ") {
					t.Errorf("%s at width %d: trailing blanks: %q", name, width, line)
				}
			}
		}
	}
}

func TestColorOnlyMarks(t *testing.T) {
	for name, e := range map[string]*api.Explanation{"too-many": tooMany(), "fits": fits(), "many-groups": manyGroups()} {
		colored := draw(t, e, render.Options{Width: 80, Color: true})
		if got, want := ansi.Strip(colored), draw(t, e, render.Options{Width: 80}); got != want {
			t.Errorf("%s: colors change the text (-without +with):\n%s", name, cmp.Diff(want, got))
		}
		if !strings.Contains(colored, "\x1b[") {
			t.Errorf("%s: no colors", name)
		}
	}
}

func TestNothingHostileGetsThrough(t *testing.T) {
	for _, wide := range []bool{false, true} {
		out := draw(t, hostile(), render.Options{Width: 80, Wide: wide})
		if clean := render.Escape(strings.ReplaceAll(out, "\n", "")); clean != strings.ReplaceAll(out, "\n", "") {
			t.Errorf("wide=%v: the output has characters that need escaping:\n%q", wide, out)
		}
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "error:") {
				t.Errorf("wide=%v: a name forged a line: %q", wide, line)
			}
		}
	}
}

func TestNamesStayWhole(t *testing.T) {
	e := manyGroups()
	out := draw(t, e, render.Options{Width: 80, Wide: true})
	for _, group := range e.Nodes {
		for _, name := range group.Names {
			if !strings.Contains(out, name) {
				t.Fatalf("node %s is missing or cut", name)
			}
		}
	}
}

func TestNextSteps(t *testing.T) {
	e := tooMany()
	e.NextSteps = []api.NextStep{
		{Actor: api.ActorUser, Text: "ask for less"},
		{Actor: api.ActorAdmin, Text: "ask for less"},
		{Actor: api.ActorUser, Text: "ask for less"},
		{Actor: api.ActorUser, Text: "remove the constraint, of which there are so many that this line is too long for the terminal"},
	}
	out := draw(t, e, render.Options{Width: 80})
	if want := `Next steps
  you, admin  ask for less
  you         remove the constraint, of which there are so many that this line
              is too long for the terminal
`; !strings.HasSuffix(out, want) {
		t.Errorf("want at the end:\n%s\ngot:\n%s", want, out)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriteError(t *testing.T) {
	err := Full(brokenPipe{}, tooMany(), render.Options{})
	if !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v, want the error of the writer", err)
	}
}

// TestPlacementOfPlannedClaims names what a claim is made for where it has no name yet.
func TestPlacementOfPlannedClaims(t *testing.T) {
	e := &api.Explanation{Placement: &api.Placement{Node: "n1", Claims: []api.PlacementClaim{
		{Namespace: "ml", Name: "known"}, {Namespace: "ml", PodClaim: "gpu"}, {Namespace: "ml"},
	}}}
	p := newPage(render.Options{Width: 80})
	writePlacement(p, e)
	var printed strings.Builder
	if err := p.Print(&printed); err != nil {
		t.Fatal(err)
	}
	text := printed.String()
	for _, want := range []string{"ResourceClaim ml/known\n", "Claim gpu of the pod\n", "ResourceClaim to be created by the scheduler"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// widest is how wide a table is at most, however wide the terminal is.
const widest = 160
