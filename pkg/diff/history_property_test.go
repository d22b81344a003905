// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// withoutSome returns a list without some of its objects, at random, and none of the waiting pod's.
func withoutSome[T metav1.Object](r *rand.Rand, list []T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(o T) bool {
		return r.IntN(4) == 0 && o.GetName() != fleet.Waiting
	})
}

// changedAtRandom returns a random cluster with a part of its slices, of its nodes cordoned, of its
// allocated claims released, or of its taint rules gone.
func changedAtRandom(r *rand.Rand, whole, last *snapshot.Snapshot) *snapshot.Snapshot {
	s := *last
	switch r.IntN(6) {
	case 0:
		s.Slices = withoutSome(r, whole.Slices)
	case 1:
		s.Nodes = slices.Clone(whole.Nodes)
		for i, node := range s.Nodes {
			if r.IntN(3) == 0 {
				s.Nodes[i] = node.DeepCopy()
				s.Nodes[i].Spec.Unschedulable = true
			}
		}
	case 2:
		s.TaintRules = withoutSome(r, whole.TaintRules)
	case 3:
		s.Pods = withoutSome(r, whole.Pods)
	default:
		s.Claims = slices.Clone(whole.Claims)
		for i, claim := range s.Claims {
			if claim.Status.Allocation != nil && r.IntN(3) == 0 {
				s.Claims[i] = claim.DeepCopy()
				s.Claims[i].Status.Allocation, s.Claims[i].Status.ReservedFor = nil, nil
			}
		}
	}
	s.TakenAt = last.TakenAt.Add(time.Second)
	return &s
}

// TestVerdicts follows random clusters. After each change, the verdict is as if nothing before had
// been known. With the changes undone that an entry names, the verdict before is back.
func TestVerdicts(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	changed, undone, taken, stale := 0, 0, 0, 0
	for seed := range seeds {
		whole := fleet.Random(seed).Snapshot
		target := explain.Options{Object: api.Ref(api.KindPod, fleet.Namespace, fleet.Waiting)}
		h := &history{target: target, out: &api.History{}}
		r := rand.New(rand.NewPCG(seed, 1))
		s := whole
		for step := range 30 {
			before, entries := s, len(h.out.Entries)
			if step > 0 {
				s = changedAtRandom(r, whole, s)
			}
			if err := h.add(t.Context(), recording.Moment{Snapshot: s}); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			fresh, err := stateOf(t.Context(), cluster.New(s), target)
			if err != nil {
				t.Fatal(err)
			}
			if h.state.answer.Verdict != fresh.answer.Verdict {
				t.Errorf("seed %d, step %d: %s, and without a history %s: %s", seed, step, h.state.answer.Verdict, fresh.answer.Verdict, fresh.answer.Summary)
			}
			if h.stale {
				stale++
			} else if h.state.answer.Code != fresh.answer.Code {
				t.Errorf("seed %d, step %d: code %s, and without a history %s", seed, step, h.state.answer.Code, fresh.answer.Code)
			}
			for i := entries; i < len(h.out.Entries); i++ {
				e := &h.out.Entries[i]
				taken += len(e.Taken)
				if e.Event != api.HistoryChanged || e.Was.Verdict == e.Answer.Verdict {
					continue
				}
				changed++
				if len(e.Undo) > 0 {
					undone++
					checkEntry(t, seed, step, before, s, e, target)
				}
			}
		}
	}
	t.Logf("%d verdicts changed, %d explained; %d claims got devices; %d answers not found again", changed, undone, taken, stale)
	if changed < int(seeds)/2 || undone < changed*8/10 || taken == 0 && !testing.Short() || stale < int(seeds) {
		t.Errorf("%d verdicts changed, %d explained; %d claims got devices; %d answers not found again", changed, undone, taken, stale)
	}
}

// checkEntry undoes the changes of an entry.
func checkEntry(t *testing.T, seed uint64, step int, before, s *snapshot.Snapshot, e *api.HistoryEntry, target explain.Options) {
	t.Helper()
	var refs []api.ObjectRef
	for i := range e.Undo {
		for _, o := range e.Undo[i].Objects {
			refs = append(refs, o.Object)
		}
	}
	back, err := stateOf(t.Context(), cluster.New(whatif.Restore(s, before, refs, false)), target)
	if err != nil {
		t.Fatal(err)
	}
	if back.answer.Verdict != e.Was.Verdict {
		t.Errorf("seed %d, step %d: %s -> %s, and %s with %+v undone", seed, step, e.Was.Verdict, e.Answer.Verdict, back.answer.Verdict, refs)
	}
}
