// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestCountingIsCorrected asserts that the allocator has the last word on nodes that were
// decided by counting, and that no earlier conclusion is left.
func TestCountingIsCorrected(t *testing.T) {
	snap := tc.Cluster(tc.Gate("DRAConsumableCapacity", false), tc.Nodes("a", "b", "c"),
		tc.Pool("a", tc.Devices(24, "memory:=8")...), tc.Pool("b", tc.Devices(24, "memory:=8")...), tc.Pool("c", tc.Devices(2)...),
		tc.Claim(waiting, tc.GPUs("gpu", 25).WithCapacity("memory", "1")))
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
	if err != nil {
		t.Fatal(err)
	}
	if e.Verdict != api.Error || !strings.Contains(e.Summary, "the DRAConsumableCapacity feature is disabled") {
		t.Errorf("%s: %s, want the allocator's error", e.Verdict, e.Summary)
	}
	if e.Conflict != nil || len(e.Remedies) > 0 {
		t.Errorf("conflict %+v and remedies %+v, want none", e.Conflict, e.Remedies)
	}
	if len(e.Nodes) != 2 || e.Nodes[0].Verdict != api.Error {
		t.Errorf("nodes %+v, want an error and nodes that were not tried", e.Nodes)
	}
}

// TestSlowNodeIsTold asserts that the answer tells where it is from if the
// allocator does not end its search, whatever the number of such nodes.
func TestSlowNodeIsTold(t *testing.T) {
	snap := tc.Cluster(tc.Nodes("a", "b", "c"),
		tc.Pool("a", tc.Devices(24)...), tc.Pool("b", tc.Devices(24)...), tc.Pool("c", tc.Devices(26, "model=x")...),
		tc.Claim(waiting, tc.GPUs("gpu", 27)))
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
	if err != nil {
		t.Fatal(err)
	}
	if e.Verdict != api.DoesNotFit || len(e.Remedies) != 1 || e.Remedies[0].Change != "request 26 devices instead of 27 in request gpu" {
		t.Errorf("%s with remedies %+v, want one for node c, though the others are searched for long", e.Verdict, e.Remedies)
	}
	reported := 0
	for _, text := range e.Assumptions {
		if strings.Contains(text, "nothing fits on node a: this is proved by counting") {
			reported++
		}
	}
	if reported != 1 {
		t.Errorf("assumptions %q, want that node a was decided by counting", e.Assumptions)
	}
}

// TestHardHasRemedy asserts that the remedy is found where the allocator would
// search for long and find nothing, again and again, and that it does not depend on
// the clock, which stands still the second time.
func TestHardHasRemedy(t *testing.T) {
	remedies := map[string]string{
		"groups one short: 8 claims for whole groups of 7": "request 1 device in request train-06.gpu; and request 1 device in request train-07.gpu",
		"prioritized: 4 lists of distinct devices":         "remove the constraint: different gpu.example.com/root",
	}
	for _, i := range instances() {
		change := remedies[i.name]
		if change == "" {
			continue
		}
		delete(remedies, i.name)
		t.Run(i.name, func(t *testing.T) {
			snap := tc.Cluster(i.short...)
			explained := func(t *testing.T) *api.Explanation {
				t.Helper()
				e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindPod, tc.Namespace, waiting)})
				if err != nil {
					t.Fatal(err)
				}
				return e
			}
			e := explained(t)
			if !slices.ContainsFunc(e.Remedies, func(r api.Remedy) bool { return r.Change == change }) {
				t.Errorf("remedies %+v, want %q", e.Remedies, change)
			}
			synctest.Test(t, func(t *testing.T) {
				if diff := cmp.Diff(e, explained(t)); diff != "" {
					t.Errorf("while the clock stands still (-running +still):\n%s", diff)
				}
			})
		})
	}
	if len(remedies) > 0 {
		t.Errorf("no such instances: %v", remedies)
	}
}

// TestAdviceIsGivenUp asserts that the answer says so where the search for a
// conflict and for remedies takes too many steps.
func TestAdviceIsGivenUp(t *testing.T) {
	for _, i := range instances()[3:7] {
		x := surveyed(t, tc.Cluster(i.short...))
		x.out.Verdict = api.DoesNotFit
		ctx, budget := allocator.WithBudget(t.Context(), 50_000)
		if _, err := x.advise(ctx); err != nil {
			t.Fatal(err)
		}
		budget.End()
		if len(x.out.Assumptions) != 1 || !strings.Contains(x.out.Assumptions[0], "not evaluated: further conflicts and remedies") {
			t.Errorf("%s: assumptions %q, want that the search was given up", i.name, x.out.Assumptions)
		}
	}
}
