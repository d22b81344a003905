// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// BenchmarkPlanning asks the built program about a file with 5,000 nodes where 1,000 pods
// of 20 shapes wait: how many more copies of one claim fit, the same of all shapes, what
// becomes of the queue, with and without preemption, what doctor finds, why each pod waits,
// and what happens if a node is drained.
// In turns with that it runs the program test/plain, which loads the same file and asks the
// allocator about that claim on each node, one after the other. It reports
//
//	plain-cpu-s       processor time of test/plain
//	NAME-cpu-s        that of each question
//	NAME-s, NAME-MiB  how long it took, and the most memory that it had
//	NAME-ratio        its processor time divided by plain-cpu-s
func BenchmarkPlanning(b *testing.B) {
	peak, program, plain := goBuild(b, "./peak"), goBuild(b, "../cmd/kubectl-dra"), goBuild(b, "./plain")
	for _, shape := range []struct {
		name string
		snap *snapshot.Snapshot
	}{{"equal", fleet.Fleet(5000, 8, 20000)}, {"mixed", fleet.Mixed(5000)}} {
		b.Run(shape.name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "fleet.json")
			if err := files.Save(b.Context(), withWaiting(shape.snap), path); err != nil {
				b.Fatal(err)
			}
			questions := []struct {
				name string
				exit float64
				args []string
			}{
				{"fit", 0, []string{"fit", "claim/waiting", "-n", "waiting"}},
				{"ladder", 0, []string{"fit"}},
				{"plan", 1, []string{"plan"}},
				{"doctor", 1, []string{"doctor"}},
				{"status", 1, []string{"status"}},
				{"waiting", 1, []string{"why", "-A"}},
				{"preempt", 1, []string{"plan", "--preempt"}},
				{"drain", 1, []string{"impact", "drain", inUse(shape.snap)}},
			}
			took := make([]total, len(questions))
			b.ResetTimer()
			var asks total
			for b.Loop() {
				asks.add(b, 0, peak, plain, path, "waiting", "waiting")
				for i, q := range questions {
					took[i].add(b, q.exit, peak, program, append(q.args, "--snapshot", path)...)
				}
			}
			rounds := float64(b.N)
			b.ReportMetric(asks.CPU/rounds, "plain-cpu-s")
			for i, q := range questions {
				b.ReportMetric(took[i].CPU/rounds, q.name+"-cpu-s")
				b.ReportMetric(took[i].Seconds/rounds, q.name+"-s")
				b.ReportMetric(took[i].PeakMiB, q.name+"-MiB")
				b.ReportMetric(took[i].CPU/asks.CPU, q.name+"-ratio")
			}
		})
	}
}

// inUse returns a node with a pod.
func inUse(snap *snapshot.Snapshot) string {
	at := slices.IndexFunc(snap.Pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	return snap.Pods[at].Spec.NodeName
}

// withWaiting adds a claim for two devices, and 1,000 pods that wait.
func withWaiting(snap *snapshot.Snapshot) *snapshot.Snapshot {
	claim := waitingClaim()
	claim.Spec.Devices.Requests[0].Exactly.Count = 2
	claim.Status = resourceapi.ResourceClaimStatus{}
	snap.Claims = append(snap.Claims, claim)
	fleet.AddWaiting(snap, 1000)
	return snap
}
