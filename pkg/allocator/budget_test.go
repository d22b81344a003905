// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
)

// TestCheckIsGivenUp asserts that a search ends after so many steps, at the same
// one each time, and that this is not taken for an answer.
func TestCheckIsGivenUp(t *testing.T) {
	snap, c := hopeless()
	a := newAllocator(t, snap)
	const steps = 10_000
	var used []int64
	for range 3 {
		ctx, budget := WithBudget(t.Context(), steps)
		v := a.Check(ctx, tc.Node(tc.Node1), []*resourceapi.ResourceClaim{c.ResourceClaim})
		if v.Outcome != GivenUp || !errors.Is(v.Err, ErrBudgetSpent) {
			t.Errorf("got %s (%v), want GivenUp", v.Outcome, v.Err)
		}
		if !budget.Spent() || ctx.Err() == nil {
			t.Error("the budget is not spent")
		}
		budget.End()
		used = append(used, budget.Used())
	}
	if used[0] <= steps || used[0] > 2*steps || len(slices.Compact(used)) != 1 {
		t.Errorf("used %d steps of %d", used, steps)
	}
}

// TestBudgetIsEnough asserts that a search that ends in time takes the same steps
// each time, and has the same answer with just as many.
func TestBudgetIsEnough(t *testing.T) {
	snap, _ := hopeless()
	claims := []*resourceapi.ResourceClaim{tc.Claim("c", tc.Request("r", tc.ClassA, 31)).ResourceClaim}
	a := newAllocator(t, snap)
	ctx, budget := WithBudget(t.Context(), 1_000_000)
	if v := a.Check(ctx, tc.Node(tc.Node1), claims); v.Outcome != Fits || budget.Spent() {
		t.Fatalf("got %s (%v) after %d steps", v.Outcome, v.Err, budget.Used())
	}
	budget.End()
	for missing, want := range map[int64]Outcome{0: Fits, 1: GivenUp} {
		limited, exact := WithBudget(t.Context(), budget.Used()-missing)
		if v := a.Check(limited, tc.Node(tc.Node1), claims); v.Outcome != want {
			t.Errorf("with %d steps too few: got %s (%v), want %s", missing, v.Outcome, v.Err, want)
		}
		exact.End()
	}
}

// TestBudgetWithinBudget asserts that an inner budget has no more steps than the
// outer one has left, and uses it up.
func TestBudgetWithinBudget(t *testing.T) {
	ctx, outer := WithBudget(t.Context(), 10)
	defer outer.End()
	look := func(ctx context.Context, steps int64) { _ = Counted(ctx, steps).Err() }

	within, inner := WithBudget(ctx, 4)
	look(within, 5)
	inner.End()
	if !inner.Spent() || outer.Spent() || outer.Used() != 5 || ctx.Err() != nil {
		t.Errorf("inner budget spent: %t, outer: %t with %d steps, %v", inner.Spent(), outer.Spent(), outer.Used(), ctx.Err())
	}

	within, inner = WithBudget(ctx, 100)
	look(within, 5)
	if inner.Spent() {
		t.Error("spent, although as many steps were left")
	}
	look(within, 1)
	inner.End()
	inner.End()
	if !inner.Spent() || !outer.Spent() || outer.Used() != 11 || !errors.Is(context.Cause(ctx), ErrBudgetSpent) {
		t.Errorf("inner budget spent: %t, outer: %t with %d steps, %v", inner.Spent(), outer.Spent(), outer.Used(), context.Cause(ctx))
	}
}

// TestCheckAllTakesStepsInOrder asserts that checks in parallel come out as they do
// one after the other, wherever the budget ends.
func TestCheckAllTakesStepsInOrder(t *testing.T) {
	const count = 12
	objects := []any{tc.IncubatingGates(), tc.Class(tc.ClassA, tc.DriverA)}
	var nodes []*corev1.Node
	for i := range count {
		name := fmt.Sprintf("node-%02d", i)
		var devices []tc.DeviceWrapper
		for d := range 4 + i*5%9 {
			devices = append(devices, tc.Device(fmt.Sprintf("d%d", d)))
		}
		nodes = append(nodes, tc.Node(name))
		objects = append(objects, tc.Slice(name, tc.DriverA, name, devices...).OnNode(name))
	}
	a := newAllocator(t, tc.Snapshot(objects...))
	many := tc.Claim("c", tc.Request("r", tc.ClassA, 20)).ResourceClaim
	failing := tc.Claim("c", tc.Request("r", "other", 1)).ResourceClaim
	claimsFor := func(node *corev1.Node) ([]*resourceapi.ResourceClaim, error) {
		if node.Name == "node-09" {
			return []*resourceapi.ResourceClaim{failing}, nil
		}
		return []*resourceapi.ResourceClaim{many}, nil
	}
	seen := map[Outcome]int{}
	for steps := int64(2000); steps < 200_000; steps = steps * 5 / 4 {
		ctx, budget := WithBudget(t.Context(), steps)
		want := make([]Outcome, count)
		for i, node := range nodes {
			want[i] = NotTried
			if i == 0 || want[i-1] != Failed && want[i-1] != NotTried {
				claims, _ := claimsFor(node)
				want[i] = a.Check(ctx, node, claims).Outcome
			}
			seen[want[i]]++
		}
		budget.End()

		ctx, parallel := WithBudget(t.Context(), steps)
		var got []Outcome
		for _, verdict := range a.CheckAll(ctx, nodes, claimsFor) {
			got = append(got, verdict.Outcome)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d steps: got %v, one after the other %v", steps, got, want)
		}
		if parallel.Spent() != budget.Spent() || !budget.Spent() && parallel.Used() != budget.Used() {
			t.Errorf("%d steps: used %d, one after the other %d", steps, parallel.Used(), budget.Used())
		}
		parallel.End()
	}
	for _, outcome := range []Outcome{DoesNotFit, GivenUp, Failed, NotTried} {
		if seen[outcome] == 0 {
			t.Errorf("never %s: %v", outcome, seen)
		}
	}
}
