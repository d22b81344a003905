// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// changed returns variants of a cluster in which one thing is different.
func changed(c *fleet.Case) []*snapshot.Snapshot {
	var list []*snapshot.Snapshot
	add := func(change func(s *snapshot.Snapshot)) {
		s := *c.Snapshot
		change(&s)
		list = append(list, &s)
	}
	for i := range c.Snapshot.Slices {
		add(func(s *snapshot.Snapshot) { s.Slices = slices.Delete(slices.Clone(s.Slices), i, i+1) })
	}
	for i, claim := range c.Snapshot.Claims {
		if claim.Status.Allocation != nil {
			add(func(s *snapshot.Snapshot) { s.Claims = slices.Delete(slices.Clone(s.Claims), i, i+1) })
		}
	}
	for i := range c.Snapshot.Nodes {
		add(func(s *snapshot.Snapshot) {
			node := s.Nodes[i].DeepCopy()
			node.Spec.Unschedulable = true
			s.Nodes = slices.Clone(s.Nodes)
			s.Nodes[i] = node
		})
	}
	for i := range c.Snapshot.TaintRules {
		add(func(s *snapshot.Snapshot) { s.TaintRules = slices.Delete(slices.Clone(s.TaintRules), i, i+1) })
	}
	for _, feature := range c.Features {
		list = append(list, c.Without(feature).Snapshot)
	}
	return list
}

// verdictOf returns the verdict about the waiting pod of a random cluster.
func verdictOf(t *testing.T, s *snapshot.Snapshot) api.Verdict {
	t.Helper()
	answers, err := explain.ReasonsOfEach(t.Context(), cluster.New(s), []explain.Options{{Object: api.Ref(api.KindPod, fleet.Namespace, fleet.Waiting)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return StateOf(answers[0]).Verdict
}

// TestUndo changes one thing in random clusters. Where that turns the verdict, in both directions,
// the difference names changes with which the old verdict is back, and no part of them is enough.
func TestUndo(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 10
	}
	turned, found := 0, 0
	for seed := range seeds {
		c := fleet.Random(seed)
		was := verdictOf(t, c.Snapshot)
		for i, other := range changed(c) {
			if verdictOf(t, other) == was {
				continue
			}
			for _, pair := range [][2]*snapshot.Snapshot{{c.Snapshot, other}, {other, c.Snapshot}} {
				turned++
				found += checkUndo(t, seed, i, pair[0], pair[1])
			}
		}
	}
	t.Logf("%d verdicts turned, %d explained", turned, found)
	if found < turned*9/10 || turned < int(seeds)/2 {
		t.Errorf("%d verdicts turned, %d explained", turned, found)
	}
}

// checkUndo compares two clusters between which the verdict about the pod turns. It returns how
// many sets of changes were found.
func checkUndo(t *testing.T, seed uint64, variant int, old, later *snapshot.Snapshot) int {
	t.Helper()
	d, err := Between(t.Context(), old, later, Options{})
	if err != nil {
		t.Fatalf("seed %d, variant %d: %v", seed, variant, err)
	}
	found := 0
	for i := range d.Answers {
		a := &d.Answers[i]
		if a.Object.Name != fleet.Waiting || a.Object.Namespace != fleet.Namespace {
			continue
		}
		if outcome(a.Was.Verdict) != outcome(verdictOf(t, old)) || outcome(a.Is.Verdict) != outcome(verdictOf(t, later)) {
			t.Errorf("seed %d, variant %d: %s -> %s", seed, variant, a.Was.Verdict, a.Is.Verdict)
		}
		if len(a.Undo) == 0 {
			t.Logf("seed %d, variant %d: %s -> %s: %s", seed, variant, a.Was.Verdict, a.Is.Verdict, a.Note)
			continue
		}
		found++
		for n := range a.Undo {
			t.Logf("seed %d, variant %d: %s -> %s: %s", seed, variant, a.Was.Verdict, a.Is.Verdict, a.Undo[n].Message)
		}
		checkSet(t, seed, variant, old, later, a)
	}
	return found
}

// checkSet undoes the objects of a set, all of them and parts.
func checkSet(t *testing.T, seed uint64, variant int, old, later *snapshot.Snapshot, a *api.ChangedAnswer) {
	t.Helper()
	for mask := range 1 << len(a.Undo) {
		var refs []api.ObjectRef
		settings := false
		for i := range a.Undo {
			if mask>>i&1 == 0 {
				continue
			}
			for _, o := range a.Undo[i].Objects {
				refs = append(refs, o.Object)
				settings = settings || o.Object.Kind == ""
			}
		}
		verdict := verdictOf(t, whatif.Restore(later, old, refs, settings))
		if back := outcome(verdict) == outcome(a.Was.Verdict); back != (mask == 1<<len(a.Undo)-1) {
			t.Errorf("seed %d, variant %d: %s -> %s with %d of %+v undone: %s", seed, variant, a.Was.Verdict, a.Is.Verdict, mask, a.Undo, verdict)
		}
	}
}
