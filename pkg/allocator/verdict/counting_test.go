// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/internal/testquestion"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/decision"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
)

// TestAnswer covers what counting says about one node, and whether the allocator would
// search it for long.
func TestAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		parts       []any
		answer      decision.Answer
		hard, fails bool
		fits        bool
	}{
		"as many as there are":  {parts: []any{tc.Pool("n1", tc.Devices(24)...), tc.Claim("c", tc.GPUs("gpu", 24))}, answer: decision.Feasible, fits: true},
		"one too many":          {parts: []any{tc.Pool("n1", tc.Devices(24)...), tc.Claim("c", tc.GPUs("gpu", 25))}, answer: decision.Infeasible, hard: true},
		"one too many of a few": {parts: []any{tc.Pool("n1", tc.Devices(2)...), tc.Claim("c", tc.GPUs("gpu", 3))}, answer: decision.Infeasible},
		"more partitions than counters are left for": {
			parts: []any{
				tc.Pool("n1").Of(2).WithCounters("board", "slots=15"),
				tc.Pool("n1", tc.Copies(20, tc.Device("").Consuming("board", "slots=1"))...).Of(2),
				tc.Claim("c", tc.GPUs("gpu", 16)),
			},
			answer: decision.Infeasible, hard: true,
		},
		"values that are not distinct": {
			parts:  []any{tc.Pool("n1", tc.Devices(24, "root=r")...), tc.Claim("c", tc.GPUs("gpu", 2)).Distinct("gpu.example.com/root")},
			answer: decision.Infeasible,
		},
		"shares": {
			parts: []any{
				tc.Gate("DRAConsumableCapacity", true), tc.Pool("n1", tc.Device("nic", "memory:=10").Shareable()),
				tc.Claim("c", tc.GPUs("a", 1).WithCapacity("memory", "6"), tc.GPUs("b", 1).WithCapacity("memory", "4")),
			},
			answer: decision.Feasible, fits: true,
		},
		"a share too large": {
			parts: []any{
				tc.Gate("DRAConsumableCapacity", true), tc.Pool("n1", tc.Device("nic", "memory:=10").Shareable()),
				tc.Claim("c", tc.GPUs("a", 1).WithCapacity("memory", "6"), tc.GPUs("b", 1).WithCapacity("memory", "5")),
			},
			answer: decision.Infeasible,
		},
		"a selector that fails": {
			parts:  []any{tc.Pool("n1", tc.Devices(24)...), tc.Claim("c", tc.GPUs("gpu", 25, `device.attributes["gpu.example.com"].model == "A"`))},
			answer: decision.Infeasible, fails: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append(test.parts, tc.Nodes("n1"))...)
			q := testquestion.Of(t, snap, nil)
			node := q.Reach.Candidates[0]
			if got := verdict.CountingAnswer(t.Context(), q, node); got != test.answer {
				t.Errorf("answer %v, want %v", got, test.answer)
			}
			if got := verdict.IsHard(t.Context(), q, node); got != test.hard {
				t.Errorf("hard: %t, want %t", got, test.hard)
			}
			if got := verdict.IsHardAlone(t.Context(), q, node); got != test.hard {
				t.Errorf("hard where nothing is accounted for: %t, want %t", got, test.hard)
			}
			if got := verdict.MayFail(t.Context(), q, node); got != test.fails {
				t.Errorf("may fail: %t, want %t", got, test.fails)
			}
			fits, known := verdict.FitsByCounting(t.Context(), q, q.Cluster, node, snap.Claims)
			if fits != test.fits || !known {
				t.Errorf("fits: %t, known: %t; want %t", fits, known, test.fits)
			}
		})
	}
}

// TestConfirmer agrees with the allocator, and does not wait for it in vain.
func TestConfirmer(t *testing.T) {
	for count, want := range map[int64]bool{24: true, 25: false} {
		snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(24)...), tc.Claim("c", tc.GPUs("gpu", count)))
		q := testquestion.Of(t, snap, nil)
		var confirmer verdict.Confirmer
		got, err := confirmer.Fits(t.Context(), q, q.Cluster, q.Reach.Candidates[0], snap.Claims)
		if err != nil || got != want {
			t.Errorf("%d of 24 fit: %t (%v), want %t", count, got, err, want)
		}
	}
}

// TestCheckUnless asks the allocator about no node that it would search in vain.
func TestCheckUnless(t *testing.T) {
	snap := tc.Cluster(tc.Nodes("few", "hard", "many"), tc.Pool("few", tc.Devices(2)...), tc.Pool("hard", tc.Devices(24)...), tc.Pool("many", tc.Devices(25)...), tc.Claim("c", tc.GPUs("gpu", 25)))
	q := testquestion.Of(t, snap, nil)
	verdicts, hard := verdict.CheckUnless(t.Context(), q, q.Reach.Candidates, func(ctx context.Context, node *corev1.Node) bool { return verdict.IsHard(ctx, q, node) })
	if len(hard) != 1 || hard[0] != 1 {
		t.Errorf("hard nodes %v, want the second", hard)
	}
	for i, want := range []allocator.Outcome{allocator.DoesNotFit, allocator.DoesNotFit, allocator.Fits} {
		if verdicts[i].Outcome != want {
			t.Errorf("%s: %s, want %s", q.Reach.Candidates[i].Name, verdicts[i].Outcome, want)
		}
	}
}
