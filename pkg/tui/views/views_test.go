// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"path/filepath"
	"slices"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// TestTones mark classes whose selectors fail, and taints by what they do.
func TestTones(t *testing.T) {
	if classTone(&api.Class{}) != widget.Plain || classTone(&api.Class{Failing: 1}) != widget.Bad {
		t.Error("a class is not marked if its selector fails on devices")
	}
	for want, taint := range map[widget.Tone]api.Taint{
		widget.Faint: {Effect: "None"}, widget.Warning: {Effect: "NoSchedule"}, widget.Bad: {Effect: "NoExecute"},
	} {
		if got := taintTone(&taint); got != want {
			t.Errorf("%s has the tone %v, want %v", taint.Effect, got, want)
		}
	}
}

// TestNotExplainedYet covers a sign where the answer is not known yet.
func TestNotExplainedYet(t *testing.T) {
	snap, err := files.Load(t.Context(), []string{filepath.Join("..", "..", "..", "examples", "cluster")}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := live.Take(t.Context(), live.NewFixed(snap))
	if err != nil {
		t.Fatal(err)
	}
	list := newPending(p, nil)
	column := slices.Index(list.Columns(), "Answer")
	if got := list.Cell(0, column); got != "…" {
		t.Errorf("the first answer is %q", got)
	}
}
