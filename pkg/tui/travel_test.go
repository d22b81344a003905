// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
)

// TestTravelNamesChanges says what a step through a recording changed in every list, once.
func TestTravelNamesChanges(t *testing.T) {
	before := *example(t)
	after := before
	after.TakenAt = before.TakenAt.Add(time.Minute)
	after.Nodes = slices.Clone(before.Nodes)
	at := slices.IndexFunc(after.Nodes, func(n *corev1.Node) bool { return n.Name == "gpu-03" })
	after.Nodes[at] = after.Nodes[at].DeepCopy()
	after.Nodes[at].Spec.Unschedulable = true
	moments := func(_ context.Context, from time.Time) iter.Seq2[recording.Moment, error] {
		return func(yield func(recording.Moment, error) bool) {
			for _, s := range []*snapshot.Snapshot{&before, &after} {
				if s == &before && !after.TakenAt.After(from) {
					continue
				}
				if !yield(recording.Moment{Snapshot: s}, nil) {
					return
				}
			}
		}
	}
	past, err := live.NewPast(t.Context(), moments, before.TakenAt, before.TakenAt)
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t, Options{Source: past, Past: past, Fixed: true}, 120, 40)
	s.lacks("back at")
	const changed = ": +1 cause, -1"
	s.keys("3")
	s.lacks(changed)
	s.keys("]")
	s.shows("since ", changed)
	s.lacks("back at")
	s.keys("[")
	s.shows("back at  2026-09-15")
	s.shows("back from ", changed)
	for _, view := range []string{"9", "1"} {
		s.keys(view)
		if n := strings.Count(s.screen(), changed); n != 1 {
			t.Errorf("view %s says %d times what changed:\n%s", view, n, s.screen())
		}
	}
}
