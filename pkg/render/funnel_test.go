// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// mixed is a pod for whose request the cluster has devices of several classes:
// enough of the right one on node-3, but not with one root.
func mixed() *explain.Explanation {
	const message = "enough devices, but not with the same example.com/root: 8 wanted, the most is 4"
	return &explain.Explanation{
		Target: explain.Target{Kind: "Pod", Namespace: "ml", Name: "train-0"}, Verdict: explain.DoesNotFit, NodeCount: 4,
		Summary: "Enough devices, but not with the same example.com/root.",
		Claims: []explain.ClaimExplanation{{
			Namespace: "ml", Name: "gpus", PodClaim: "gpus", Constraints: []string{"the same example.com/root"},
			Requests: []explain.RequestExplanation{{
				Name: "gpus", DeviceClass: "gpu.example.com", Mode: "ExactCount", Needs: 8,
				Considered: 44, Pools: 6, Eligible: 13, EligibleNodes: 3, MostOnOneNode: 8, BestNode: "node-3",
				Rejected: []explain.Rejection{
					{
						Code: explain.ClassSelectorFalse, Count: 12, Label: "other class", Where: "6 nodes",
						Message: `not of class gpu.example.com: driver is "nic.example.com"`,
						Devices: []string{"nic.example.com/node-1/nic-0", "nic.example.com/node-1/nic-1", "nic.example.com/node-2/nic-0", "nic.example.com/node-2/nic-1"},
					},
					{Code: explain.DeviceAllocated, Count: 19, Label: "allocated", Message: "to claim ml/other", Where: "node-1"},
				},
			}},
		}},
		Nodes: []explain.NodeGroup{
			{Count: 1, Names: []string{"node-3"}, Verdict: explain.DoesNotFit, Code: explain.ConstraintUnsatisfiable, Message: message},
			{Count: 3, Names: []string{"node-1", "node-2", "node-4"}, Verdict: explain.DoesNotFit, Code: explain.CountUnsatisfiable, Message: "request gpus needs 8 and can have 3"},
		},
	}
}

func wantLines(t *testing.T, out string, want ...string) {
	t.Helper()
	lines := strings.Split(out, "\n")
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("no line %q in:\n%s", line, out)
		}
	}
}

func wantNot(t *testing.T, out string, unwanted ...string) {
	t.Helper()
	for _, text := range unwanted {
		if strings.Contains(out, text) {
			t.Errorf("%q should not be in:\n%s", text, out)
		}
	}
}

func TestOtherClassesAreOnlyCounted(t *testing.T) {
	out := draw(t, mixed(), Options{Width: 120})
	wantLines(t, out,
		"   32  devices of class gpu.example.com (44 in 6 pools, 12 of other classes)",
		"  -19  allocated  to claim ml/other  node-1",
	)
	wantNot(t, out, "-12", "other class  ")

	wide := draw(t, mixed(), Options{Width: 120, Wide: true})
	wantLines(t, wide,
		"   44  devices in 6 pools",
		`  -12  other class  driver is "nic.example.com"  6 nodes`,
		"       Devices of driver nic.example.com",
		"         node-1, node-2: nic-0, nic-1",
	)
}

func TestNoDeviceOfTheClass(t *testing.T) {
	e := mixed()
	r := &e.Claims[0].Requests[0]
	r.Rejected, r.Considered, r.Eligible = r.Rejected[:1], 12, 0
	out := draw(t, e, Options{Width: 120})
	wantLines(t, out, `    0  devices of class gpu.example.com (12 in 6 pools: driver is "nic.example.com")`)
	wantNot(t, out, "left", "----")
}

func TestLeft(t *testing.T) {
	const title = "   13  left on 3 nodes"
	tests := map[string]struct {
		change func(*explain.Explanation)
		want   string
	}{
		"constraint": {
			func(*explain.Explanation) {},
			title + ", the most on node-3: 8, but not with the same example.com/root: 8 wanted, the most is 4",
		},
		"another conflict": {
			func(e *explain.Explanation) {
				e.Nodes[0].Code, e.Nodes[0].Message = explain.RequestsCompete, "requests a and b each fit alone, not together"
			},
			title + ", the most on node-3: 8; requests a and b each fit alone, not together",
		},
		"the other claim's constraint": {
			func(e *explain.Explanation) { e.Claims[0].Constraints = nil },
			title + ": the most is 8 (node-3)",
		},
		"another request's counters": {
			func(e *explain.Explanation) {
				e.Nodes[0].Code, e.Nodes[0].Message = explain.CountersExhausted, "request nic needs 1 and can have none"
			},
			title + ": the most is 8 (node-3)",
		},
		"another node's": {
			func(e *explain.Explanation) { e.Nodes[0].Names = []string{"node-9"} },
			title + ", enough on node-9, but not with the same example.com/root: 8 wanted, the most is 4",
		},
		"more than a claim can have": {
			func(e *explain.Explanation) {
				e.Verdict, e.Nodes[0].Verdict, e.Nodes[0].Code = explain.Error, explain.Error, explain.ClaimLimitExceeded
				e.Claims[0].Requests[0].Needs = 33
			},
			title + ": the most is 8 (node-3)",
		},
		"it fits elsewhere": {
			func(e *explain.Explanation) { e.Verdict = explain.Fits },
			title + ": the most is 8 (node-3)",
		},
		"too few": {
			func(e *explain.Explanation) { e.Claims[0].Requests[0].MostOnOneNode = 7 },
			title + ", but never 8 on one: the most is 7 (node-3)",
		},
		"too few on the only node": {
			func(e *explain.Explanation) {
				r := &e.Claims[0].Requests[0]
				r.Eligible, r.EligibleNodes, r.MostOnOneNode = 7, 1, 7
			},
			"    7  left on 1 node (node-3), but 8 needed",
		},
		"out of reach": {
			func(e *explain.Explanation) {
				r := &e.Claims[0].Requests[0]
				r.EligibleNodes, r.MostOnOneNode, r.BestNode = 0, 0, ""
			},
			"   13  left, but no node can reach them",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := mixed()
			test.change(e)
			wantLines(t, draw(t, e, Options{Width: 140}), test.want)
		})
	}
}

func TestMessageDoesNotRepeatLabel(t *testing.T) {
	r := &explain.RequestExplanation{DeviceClass: "c"}
	tests := map[string]struct {
		code           explain.Code
		label, message string
		want           string
	}{
		"same":        {explain.NodeNotReachable, "out of reach", "out of reach", ""},
		"prefix":      {explain.PoolInvalid, "pool invalid", "pool invalid: two devices gpu-0", "two devices gpu-0"},
		"class":       {explain.ClassSelectorFalse, "other class", "not of class c: type is 1", "type is 1"},
		"other words": {explain.DeviceTainted, "tainted", "a=b:NoSchedule, not tolerated", "a=b:NoSchedule, not tolerated"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := rejectionText(r, &explain.Rejection{Code: test.code, Label: test.label, Message: test.message}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestClaimTitle(t *testing.T) {
	tests := map[string]struct {
		claim explain.ClaimExplanation
		want  string
	}{
		"claim":         {explain.ClaimExplanation{Namespace: "ml", Name: "a"}, "ResourceClaim ml/a"},
		"of a pod":      {explain.ClaimExplanation{Namespace: "ml", Name: "a", PodClaim: "gpu", Template: "t"}, "ResourceClaim ml/a, gpu of the pod, from template t"},
		"not generated": {explain.ClaimExplanation{PodClaim: "gpu", Template: "t"}, "ResourceClaim that is not generated yet, gpu of the pod, from template t"},
		"missing":       {explain.ClaimExplanation{PodClaim: "gpu"}, "Claim gpu of the pod"},
		"extended":      {explain.ClaimExplanation{ExtendedResources: true}, "ResourceClaim that the scheduler makes for the extended resources of the pod"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := claimTitle(&test.claim); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestExtendedResourceIsNamed(t *testing.T) {
	e := mixed()
	e.Claims[0].Requests[0].ExtendedResource = "example.com/gpu"
	wantLines(t, draw(t, e, Options{Width: 120}),
		"Request gpus, for example.com/gpu: 8 of class gpu.example.com, all with the same example.com/root")
}

func TestClaimWithNothingToSay(t *testing.T) {
	e := mixed()
	e.Claims = []explain.ClaimExplanation{{Namespace: "ml", Name: "typo", PodClaim: "gpu"}}
	out := draw(t, e, Options{Width: 120})
	wantNot(t, out, "typo", "\n\n\n")
	e.Claims = append(e.Claims, explain.ClaimExplanation{PodClaim: "other"})
	wantLines(t, draw(t, e, Options{Width: 120}), "ResourceClaim ml/typo, gpu of the pod", "Claim other of the pod")
}
