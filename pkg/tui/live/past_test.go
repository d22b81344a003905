// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
)

// recordedStates returns a recording of states, a second each, and the times at which something changed.
func recordedStates(states []*snapshot.Snapshot) (moments Moments, begins time.Time) {
	begins = time.Date(2026, 9, 1, 9, 0, 0, 0, time.UTC)
	for i, s := range states {
		s.TakenAt = begins.Add(time.Duration(i) * time.Second)
	}
	return func(_ context.Context, from time.Time) iter.Seq2[recording.Moment, error] {
		return func(yield func(recording.Moment, error) bool) {
			first := true
			for i, s := range states {
				if i+1 < len(states) && !states[i+1].TakenAt.After(from) {
					continue
				}
				if first && from.After(s.TakenAt) {
					at := *s
					at.TakenAt = from
					s = &at
				}
				first = false
				if !yield(recording.Moment{Snapshot: s}, nil) {
					return
				}
			}
		}
	}, begins
}

// TestStep goes through a recording at random. It is always at the state that is due, and stops at
// both ends.
func TestStep(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	base := fleet.Random(1).Snapshot
	var states, different []*snapshot.Snapshot
	for i := range 1500 {
		s := *base
		if i > 0 {
			s = *states[i-1]
		}
		if i == 0 || random.IntN(3) > 0 {
			s.Nodes = slices.Clone(base.Nodes)
			s.Nodes[0] = s.Nodes[0].DeepCopy()
			different = append(different, &s)
		}
		states = append(states, &s)
	}
	moments, begins := recordedStates(states)
	at := len(different) / 2
	p, err := NewPast(t.Context(), moments, begins, different[at].TakenAt)
	if err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		if got := p.Snapshot(); !same(got, different[at]) {
			t.Fatalf("at %v, want the state of %v", got.TakenAt, different[at].TakenAt)
		}
	}
	step := func(later bool) {
		t.Helper()
		_, err := p.Step(later)
		next := at + 1
		if !later {
			next = at - 1
		}
		var end *EndError
		switch {
		case next < 0 || next == len(different):
			if !errors.As(err, &end) || end.Later != later {
				t.Fatalf("at the end: %v", err)
			}
			next = at
		case err != nil:
			t.Fatal(err)
		}
		at = next
		check()
	}
	check()
	for _, later := range []bool{true, false, true} {
		// It is more than what is kept.
		for range len(different) + 2 {
			step(later)
		}
	}
	for range 300 {
		later := random.IntN(2) == 0
		for range random.IntN(30) {
			step(later)
		}
	}
}

// TestToCause goes to the moments at which a cause begins and ends.
func TestToCause(t *testing.T) {
	healthy := fleet.Mixed(20)
	fleet.AddWaiting(healthy, 2)
	broken := *healthy
	broken.Classes = nil
	var states []*snapshot.Snapshot
	for i := range 30 {
		s := *healthy
		if i >= 10 && i < 20 {
			s = broken
		}
		s.Nodes = slices.Clone(s.Nodes)
		s.Nodes[0] = s.Nodes[0].DeepCopy()
		states = append(states, &s)
	}
	moments, begins := recordedStates(states)
	p, err := NewPast(t.Context(), moments, begins, begins)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		later bool
		want  int
	}{{true, 10}, {true, 20}, {false, 10}} {
		if _, err := p.ToCause(t.Context(), step.later, ""); err != nil {
			t.Fatal(err)
		}
		if got := int(p.Snapshot().TakenAt.Sub(begins) / time.Second); got != step.want {
			t.Errorf("%+v: at %d", step, got)
		}
	}
	var end *EndError
	if _, err := p.ToCause(t.Context(), false, ""); !errors.As(err, &end) {
		t.Errorf("before the first moment: %v", err)
	}
}
