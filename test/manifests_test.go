// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/lint"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// TestManifestsAreInOrder checks what we show to others: the examples, and the YAML in
// our documents. Only the faults that the example cluster is there to show are found.
func TestManifestsAreInOrder(t *testing.T) {
	const root = ".."
	found := findingsIn(t, filepath.Join(root, "examples"))
	want := []string{
		"tenant-media.yaml DRA2208", "tenant-media.yaml DRA2208",
		"tenant-research.yaml DRA2307", "tenant-research.yaml DRA2307",
	}
	if !slices.Equal(found, want) {
		t.Errorf("in the examples %q, want %q", found, want)
	}
	blocks := 0
	for _, path := range markdownIn(t, root) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range yamlBlocks(string(text)) {
			blocks++
			file := filepath.Join(t.TempDir(), fmt.Sprintf("%s-%d.yaml", filepath.Base(path), i))
			if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
				t.Fatal(err)
			}
			if found := findingsIn(t, file); len(found) > 0 {
				t.Errorf("%s: %q in\n%s", path, found, block)
			}
		}
	}
	if blocks == 0 {
		t.Error("no document has YAML")
	}
}

// findingsIn lists the findings as "FILE CODE".
func findingsIn(t *testing.T, path string) []string {
	t.Helper()
	texts, err := files.Texts(t.Context(), []string{path}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := lint.Lint(t.Context(), texts, lint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for i := range report.Findings {
		found = append(found, filepath.Base(report.Findings[i].File)+" "+report.Findings[i].Code)
	}
	return found
}

// markdownIn lists the documents of the repository.
func markdownIn(t *testing.T, root string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root, entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case filepath.Ext(path) == ".md":
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// yamlBlocks returns the fenced blocks of YAML in a document.
func yamlBlocks(text string) []string {
	var blocks []string
	var block *strings.Builder
	for line := range strings.Lines(text) {
		switch fence := strings.TrimSpace(line); {
		case block == nil && (fence == "```yaml" || fence == "```yml"):
			block = &strings.Builder{}
		case block != nil && fence == "```":
			blocks = append(blocks, block.String())
			block = nil
		case block != nil:
			block.WriteString(line)
		}
	}
	return blocks
}
