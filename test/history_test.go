// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gotest.tools/v3/golden"
	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/diff"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
)

// TestHistories compares the history of a pod that is created, fits, and fits no longer after an
// upgrade of a driver.
func TestHistories(t *testing.T) {
	read := func(name string) *snapshot.Snapshot {
		s, err := files.Load(t.Context(), []string{filepath.Join("..", "docs", "diff", name)}, files.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before, after := read("before.yaml"), read("after.yaml")
	empty := *before
	empty.Pods = slices.DeleteFunc(slices.Clone(before.Pods), func(p *corev1.Pod) bool { return p.Name == "train" })
	empty.TakenAt = before.TakenAt.Add(-time.Minute)
	missed := recording.Missed{Since: after.TakenAt.Add(-time.Minute), Reason: "the API server did not answer"}
	moments := []recording.Moment{{Snapshot: &empty}, {Snapshot: before}, {Snapshot: after, Missed: &missed}}
	h, err := diff.History(t.Context(), func(yield func(recording.Moment, error) bool) {
		for _, m := range moments {
			if !yield(m, nil) {
				return
			}
		}
	}, explain.Options{Object: api.Ref(api.KindPod, "ml", "train")})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := render.History(&text, h, time.UTC, render.Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, text.String(), filepath.Join("histories", "text.golden"))
	document, err := json.MarshalIndent(h, "", "    ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, string(document)+"\n", filepath.Join("histories", "json.golden"))
}
