// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// busy returns a cluster of 5,000 nodes, and a function that returns it a second later: 100 pods
// became ready, or are not ready any more.
func busy() (first *snapshot.Snapshot, next func(*snapshot.Snapshot) *snapshot.Snapshot) {
	s := fleet.Mixed(5000)
	s.TakenAt = start()
	random, version := rand.New(rand.NewPCG(1, 1)), 1_000_000
	return s, func(before *snapshot.Snapshot) *snapshot.Snapshot {
		s := *before
		s.TakenAt = s.TakenAt.Add(time.Second)
		s.Pods = slices.Clone(s.Pods)
		for range 100 {
			i := random.IntN(len(s.Pods))
			pod := s.Pods[i].DeepCopy()
			version++
			pod.ResourceVersion = strconv.Itoa(version)
			ready, since := corev1.ConditionTrue, metav1.NewTime(s.TakenAt)
			if len(pod.Status.Conditions) > 1 && pod.Status.Conditions[1].Status == ready {
				ready = corev1.ConditionFalse
			}
			pod.Status.Conditions = []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(start().Add(-time.Hour))},
				{Type: corev1.PodReady, Status: ready, LastTransitionTime: since},
				{Type: corev1.ContainersReady, Status: ready, LastTransitionTime: since},
			}
			s.Pods[i] = pod
		}
		return &s
	}
}

// BenchmarkRecord records ten minutes of a busy cluster of 5,000 nodes, and reads the last moment
// and all of them. The time is that for a second of the cluster.
func BenchmarkRecord(b *testing.B) {
	const seconds = 600
	s, next := busy()
	states := []*snapshot.Snapshot{s}
	for len(states) < seconds {
		states = append(states, next(states[len(states)-1]))
	}
	b.ResetTimer()
	for range b.N {
		began := time.Now()
		path := record(b, states, Limits{})
		b.ReportMetric(float64(time.Since(began).Milliseconds())/seconds, "ms/s")
		r := opened(b, path)
		b.ReportMetric(float64(r.size)/(1<<20), "MiB")
		b.ReportMetric(float64(r.segments[0].size)/(1<<20), "first-MiB")
		began = time.Now()
		if _, err := r.Last(b.Context(), files.Options{}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(began).Seconds(), "last-s")
		began = time.Now()
		count := 0
		for _, err := range r.From(b.Context(), start(), files.Options{}) {
			if err != nil {
				b.Fatal(err)
			}
			count++
		}
		b.ReportMetric(time.Since(began).Seconds(), "all-s")
		if count != seconds {
			b.Fatal(fmt.Sprint(count, " moments"))
		}
	}
}
