// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

func TestSnapshot(t *testing.T) {
	want := testsnapshot.Load(t, testsnapshot.Everything())
	for _, format := range []files.Format{files.JSON, files.YAML} {
		var saved bytes.Buffer
		if err := files.Write(&saved, want, format); err != nil {
			t.Fatal(err)
		}
		testsnapshot.Equal(t, want, testsnapshot.Load(t, saved.String()))
	}
	var saved bytes.Buffer
	if err := files.Write(&saved, want, files.JSON); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(saved.String(), "\n"); lines != 1+21+1 {
		t.Errorf("want one object a line, got %d lines", lines)
	}
	if err := files.Write(&saved, want, "xml"); err == nil {
		t.Error("want an error for an unknown format")
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	want := testsnapshot.Load(t, testsnapshot.Everything())
	for _, name := range []string{"a.json", "b.yaml", "c.yml", "d.json.gz", "e.yaml.gz", "a.json"} {
		path := filepath.Join(dir, name)
		if err := files.Save(t.Context(), want, path); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v", name, info.Mode())
		}
		got, err := files.Load(t.Context(), []string{path}, files.Options{})
		if err != nil {
			t.Fatal(err)
		}
		testsnapshot.Equal(t, want, got)
	}
	err := files.Save(t.Context(), want, filepath.Join(dir, "f.txt"))
	if err == nil || !strings.Contains(err.Error(), "expected .json, .yaml, .yml") {
		t.Errorf("unknown extension: got %v", err)
	}
	lost := filepath.Join(dir, "no", "such", "directory.json")
	if err := files.Save(t.Context(), want, lost); err == nil || err.Error() != "save "+lost+": no such file or directory" {
		t.Errorf("missing directory: got %v", err)
	}
	broken := *want
	broken.Claims = append(broken.Claims[:0:0], want.Claims...)
	broken.Claims[0] = broken.Claims[0].DeepCopy()
	broken.Claims[0].Status.Devices[0].Data.Raw = []byte("{")
	if err := files.Save(t.Context(), &broken, filepath.Join(dir, "g.json")); err == nil {
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
	laid, err := files.Preview(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(`
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-9-gpu-0, annotations: {dra.kubectl.dev/preview: example@1}}
spec: {driver: gpu.example.com, nodeName: node-9, pool: {name: node-9, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}
`)})
	if err != nil {
		t.Fatal(err)
	}
	with := snapshot.WithPreview(testsnapshot.Load(t, `
apiVersion: v1
kind: Node
metadata: {name: node-9}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-9-gpu-x7w2k}
spec: {driver: gpu.example.com, nodeName: node-9, pool: {name: node-9, generation: 7, resourceSliceCount: 1}, devices: [{name: gpu-0}]}
`), laid)
	want := snapshot.PreviewAssumptions(with)
	if len(want) != 1 || !strings.HasSuffix(want[0], "in place of ResourceSlice node-9-gpu-x7w2k") {
		t.Errorf("want an assumption with the slice that is replaced, got %q", want)
	}
	for _, format := range []files.Format{files.JSON, files.YAML} {
		var saved bytes.Buffer
		if err := files.Write(&saved, with, format); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, snapshot.PreviewAssumptions(testsnapshot.Load(t, saved.String()))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

// TestCutShort cuts a saved file between two of its documents, wherever that is possible.
func TestCutShort(t *testing.T) {
	s := testsnapshot.Load(t, testsnapshot.Everything())
	var saved bytes.Buffer
	if err := files.Write(&saved, s, files.YAML); err != nil {
		t.Fatal(err)
	}
	documents := strings.SplitAfter(saved.String(), "\n---\n")
	for n := 1; n <= len(documents); n++ {
		_, err := files.Load(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(strings.Join(documents[:n], ""))})
		if n == len(documents) {
			if err != nil {
				t.Errorf("the whole file: %v", err)
			}
			continue
		}
		want := fmt.Sprintf("expected %d objects, found %d: the file is cut short", len(documents)-1, n-1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d of %d documents: want error %q, got %v", n, len(documents), want, err)
		}
	}
}
