// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gotest.tools/v3/golden"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// TestDrawings compares the drawings in the documents with what "-o svg" writes. In docs/start.md
// there is one for the question about each exercise. With -update (make pictures) they are written
// again.
func TestDrawings(t *testing.T) {
	t.Chdir("..")
	drawings := map[string]string{
		"plan.svg":       "plan --snapshot examples/cluster",
		"impact.svg":     "impact drain gpu-01 --snapshot examples/cluster",
		"history.svg":    "why pod/replicate-0 -n storage --snapshot docs/recording/story.rec --since 3h",
		"tree.svg":       "tree pod/ablation-0 -n research --snapshot examples/cluster",
		"partitions.svg": "pools mig-01 --snapshot examples/cluster",
	}
	start, err := os.ReadFile("docs/start.md")
	if err != nil {
		t.Fatal(err)
	}
	questions := regexp.MustCompile(`(?m)^\$ kubectl dra (why .*)$`).FindAllStringSubmatch(string(start), -1)
	if len(questions) != 10 {
		t.Errorf("docs/start.md has %d questions", len(questions))
	}
	for i, question := range questions {
		drawings[fmt.Sprintf("start-%d.svg", i+1)] = question[1]
	}
	documents, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for name, args := range drawings {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(all.String(), "](pictures/"+name+")") {
				t.Error("no document shows it")
			}
			var out, problems bytes.Buffer
			streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &problems}
			if code := commands.Run(t.Context(), append(strings.Fields(args), "-o", "svg"), streams, commands.Build{Version: "v0.0.0-test"}); code > 2 {
				t.Fatalf("%d: %s", code, problems.String())
			}
			path := filepath.Join("docs", "pictures", name)
			if golden.FlagUpdate() {
				if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want, err := os.ReadFile(path); err != nil || !bytes.Equal(want, out.Bytes()) {
				t.Errorf("%s is not what the program draws (run: make pictures), %v", path, err)
			}
		})
	}
}
