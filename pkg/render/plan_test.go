// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// TestPlanFitsTerminal covers a reason with a name that is wider than what the other
// columns leave of 80: no line is wider than the terminal, which would break it anywhere.
func TestPlanFitsTerminal(t *testing.T) {
	plan := &api.Plan{Counts: api.PlanCounts{Never: 1, Placed: 1}, NotModeled: "scores", Pods: []api.PlannedPod{
		{Position: 1, Namespace: "research", Name: "pretrain-0", Outcome: api.PlanUndetermined, Reason: "Node gpu-03: at most 4 with the same resource.kubernetes.io/pcieRoot; pool gpu-09 is not used."},
		{Position: 2, Namespace: "research", Name: "train-1", Outcome: api.PlanPlaced, Node: "gpu-03"},
	}}
	for width, want := range map[int]string{
		80: `
1         0  research/pretrain-0  Undetermined
    Node gpu-03: at most 4 with the same resource.kubernetes.io/pcieRoot; pool
      gpu-09 is not used.
2         0  research/train-1     Placed        gpu-03
`,
		120: `
1         0  research/pretrain-0  Undetermined  Node gpu-03: at most 4 with the same resource.kubernetes.io/pcieRoot;
                                                pool gpu-09 is not used.
2         0  research/train-1     Placed        gpu-03
`,
	} {
		var out strings.Builder
		if err := render.Plan(&out, plan, nil, render.Options{Width: width}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%d columns: got\n%s\nwant\n%s", width, out.String(), want)
		}
	}
}

// TestPlanOfEqualPods covers one row for the pods of a workload that wait for the same, and
// says that they cannot all have it.
func TestPlanOfEqualPods(t *testing.T) {
	behind := []api.BlockingPod{{Namespace: "ml", Name: "notebook", Node: "n1", Devices: []api.AllocatedDevice{{Driver: "d", Pool: "n1", Device: "gpu-0"}}}}
	wait := func(position int, name, job string) api.PlannedPod {
		pod := api.PlannedPod{Position: position, Namespace: "ml", Name: name, Outcome: api.PlanWaiting, Behind: behind, BehindWith: position - 1}
		if job != "" {
			pod.Owner = api.Ref("Job", "ml", job)
		}
		return pod
	}
	plan := &api.Plan{NotModeled: "scores", Pods: []api.PlannedPod{wait(1, "bare", ""), wait(2, "train-a", "train"), wait(3, "train-b", "train"), wait(4, "eval-a", "eval")}}
	for wide, want := range map[bool][]string{
		false: {
			"  1         0  ml/bare                Waiting  behind ml/notebook (1 device on n1)\n",
			"2-3         0  ml/job/train (2 pods)  Waiting  behind ml/notebook (1 device on n1), after 1 pod that waits for the same, one after another\n",
			"  4         0  ml/eval-a              Waiting  behind ml/notebook (1 device on n1), after 3 pods that wait for the same\n",
		},
		true: {"ml/train-a  Waiting  behind ml/notebook (n1: gpu-0), after 1 pod that waits for the same\n", "ml/train-b  Waiting  behind ml/notebook (n1: gpu-0), after 2 pods that wait for the same\n"},
	} {
		var out strings.Builder
		if err := render.Plan(&out, plan, nil, render.Options{Wide: wide}); err != nil {
			t.Fatal(err)
		}
		for _, line := range want {
			if !strings.Contains(out.String(), line) {
				t.Errorf("wide %t: no %q in\n%s", wide, line, out.String())
			}
		}
	}
}
