// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/planning"
)

// TestPlanFitsTerminal has a reason with a name that is wider than what the other columns
// leave of 80: no line is wider than the terminal, which would break it anywhere.
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
		if err := planning.Plan(&out, plan, render.Options{Width: width}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%d columns: got\n%s\nwant\n%s", width, out.String(), want)
		}
	}
}
