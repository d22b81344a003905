// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package save

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// everything has one object of each kind.
func everything(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func mustLoad(t testing.TB, text string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Load(t.Context(), []string{"-"}, snapshot.Options{Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// requireEqual compares all that a saved snapshot tells.
func requireEqual(t testing.TB, want, got *snapshot.Snapshot) {
	t.Helper()
	if !want.TakenAt.Equal(got.TakenAt) {
		t.Errorf("taken at: want %v, got %v", want.TakenAt, got.TakenAt)
	}
	parts := func(s *snapshot.Snapshot) []any {
		return []any{
			s.ServerVersion, s.Gates, s.Gaps, s.Nodes, s.Namespaces, s.Pods, s.Events, s.Slices, s.Classes, s.Claims,
			s.Templates, s.TaintRules, s.PoolStatuses, s.PodGroups, s.Workloads, s.Queued,
		}
	}
	w, g := parts(want), parts(got)
	for i := range w {
		if !equality.Semantic.DeepEqual(w[i], g[i]) {
			t.Errorf("snapshots differ (-want +got):\n%s", cmp.Diff(w[i], g[i]))
		}
	}
}

func TestSnapshot(t *testing.T) {
	want := mustLoad(t, everything(t))
	for _, format := range []Format{JSON, YAML} {
		var saved bytes.Buffer
		if err := Snapshot(&saved, want, format); err != nil {
			t.Fatal(err)
		}
		requireEqual(t, want, mustLoad(t, saved.String()))
	}
	var saved bytes.Buffer
	if err := Snapshot(&saved, want, JSON); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(saved.String(), "\n"); lines != 1+18+1 {
		t.Errorf("want one object a line, got %d lines", lines)
	}
	if err := Snapshot(&saved, want, "xml"); err == nil {
		t.Error("want an error for an unknown format")
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	want := mustLoad(t, everything(t))
	for _, name := range []string{"a.json", "b.yaml", "c.yml", "d.json.gz", "e.yaml.gz", "a.json"} {
		path := filepath.Join(dir, name)
		if err := File(t.Context(), want, path); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v", name, info.Mode())
		}
		got, err := snapshot.Load(t.Context(), []string{path}, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		requireEqual(t, want, got)
	}
	err := File(t.Context(), want, filepath.Join(dir, "f.txt"))
	if err == nil || !strings.Contains(err.Error(), "expected .json, .yaml, .yml") {
		t.Errorf("unknown extension: got %v", err)
	}
	lost := filepath.Join(dir, "no", "such", "directory.json")
	if err := File(t.Context(), want, lost); err == nil || err.Error() != "save snapshot as "+lost+": no such file or directory" {
		t.Errorf("missing directory: got %v", err)
	}
	broken := *want
	broken.Claims = append(broken.Claims[:0:0], want.Claims...)
	broken.Claims[0] = broken.Claims[0].DeepCopy()
	broken.Claims[0].Status.Devices[0].Data.Raw = []byte("{")
	if err := File(t.Context(), &broken, filepath.Join(dir, "g.json")); err == nil {
		t.Error("want an error for an object that cannot be encoded")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 5 {
		t.Errorf("want no files left behind, got %v", entries)
	}
}

// TestPreviewSurvives saves a snapshot with a preview and loads it again.
func TestPreviewSurvives(t *testing.T) {
	preview, err := snapshot.LoadPreview(t.Context(), []string{"-"}, snapshot.Options{Stdin: strings.NewReader(`
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-9-gpu-0, annotations: {dra.kubectl.dev/preview: example@1}}
spec: {driver: gpu.example.com, nodeName: node-9, pool: {name: node-9, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}
`)})
	if err != nil {
		t.Fatal(err)
	}
	with := mustLoad(t, `
apiVersion: v1
kind: Node
metadata: {name: node-9}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-9-gpu-x7w2k}
spec: {driver: gpu.example.com, nodeName: node-9, pool: {name: node-9, generation: 7, resourceSliceCount: 1}, devices: [{name: gpu-0}]}
`).WithPreview(preview)
	want := with.PreviewAssumptions()
	if len(want) != 1 || !strings.HasSuffix(want[0], "in place of ResourceSlice node-9-gpu-x7w2k") {
		t.Errorf("want an assumption with the slice that is replaced, got %q", want)
	}
	for _, format := range []Format{JSON, YAML} {
		var saved bytes.Buffer
		if err := Snapshot(&saved, with, format); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, mustLoad(t, saved.String()).PreviewAssumptions()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}
