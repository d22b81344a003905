// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// goBuild builds a program as a release is built, until the end of the
// benchmark.
func goBuild(b testing.TB, path string) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "program")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", program, path)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build %s: %v\n%s", path, err, out)
	}
	return program
}

// usage is the time and memory of one run of a program.
type usage struct {
	// Exit is the exit code.
	Exit float64 `json:"exit"`
	// Seconds passed; CPU is the time of all processors.
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"`
	PeakMiB float64 `json:"peakMiB"`
}

// measure runs a program under test/peak and returns what it printed.
func measure(b testing.TB, peak, program string, args ...string) (usage, []byte) {
	b.Helper()
	command := exec.CommandContext(b.Context(), peak, append([]string{program}, args...)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	lines := bytes.Split(bytes.TrimSpace(stderr.Bytes()), []byte("\n"))
	var u usage
	if err == nil {
		err = json.Unmarshal(lines[len(lines)-1], &u)
	}
	if err != nil {
		b.Fatalf("run %s: %v\n%s", program, err, stderr.Bytes())
	}
	if u.Exit != 0 {
		stdout.Write(stderr.Bytes())
	}
	return u, stdout.Bytes()
}
