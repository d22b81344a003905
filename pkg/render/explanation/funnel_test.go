// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"slices"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// mixed returns a pod for whose request the cluster has devices of several classes: enough
// of the right one on node-3, but not with one root.
func mixed() *api.Explanation {
	const message = "enough devices, but not with the same example.com/root: 8 wanted, the most is 4"
	return &api.Explanation{
		Target: api.Ref("Pod", "ml", "train-0"), Verdict: api.DoesNotFit, NodeCount: 4,
		Summary: "Enough devices, but not with the same example.com/root.",
		Claims: []api.ClaimExplanation{{
			Namespace: "ml", Name: "gpus", PodClaim: "gpus", Constraints: []string{"the same example.com/root"},
			Requests: []api.RequestExplanation{{
				Name: "gpus", DeviceClass: "gpu.example.com", Mode: "ExactCount", Needs: 8,
				Considered: 44, Pools: 6, Eligible: 13, EligibleNodes: 3, MostOnOneNode: 8, BestNode: "node-3",
				Rejected: []api.Rejection{
					{
						Code: api.ClassSelectorFalse, Count: 12, Label: "other class", Where: "6 nodes",
						Message: `driver is "nic.example.com"`,
						Devices: []string{"nic.example.com/node-1/nic-0", "nic.example.com/node-1/nic-1", "nic.example.com/node-2/nic-0", "nic.example.com/node-2/nic-1"},
					},
					{Code: api.DeviceAllocated, Count: 19, Label: "allocated", Message: "to claim ml/other", Where: "node-1"},
				},
			}},
		}},
		Nodes: []api.NodeGroup{
			{Count: 1, Names: []string{"node-3"}, Verdict: api.DoesNotFit, Code: api.ConstraintUnsatisfiable, Message: message},
			{Count: 3, Names: []string{"node-1", "node-2", "node-4"}, Verdict: api.DoesNotFit, Code: api.CountUnsatisfiable, Message: "request gpus needs 8 and can have 3"},
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
	out := draw(t, mixed(), render.Options{Width: 120})
	wantLines(t, out,
		"   32  devices of the class  12 of 44 devices belong to other classes",
		"  -19  allocated  to claim ml/other  node-1",
	)
	wantNot(t, out, "-12", "other class  ")

	wide := draw(t, mixed(), render.Options{Width: 120, Wide: true})
	wantLines(t, wide,
		"   44  devices in 6 pools",
		`  -12  other class  driver is "nic.example.com"  6 nodes`,
		"       Devices of driver nic.example.com",
		"         node-1, node-2: nic-0, nic-1",
	)
}

// TestAsideOfTheFirstLine: it ends where the table does, if that is farther than
// the text before it.
func TestAsideOfTheFirstLine(t *testing.T) {
	e := mixed()
	e.Claims[0].Requests[0].Rejected[1].Message = "to 3 claims, 12 devices in namespace a-rather-long-one-of-research"
	wantLines(t, draw(t, e, render.Options{Width: 120}),
		"   32  devices of the class                         12 of 44 devices belong to other classes",
		"  -19  allocated  to 3 claims, 12 devices in namespace a-rather-long-one-of-research  node-1")
	wantLines(t, draw(t, e, render.Options{Width: 60}),
		"   32  devices of the class (12 of 44 devices belong to",
		"       other classes)")
}

func TestNoDeviceOfTheClass(t *testing.T) {
	e := mixed()
	r := &e.Claims[0].Requests[0]
	r.Rejected, r.Considered, r.Eligible = r.Rejected[:1], 12, 0
	out := draw(t, e, render.Options{Width: 120})
	wantLines(t, out, `    0  devices of the class; the 12 devices of other classes: driver is "nic.example.com"`)
	wantNot(t, out, "available", "----")
}

func TestAvailable(t *testing.T) {
	tests := map[string]struct {
		change func(*api.RequestExplanation)
		want   string
	}{
		"enough":           {func(*api.RequestExplanation) {}, "   13  available on 3 nodes, at most 8 on one node (node-3)"},
		"too few":          {func(r *api.RequestExplanation) { r.MostOnOneNode = 7 }, "   13  available on 3 nodes, at most 7 on one node (node-3); 8 needed on one node"},
		"on the only node": {func(r *api.RequestExplanation) { r.Eligible, r.EligibleNodes, r.MostOnOneNode = 7, 1, 7 }, "    7  available on 1 node (node-3); 8 needed on one node"},
		"none":             {func(r *api.RequestExplanation) { r.Eligible, r.EligibleNodes, r.MostOnOneNode = 0, 0, 0 }, "    0  available"},
		"all of them":      {func(r *api.RequestExplanation) { r.Needs = 0 }, "   13  available on 3 nodes, at most 8 on one node (node-3)"},
		"out of reach":     {func(r *api.RequestExplanation) { r.EligibleNodes, r.MostOnOneNode, r.BestNode = 0, 0, "" }, "   13  eligible, but no node can reach them"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := mixed()
			test.change(&e.Claims[0].Requests[0])
			wantLines(t, draw(t, e, render.Options{Width: 140}), test.want)
		})
	}
}

func TestClaimTitle(t *testing.T) {
	tests := map[string]struct {
		claim api.ClaimExplanation
		want  string
	}{
		"claim":         {api.ClaimExplanation{Namespace: "ml", Name: "a"}, "ResourceClaim ml/a"},
		"of a pod":      {api.ClaimExplanation{Namespace: "ml", Name: "a", PodClaim: "gpu", Template: "t"}, "ResourceClaim ml/a (gpu of the pod, template t)"},
		"not generated": {api.ClaimExplanation{PodClaim: "gpu", Template: "t"}, "ResourceClaim not created yet (gpu of the pod, template t)"},
		"missing":       {api.ClaimExplanation{PodClaim: "gpu"}, "Claim gpu of the pod"},
		"extended":      {api.ClaimExplanation{ExtendedResources: true}, "ResourceClaim to be created by the scheduler, for the extended resources of the pod"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := claimTitle(&test.claim); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestRequestTitle(t *testing.T) {
	tests := map[string]struct {
		request api.RequestExplanation
		want    string
	}{
		"one device":        {api.RequestExplanation{Name: "gpu", Needs: 1, DeviceClass: "c"}, "Request gpu: 1 device of class c"},
		"all":               {api.RequestExplanation{Name: "gpu", DeviceClass: "c"}, "Request gpu: all devices of class c"},
		"alternative":       {api.RequestExplanation{Name: "nic/fast", Needs: 2, DeviceClass: "c"}, "Request nic, alternative fast: 2 devices of class c"},
		"admin":             {api.RequestExplanation{Name: "gpu", Needs: 1, AdminAccess: true}, "Request gpu: 1 device, with admin access"},
		"extended resource": {api.RequestExplanation{Name: "r", Needs: 1, DeviceClass: "c", ExtendedResource: "example.com/gpu"}, "Extended resource example.com/gpu: 1 device of class c"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := requestTitle(&test.request); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestClaimWithNothingToSay(t *testing.T) {
	e := mixed()
	e.Claims = []api.ClaimExplanation{{Namespace: "ml", Name: "typo", PodClaim: "gpu"}}
	out := draw(t, e, render.Options{Width: 120})
	wantNot(t, out, "typo", "\n\n\n")
	e.Claims = append(e.Claims, api.ClaimExplanation{PodClaim: "other"})
	wantLines(t, draw(t, e, render.Options{Width: 120}), "ResourceClaim ml/typo (gpu of the pod)", "Claim other of the pod")
}
