// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// TestClusterIsTheExample compares the cluster in the program with the files of the example.
func TestClusterIsTheExample(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "examples", "cluster", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	var want strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want.Write(text)
	}
	have, err := exampleText()
	if err != nil {
		t.Fatal(err)
	}
	if have != want.String() {
		t.Error("the cluster in the program is not examples/cluster (run: make generate)")
	}
	if len(exampleFiles) > 100<<10 {
		t.Errorf("the cluster takes %d bytes of the program", len(exampleFiles))
	}
	file, err := os.ReadFile(filepath.Join("..", "..", "examples", "manifests", "gang.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if string(file) != gangManifest {
		t.Error("the gang in the program is not examples/manifests/gang.yaml (run: make generate)")
	}
}

// TestDocumentShowsAll wants a section of docs/start.md for each exercise, with its title. What
// the commands in it print is compared elsewhere.
func TestDocumentShowsAll(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "start.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range exercises() {
		title := strings.ToUpper(e.title[:1]) + e.title[1:]
		for _, want := range []string{
			fmt.Sprintf("\n## %d. %s\n", i+1, title),
			fmt.Sprintf("\n$ kubectl dra learn %d\n", i+1),
			fmt.Sprintf("\n$ kubectl dra learn %d --answer\n", i+1),
		} {
			if strings.Count(string(text), want) != 1 {
				t.Errorf("docs/start.md does not have %q once", want)
			}
		}
	}
}

// TestExercises asks the allocator about the manifest of each exercise as it is, which has to
// fail as the target in the cluster does, and about the answer, which has to fit.
func TestExercises(t *testing.T) {
	snap, err := loadExample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range exercises() {
		t.Run(strconv.Itoa(i+1), func(t *testing.T) {
			decide := func(text string) *api.Explanation {
				t.Helper()
				found, err := e.decide(t.Context(), "-", files.Options{Stdin: strings.NewReader(text)})
				if err != nil {
					t.Fatal(err)
				}
				return found
			}
			text, err := e.manifest()
			if err != nil {
				t.Fatal(err)
			}
			for _, change := range e.answer {
				if strings.Count(text, change.from) != 1 {
					t.Errorf("%q is not once in\n%s", change.from, text)
				}
			}
			before := decide(text)
			if before.Verdict != api.DoesNotFit && before.Verdict != api.Error {
				t.Errorf("the manifest is %s: %s", before.Verdict, before.Summary)
			}
			if e.target.Kind == api.KindPod {
				inCluster, err := explain.Explain(t.Context(), snap, explain.Options{Object: e.target})
				if err != nil {
					t.Fatal(err)
				}
				if before.Code != inCluster.Code || before.Verdict != inCluster.Verdict {
					t.Errorf("the manifest is %s %s, the pod in the cluster %s %s", before.Verdict, before.Code, inCluster.Verdict, inCluster.Code)
				}
				if e.said(snap) == "" {
					t.Error("the scheduler said nothing")
				}
			}
			text, err = e.corrected()
			if err != nil {
				t.Fatal(err)
			}
			if after := decide(text); after.Verdict != api.Fits {
				t.Errorf("the answer is %s: %s", after.Verdict, after.Summary)
			}
		})
	}
}
