// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

var keep = flag.String("keep", "", "keep what this release, such as v1.2.0, writes, for later ones to read")

// TestKeepRelease writes what the tests of compat_test.go read. It never writes
// over anything.
func TestKeepRelease(t *testing.T) {
	if *keep == "" {
		t.Skip("see CONTRIBUTING.md, What others rely on")
	}
	dir := filepath.Join(compat, *keep)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	example := filepath.Join("..", "examples", "cluster")
	streams, _, _, errOut := genericiooptions.NewTestIOStreams()
	file := filepath.Join(dir, "cluster.yaml.gz")
	if code := commands.Run(t.Context(), []string{"snapshot", "--snapshot", example, "-o", file}, streams, commands.Build{Version: *keep}); code != 0 {
		t.Fatal(errOut)
	}
	snap, err := files.Load(t.Context(), []string{file}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	must := func(name string, text []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	must("verdicts.json", encode(t, verdicts(t, snap)))
	lines := [][]string{}
	for _, line := range []string{
		"why pod/segment-3 -n vision", "why -n vision", "slices gpu-0[12]*", "pools mig-01 gpu-02", "devices --node mig-01", "claims -n research", "classes", "nodes", "usage", "pools --by driver", "taints", "version",
		"tree pod/ablation-0 -n research", "doctor", "status", "plan -n research", "impact drain gpu-02", "fit pod/pretrain-0 -n research", "fit", "top", "attributes",
		"cel true --device gpu-02/gpu-0", "why device/gpu-02/gpu-0", "lint -f " + example,
	} {
		lines = append(lines, append(strings.Fields(line), "--snapshot", example))
	}
	outputs := map[string][]byte{}
	for _, line := range append(lines, nodeQuestions(t)...) {
		// The machines are much alike, and have much to tell.
		if i := slices.Index(line, "--simulate"); i >= 0 && line[i+1] != "dgx-a100" {
			continue
		}
		text := printedBy(t, line)
		object := parse(t, strings.Join(line, " "), text)
		name, _ := object["kind"].(string)
		if len(text) > len(outputs[name]) {
			outputs[name] = text
		}
		// Only --watch prints a single one of these.
		if items, _ := object["items"].([]any); len(items) > 0 && name != "ExplanationList" {
			outputs[strings.TrimSuffix(name, "List")] = encode(t, items[0])
		}
	}
	// A test report, and what other verbs print of a live cluster, is not kept.
	schemas := map[string]*jsonSchema{}
	for _, k := range kinds() {
		if outputs[k.name] != nil {
			schemas[k.name] = schemaOf(t, k.name, true).withoutDescriptions()
		}
	}
	must(schemasFile, encode(t, schemas))
	for name, text := range outputs {
		must(filepath.Join("output", name+".json"), text)
	}
}

// withoutDescriptions leaves what a program can rely on.
func (s *jsonSchema) withoutDescriptions() *jsonSchema {
	if s == nil {
		return nil
	}
	out := *s
	out.Description = ""
	out.Items, out.Additional = s.Items.withoutDescriptions(), s.Additional.withoutDescriptions()
	out.Properties, out.Defs = map[string]*jsonSchema{}, map[string]*jsonSchema{}
	for name, property := range s.Properties {
		out.Properties[name] = property.withoutDescriptions()
	}
	for name, definition := range s.Defs {
		out.Defs[name] = definition.withoutDescriptions()
	}
	return &out
}
