// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
)

// everything has one object of each kind, with references between them and
// the sorts of text that a snapshot of a customer has.
//
//go:embed testdata/everything.yaml
var everything string

// requireEqual compares all that a saved snapshot tells.
func requireEqual(t *testing.T, want, got *Snapshot) {
	t.Helper()
	if !want.TakenAt.Equal(got.TakenAt) {
		t.Errorf("taken at: want %v, got %v", want.TakenAt, got.TakenAt)
	}
	parts := func(s *Snapshot) []any {
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

func TestSaveLoad(t *testing.T) {
	want := mustLoad(t, everything)
	if n := len(names(want)); n != 18 {
		t.Fatalf("want 18 objects, got %d: %v", n, names(want))
	}
	for _, format := range []Format{FormatJSON, FormatYAML} {
		var saved bytes.Buffer
		if err := want.Save(&saved, format); err != nil {
			t.Fatal(err)
		}
		requireEqual(t, want, mustLoad(t, saved.String()))
	}
	var saved bytes.Buffer
	if err := want.Save(&saved, FormatJSON); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(saved.String(), "\n"); lines != 1+18+1 {
		t.Errorf("want one object a line, got %d lines", lines)
	}
	if err := want.Save(&saved, "xml"); err == nil {
		t.Error("want an error for an unknown format")
	}
}

func TestSaveFile(t *testing.T) {
	dir := t.TempDir()
	want := mustLoad(t, everything)
	for _, name := range []string{"a.json", "b.yaml", "c.yml", "d.json.gz", "e.yaml.gz", "a.json"} {
		path := filepath.Join(dir, name)
		if err := SaveFile(t.Context(), want, path); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v", name, info.Mode())
		}
		got, err := Load(t.Context(), []string{path}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		requireEqual(t, want, got)
	}
	err := SaveFile(t.Context(), want, filepath.Join(dir, "f.txt"))
	if err == nil || !strings.Contains(err.Error(), "expected .json, .yaml, .yml") {
		t.Errorf("unknown extension: got %v", err)
	}
	lost := filepath.Join(dir, "no", "such", "directory.json")
	if err := SaveFile(t.Context(), want, lost); err == nil || err.Error() != "save snapshot as "+lost+": no such file or directory" {
		t.Errorf("missing directory: got %v", err)
	}
	broken := *want
	broken.Claims = append(broken.Claims[:0:0], want.Claims...)
	broken.Claims[0] = broken.Claims[0].DeepCopy()
	broken.Claims[0].Status.Devices[0].Data.Raw = []byte("{")
	if err := SaveFile(t.Context(), &broken, filepath.Join(dir, "g.json")); err == nil {
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
