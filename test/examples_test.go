// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// TestExampleCluster asks about every pending pod of the example cluster. The
// verdicts are those of a kube-scheduler v1.37.1 that was given these objects;
// what it said is in the pods' conditions.
func TestExampleCluster(t *testing.T) {
	snap, err := files.Load(t.Context(), []string{filepath.Join("..", "examples", "cluster")}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		verdict api.Verdict
		stage   api.Stage
		code    api.Code
		// summary is a part of the one sentence.
		summary string
	}{
		"media/encode-0":      {api.DoesNotFit, api.StageAllocation, api.DeviceTainted, "2"},
		"media/upscale-0":     {api.Error, api.StageAllocation, api.ClassNotFound, "did you mean gpu.example.com?"},
		"research/eval-0":     {api.Error, api.StageAllocation, api.SelectorError, "no such key: productname"},
		"research/finetune-0": {api.Fits, api.StageAllocation, "", "gpu-03"},
		"research/notebook-0": {api.DoesNotFit, api.StageNodeFit, api.NodeUnsuitable, ""},
		"research/pretrain-0": {api.DoesNotFit, api.StageAllocation, api.ConstraintUnsatisfiable, "pcieRoot"},
		"serving/embed-2":     {api.DoesNotFit, api.StageAllocation, api.DeviceAllocated, "4"},
		"storage/replicate-0": {api.DoesNotFit, api.StageAllocation, api.CapacityInsufficient, ""},
		"vision/calibrate-0":  {api.Error, api.StageAllocation, api.PoolIncomplete, "gpu-09 is currently being updated"},
		"vision/segment-3":    {api.DoesNotFit, api.StageAllocation, api.CountersExhausted, ""},
	}
	for _, pod := range snap.Pods {
		if pod.Spec.NodeName != "" {
			continue
		}
		name := pod.Namespace + "/" + pod.Name
		t.Run(name, func(t *testing.T) {
			want, known := tests[name]
			if !known {
				t.Fatal("nobody says what the answer about this pod is")
			}
			got, err := unhurried(t, snap, explain.Options{Object: api.RefTo(api.KindPod, pod)})
			if err != nil {
				t.Fatal(err)
			}
			if got.Verdict != want.verdict || got.Stage != want.stage || !strings.Contains(got.Summary, want.summary) {
				t.Errorf("got %s at stage %s: %s\nwant %s at stage %s, with %q", got.Verdict, got.Stage, got.Summary, want.verdict, want.stage, want.summary)
			}
			if want.code != "" && !slices.Contains(codesOf(got), want.code) {
				t.Errorf("got the codes %v, want %s among them", codesOf(got), want.code)
			}
		})
		delete(tests, name)
	}
	for name := range tests {
		t.Errorf("there is no pending pod %s", name)
	}
}

func codesOf(e *api.Explanation) []api.Code {
	var codes []api.Code
	if e.Code != "" {
		codes = append(codes, e.Code)
	}
	for _, group := range e.Nodes {
		codes = append(codes, group.Code)
	}
	for _, claim := range e.Claims {
		for _, request := range claim.Requests {
			for _, rejection := range request.Rejected {
				codes = append(codes, rejection.Code)
			}
		}
	}
	return codes
}

// TestReasonCodesAreDocumented wants a heading for each reason code and verdict,
// or a row of a table that begins with it.
func TestReasonCodesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "why.md"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "pkg", "api", "v1alpha1", "reason.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		kind, ok := spec.Type.(*ast.Ident)
		if !ok || kind.Name != "Code" && kind.Name != "Verdict" {
			return true
		}
		for _, value := range spec.Values {
			literal, ok := value.(*ast.BasicLit)
			if !ok {
				continue
			}
			found++
			word := strings.Trim(literal.Value, `"`)
			if !strings.Contains(string(text), "| `"+word+"` |") && !strings.Contains(string(text), "### "+word+"\n") {
				t.Errorf("docs/why.md does not describe %s %s", kind.Name, word)
			}
		}
		return true
	})
	if found == 0 {
		t.Error("found no reason codes in pkg/api/v1alpha1/reason.go")
	}
}

// TestStagesAreDrawn wants each stage in the drawing and in the table of docs/lifecycle.md.
func TestStagesAreDrawn(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "lifecycle.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, drawing, _ := strings.Cut(string(text), "```mermaid\n")
	drawing, table, _ := strings.Cut(drawing, "```\n")
	table, _, _ = strings.Cut(table, "\n## ")
	stages := parseGo(t, filepath.Join("..", "pkg", "api", "v1alpha1")).enums["Stage"]
	if len(stages) == 0 {
		t.Fatal("found no stages")
	}
	for _, stage := range stages {
		if !regexp.MustCompile(`: ` + stage.value + `\b`).MatchString(drawing) {
			t.Errorf("the drawing lacks stage %s", stage.value)
		}
		if !strings.Contains(table, "`"+stage.value+"`") {
			t.Errorf("the table lacks stage %s", stage.value)
		}
	}
}

// TestDocumentedReasonCodes wants no row for a code that there is not.
func TestDocumentedReasonCodes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "why.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## The reason codes\n")
	if !ok {
		t.Fatal("docs/why.md has no section about the reason codes")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var known []string
	for _, value := range parseGo(t, filepath.Join("..", "pkg", "api", "v1alpha1")).enums["Code"] {
		known = append(known, value.value)
	}
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(section, -1)
	for _, row := range rows {
		if !slices.Contains(known, row[1]) {
			t.Errorf("docs/why.md describes %s, which is no reason code", row[1])
		}
	}
	if len(rows) != len(known) {
		t.Errorf("docs/why.md describes %d reason codes of %d", len(rows), len(known))
	}
}
