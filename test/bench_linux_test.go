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
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// BenchmarkWhy asks the built program about a claim that fits on no node of a
// fleet, from the file to the printed text. Beside the time it reports
//
//	peak-MiB     the most memory that the process had
//	upstream-s   the time that the allocator alone takes for the same nodes in
//	             a plain loop, one after the other, with everything loaded
//	ratio        the time divided by that
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
				upstream := plainLoop(b, snap)
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
				b.ReportMetric(upstream.Seconds(), "upstream-s")
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/upstream.Seconds(), "ratio")
			})
		}
	}
}

// fleetWithWaitingClaim adds a claim that wants one device more than any node
// has.
func fleetWithWaitingClaim(nodes, claims int) *snapshot.Snapshot {
	snap := fleet.Fleet(nodes, 8, claims)
	snap.Claims = append(snap.Claims, waitingClaim())
	return snap
}

func waitingClaim() *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "waiting", Name: "waiting", UID: "waiting"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: fleet.Class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 9,
			}}},
		}},
	}
}

func plainLoop(b *testing.B, snap *snapshot.Snapshot) time.Duration {
	b.Helper()
	alloc, err := allocator.New(b.Context(), snap)
	if err != nil {
		b.Fatal(err)
	}
	claim := waitingClaim()
	start := time.Now()
	for _, node := range snap.Nodes {
		if verdict := alloc.Check(b.Context(), node, []*resourceapi.ResourceClaim{claim}); verdict.Outcome != allocator.DoesNotFit {
			b.Fatalf("node %s: %s %v", node.Name, verdict.Outcome, verdict.Err)
		}
	}
	return time.Since(start)
}
