// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/golden"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// goldenRun runs a command line on the example cluster, or another snapshot that
// it names, and compares all that it prints with a file.
func goldenRun(t *testing.T, path string, width string, args ...string) {
	t.Helper()
	t.Setenv("COLUMNS", width)
	t.Setenv("NO_COLOR", "1")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := commands.Run(t.Context(), args, streams, commands.Build{Version: "v0.0.0-test"})
	// What is there is printed, and compared, also where something is missing.
	if code > 2 && !strings.Contains(errOut.String(), ": the output is incomplete: ") {
		t.Fatalf("kubectl dra %s: exit code %d\n%s", strings.Join(args, " "), code, errOut)
	}
	got := append(out.Bytes(), errOut.Bytes()...)
	golden.Assert(t, string(got), path, "kubectl dra %s (run: make golden)", strings.Join(args, " "))
}

// TestExplanations compares whole explanations with files that somebody has
// read and found right, as wide as a small terminal and as a large one.
func TestExplanations(t *testing.T) {
	example := filepath.Join("..", "examples", "cluster")
	questions := map[string][]string{
		"constraint":      {"pod/pretrain-0", "-n", "research", "--snapshot", example},
		"selector-error":  {"pod/eval-0", "-n", "research", "--snapshot", example},
		"fits":            {"pod/finetune-0", "-n", "research", "--snapshot", example},
		"node-resources":  {"pod/notebook-0", "-n", "research", "--snapshot", example},
		"class-missing":   {"pod/upscale-0", "-n", "media", "--snapshot", example},
		"taints":          {"pod/encode-0", "-n", "media", "--snapshot", example},
		"allocated":       {"pod/embed-2", "-n", "serving", "--snapshot", example},
		"capacity":        {"pod/replicate-0", "-n", "storage", "--snapshot", example},
		"pool-incomplete": {"pod/calibrate-0", "-n", "vision", "--snapshot", example},
		"partitions":      {"pod/segment-3", "-n", "vision", "--snapshot", example},
		"running":         {"pod/ablation-0", "-n", "research", "--snapshot", example},
		"one-node":        {"pod/pretrain-0", "-n", "research", "--snapshot", example, "--node", "gpu-02"},
		"gang": {
			"podgroup/sweep", "-n", "research", "--snapshot", example,
			"-f", filepath.Join("..", "examples", "manifests", "gang.yaml"), "--feature-gates", "GenericWorkload=true",
		},
		"gang-shared": {"podgroup/workers", "-n", "ml", "--snapshot", filepath.Join("testdata", "podgroup.yaml")},
		"gang-owner":  {"raycluster/train", "-n", "ml", "--snapshot", filepath.Join("testdata", "owners.yaml")},
		"one-device":  {"pod/pretrain-0", "-n", "research", "--snapshot", example, "--device", "gpu-02/gpu-3"},
	}
	for _, name := range []string{"bind-waiting", "prepare-not-registered", "running-unhealthy", "running-evicted-later", "pending-no-slices-label", "cleanup-finalizer", "queue-kueue", "queue-other-scheduler"} {
		path := filepath.Join("fieldcases", name+".yaml")
		cases, err := readFieldCases(path)
		if err != nil {
			t.Fatal(err)
		}
		questions[name] = append(strings.Fields(cases[0].ask), "--snapshot", path)
	}
	for name, question := range questions {
		for _, width := range []string{"80", "100", "140", "200"} {
			t.Run(name+"/"+width, func(t *testing.T) {
				goldenRun(t, filepath.Join("explanations", name+"-"+width+".golden"), width, append([]string{"why"}, question...)...)
			})
		}
		t.Run(name+"/wide", func(t *testing.T) {
			goldenRun(t, filepath.Join("explanations", name+"-140-wide.golden"), "140", append([]string{"why", "-o", "wide"}, question...)...)
		})
		if strings.HasPrefix(name, "gang") || strings.HasPrefix(name, "queue") || name == "running" {
			t.Run(name+"/json", func(t *testing.T) {
				goldenRun(t, filepath.Join("explanations", name+".json.golden"), "140", append([]string{"why", "-o", "json"}, question...)...)
			})
		}
	}
}
