// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestJSONExamples runs what docs/json.md does with jq, on the example cluster.
func TestJSONExamples(t *testing.T) {
	for _, program := range []string{"bash", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```sh\n")
	block, _, ok := strings.Cut(block, "```")
	if !ok {
		t.Fatal("docs/json.md has no sh block")
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte(kubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join("..", "examples", "manifests", "one-gpu.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "train.yaml"), manifest, 0o644); err != nil {
		t.Fatal(err)
	}
	example, err := filepath.Abs(filepath.Join("..", "examples", "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range strings.Split(strings.TrimSpace(block), "\n\n") {
		title, _, _ := strings.Cut(command, "\n")
		t.Run(title, func(t *testing.T) {
			// The exit code is that of jq: why ends with 1 if something does not fit.
			program := exec.CommandContext(t.Context(), "bash", "--norc", "-c", command)
			program.Dir = home
			program.Env = append(os.Environ(), "PATH="+strings.Join([]string{bin, builtProgram(t), os.Getenv("PATH")}, string(filepath.ListSeparator)),
				"KUBECONFIG="+filepath.Join(home, "none"), "ADD=--snapshot "+example)
			out, err := program.CombinedOutput()
			if err != nil || len(out) == 0 || strings.Contains(string(out), "error:") || strings.Contains(string(out), "null") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
