// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLargeYAML tells who reads a large cluster from YAML how to read it faster,
// and says nothing of smaller ones.
func TestLargeYAML(t *testing.T) {
	program := filepath.Join(builtProgram(t), "kubectl-dra")
	for name, documents := range map[string]int{"large": 5, "small": 4} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "the cluster.yaml")
			var text bytes.Buffer
			for i := range documents {
				fmt.Fprintf(&text, "---\n# %s\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: class-%d}\n", strings.Repeat("x", 7<<20), i)
			}
			if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			run := exec.CommandContext(t.Context(), program, "classes", "-o", "name", "--snapshot", path)
			run.Stdout, run.Stderr = &stdout, &stderr
			if err := run.Run(); err != nil {
				t.Fatalf("%v\n%s", err, stderr.Bytes())
			}
			note := strings.Contains(stderr.String(), "of YAML")
			want := "Note: reading 35 MiB of YAML takes several times as long as JSON; to save it as JSON: kubectl dra snapshot --snapshot '" + path + "' -o cluster.json.gz\n"
			if large := name == "large"; note != large || large && !strings.HasPrefix(stderr.String(), want) {
				t.Errorf("standard error is\n%s\nthe note is\n%s", stderr.String(), want)
			}
			if lines := strings.Count(stdout.String(), "\n"); lines != documents {
				t.Errorf("%d lines:\n%s", lines, stdout.String())
			}
		})
	}
}
