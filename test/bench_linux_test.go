// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/save"
)

// BenchmarkWhy asks the built program about a claim that fits on no node of a
// fleet, from the file to the printed text. Beside the time it reports the most
// memory that the process had (peak-MiB). What of the time is not the
// program's own, BenchmarkFleet tells.
func BenchmarkWhy(b *testing.B) {
	program, peak := goBuild(b, "../cmd/kubectl-dra"), goBuild(b, "./peak")
	for _, size := range []struct{ nodes, claims int }{{1000, 4000}, {5000, 20000}, {20000, 80000}} {
		for _, extension := range []string{".json", ".json.gz", ".yaml"} {
			if extension != ".json" && size.nodes != 5000 {
				continue
			}
			b.Run(fmt.Sprintf("nodes=%d/%s", size.nodes, extension[1:]), func(b *testing.B) {
				snap := fleetWithWaitingClaim(size.nodes, size.claims)
				path := filepath.Join(b.TempDir(), "fleet"+extension)
				if err := save.File(b.Context(), snap, path); err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				most := 0.0
				for b.Loop() {
					u, out := measure(b, peak, program, "why", "claim/waiting", "-n", "waiting", "--snapshot", path)
					if u.Exit != 1 {
						b.Fatalf("why: exit code %v\n%s", u.Exit, out)
					}
					most = max(most, u.PeakMiB)
				}
				b.ReportMetric(most, "peak-MiB")
			})
		}
	}
}

// goBuild builds a program as a release is built, until the end of the
// benchmark.
func goBuild(b testing.TB, path string) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "program")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, path)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build %s: %v\n%s", path, err, out)
	}
	return program
}

// usage is what one run of a program took.
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
