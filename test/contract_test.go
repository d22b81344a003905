// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"go/ast"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/cdi"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/checkpoint"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/kubelet"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/nvidia"
)

// apiVersion is the version of all kinds. There is one constant of it in each package.
const apiVersion = api.APIVersion

// listOf is the list type for several objects of a kind.
type listOf[T any] struct {
	metav1.TypeMeta `json:",inline"`

	Items []T `json:"items"`
}

// kind is something that -o json prints.
type kind struct {
	name string
	// of is the Go type, list the type of the NAMEList with several; nil if they are
	// printed one by one.
	of, list reflect.Type
	// by names the command that prints it.
	by string
}

// kinds returns all that there are, in the order of the documentation.
func kinds() []kind {
	return []kind{
		{"Explanation", reflect.TypeFor[api.Explanation](), reflect.TypeFor[api.ExplanationList](), "why"},
		{"UseExplanation", reflect.TypeFor[api.UseExplanation](), reflect.TypeFor[api.UseExplanationList](), "why device/NAME"},
		{"Fit", reflect.TypeFor[api.Fit](), nil, "fit NAME"},
		{"FitShapes", reflect.TypeFor[api.FitShapes](), nil, "fit"},
		{"Slice", reflect.TypeFor[api.Slice](), reflect.TypeFor[listOf[api.Slice]](), "slices"},
		{"Pool", reflect.TypeFor[api.Pool](), reflect.TypeFor[listOf[api.Pool]](), "pools"},
		{"Device", reflect.TypeFor[api.Device](), reflect.TypeFor[listOf[api.Device]](), "devices"},
		{"Claim", reflect.TypeFor[api.Claim](), reflect.TypeFor[listOf[api.Claim]](), "claims"},
		{"Class", reflect.TypeFor[api.Class](), reflect.TypeFor[listOf[api.Class]](), "classes"},
		{"Attribute", reflect.TypeFor[api.Attribute](), reflect.TypeFor[listOf[api.Attribute]](), "attributes"},
		{"Node", reflect.TypeFor[api.ListedNode](), reflect.TypeFor[listOf[api.ListedNode]](), "nodes"},
		{"Usage", reflect.TypeFor[api.Usage](), reflect.TypeFor[listOf[api.Usage]](), "usage"},
		{"Group", reflect.TypeFor[api.Group](), reflect.TypeFor[listOf[api.Group]](), "pools --by driver"},
		{"Evaluation", reflect.TypeFor[api.Evaluation](), nil, "cel"},
		{"Taint", reflect.TypeFor[api.Taint](), reflect.TypeFor[listOf[api.Taint]](), "taints"},
		{"Status", reflect.TypeFor[api.Status](), nil, "status"},
		{"History", reflect.TypeFor[api.History](), nil, "why NAME --since TIME"},
		{"Difference", reflect.TypeFor[api.Difference](), nil, "diff"},
		{"Diagnosis", reflect.TypeFor[api.Diagnosis](), nil, "doctor"},
		{"LintReport", reflect.TypeFor[api.LintReport](), nil, "lint"},
		{"Impact", reflect.TypeFor[api.Impact](), nil, "impact"},
		{"Plan", reflect.TypeFor[api.Plan](), nil, "plan"},
		{"Sharing", reflect.TypeFor[api.Sharing](), nil, "sharing"},
		{"Migration", reflect.TypeFor[api.Migration](), nil, "migrate"},
		{"Overview", reflect.TypeFor[api.Overview](), nil, "top --once"},
		{"Branch", reflect.TypeFor[api.Branch](), reflect.TypeFor[listOf[api.Branch]](), "tree"},
		{"TestReport", reflect.TypeFor[api.TestReport](), nil, "test"},
		{"NodeReport", reflect.TypeFor[nodeprobe.Report](), nil, "node-probe"},
		{"GPUFindings", reflect.TypeFor[nvidia.Findings](), nil, "node-probe gpus"},
		{"GPUPreviewComparison", reflect.TypeFor[nvidia.Comparison](), nil, "node-probe preview --diff"},
		{"NodePlugins", reflect.TypeFor[driver.Findings](), nil, "node-probe plugins"},
		{"NodePreparation", reflect.TypeFor[driver.Preparation](), nil, "node-probe prepare"},
		{"DriverConformance", reflect.TypeFor[driver.Conformance](), nil, "node-probe conform"},
		{"NodeHealth", reflect.TypeFor[driver.Health](), nil, "node-probe health"},
		{"NodeCDI", reflect.TypeFor[cdi.Findings](), nil, "node-probe cdi"},
		{"NodePods", reflect.TypeFor[kubelet.Findings](), nil, "node-probe pods"},
		{"NodeState", reflect.TypeFor[checkpoint.Findings](), nil, "node-probe state"},
		{"Version", reflect.TypeFor[commands.Version](), nil, "version"},
	}
}

// printed returns the Go type of each kind, lists among them.
func printed() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, k := range kinds() {
		types[k.name] = k.of
		if k.list != nil {
			types[k.name+"List"] = k.list
		}
	}
	return types
}

// TestKindsAreComplete finds the types that are printed by what makes them
// printable: a TypeMeta. All must be among kinds. Snapshots have a format of
// their own, see docs/snapshot.md.
func TestKindsAreComplete(t *testing.T) {
	known := map[string]bool{
		// The types of lists.
		"pkg/api/v1alpha1.ExplanationList":    true,
		"pkg/api/v1alpha1.UseExplanationList": true,
		"pkg/api/v1alpha1.List":               true,
	}
	for _, k := range kinds() {
		known[strings.TrimPrefix(k.of.PkgPath(), modulePath+"/")+"."+k.of.Name()] = true
	}
	found := 0
	for _, dir := range goPackages(t, filepath.Join("..", "pkg")) {
		if snapshots := filepath.Join("..", "pkg", "snapshot"); dir == snapshots || strings.HasPrefix(dir, snapshots+string(filepath.Separator)) {
			continue
		}
		for name, declared := range parseGo(t, dir).structs {
			printable := slices.ContainsFunc(declared.fields.List, func(field *ast.Field) bool {
				selector, ok := field.Type.(*ast.SelectorExpr)
				return ok && len(field.Names) == 0 && selector.Sel.Name == "TypeMeta"
			})
			if !printable || !ast.IsExported(name) {
				// What is not exported is read from others' objects.
				continue
			}
			found++
			if full := strings.TrimPrefix(filepath.ToSlash(dir), "../") + "." + name; !known[full] {
				t.Errorf("%s is printed, and is not among the kinds of test/contract_test.go", full)
			}
		}
	}
	if found < len(kinds()) {
		t.Errorf("found %d types that are printed, want %d at least", found, len(kinds()))
	}
}

// TestContractIsWritten compares docs/json.md and docs/schema with what the
// types and their comments say. With -update they are written again.
func TestContractIsWritten(t *testing.T) {
	docs := filepath.Join("..", "docs")
	want := map[string][]byte{}
	for name := range printed() {
		want[filepath.Join(docs, "schema", name+".json")] = encode(t, schemaOf(t, name, true))
	}
	path := filepath.Join(docs, "json.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	byHand, _, ok := strings.Cut(string(text), generatedMark)
	if !ok {
		t.Fatalf("%s has no line %s", path, generatedMark)
	}
	want[path] = []byte(byHand + generatedMark + describeKinds(t))
	compareFiles(t, want, filepath.Join(docs, "schema"))
}

// generatedMark precedes the part of docs/json.md that is written by the test.
const generatedMark = "<!-- What follows is written by `make docs`, from the Go types. -->\n"

// compareFiles compares files with what they should be, or writes them. There
// must be no others in a directory.
func compareFiles(t *testing.T, want map[string][]byte, dir string) {
	t.Helper()
	have, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range have {
		if want[path] != nil {
			continue
		}
		if !golden.FlagUpdate() {
			t.Errorf("%s is of nothing that there is (run: make docs)", path)
		} else if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range want {
		if golden.FlagUpdate() {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if have, err := os.ReadFile(path); err != nil {
			t.Errorf("%v (run: make docs)", err)
		} else if !bytes.Equal(have, text) {
			t.Errorf("%s is out of date (run: make docs), -have +want:\n%s", path, cmp.Diff(string(have), string(text)))
		}
	}
}
