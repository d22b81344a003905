// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// BenchmarkWhy asks the built program about a claim that fits on no node of a
// fleet, from the file to the printed text. Beside the time it reports the most
// memory that the process had (peak-MiB). What of the time is not the
// program's own, BenchmarkFleet tells.
func BenchmarkWhy(b *testing.B) {
	program := filepath.Join(b.TempDir(), "kubectl-dra")
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/kubectl-dra").CombinedOutput(); err != nil {
		b.Fatalf("build kubectl-dra: %v\n%s", err, out)
	}
	for _, size := range []struct{ nodes, claims int }{{1000, 4000}, {5000, 20000}, {20000, 80000}} {
		for _, extension := range []string{".json", ".json.gz", ".yaml"} {
			if extension != ".json" && size.nodes != 5000 {
				continue
			}
			b.Run(fmt.Sprintf("nodes=%d/%s", size.nodes, extension[1:]), func(b *testing.B) {
				snap := fleetWithWaitingClaim(size.nodes, size.claims)
				path := filepath.Join(b.TempDir(), "fleet"+extension)
				if err := snapshot.SaveFile(snap, path); err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				peak := int64(0)
				for b.Loop() {
					command := exec.Command(program, "why", "claim/waiting", "-n", "waiting", "--snapshot", path)
					out, err := command.CombinedOutput()
					var exit *exec.ExitError
					if !errors.As(err, &exit) || exit.ExitCode() != 1 {
						b.Fatalf("why: %v\n%s", err, out)
					}
					if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
						peak = max(peak, usage.Maxrss)
					}
				}
				b.ReportMetric(float64(peak)/1024, "peak-MiB")
			})
		}
	}
}
