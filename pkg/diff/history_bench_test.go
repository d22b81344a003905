// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"iter"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
)

// busyHour yields an hour of a cluster, a state each second: in each, two nodes and some pods report
// that they are well, and every five seconds a claim releases its devices or gets them.
func busyHour(s *snapshot.Snapshot) iter.Seq2[recording.Moment, error] {
	allocated := slices.DeleteFunc(slices.Clone(s.Claims), snapshot.Pending)
	return func(yield func(recording.Moment, error) bool) {
		for i := range 3600 {
			next := *s
			next.TakenAt = s.TakenAt.Add(time.Second)
			next.Nodes = slices.Clone(s.Nodes)
			for k := range 2 {
				node := next.Nodes[(2*i+k)%len(next.Nodes)].DeepCopy()
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(next.TakenAt)}}
				next.Nodes[(2*i+k)%len(next.Nodes)] = node
			}
			next.Pods = slices.Clone(s.Pods)
			for k := range 5 {
				at := (5*i + k) % len(next.Pods)
				next.Pods[at] = next.Pods[at].DeepCopy()
				next.Pods[at].ResourceVersion += "1"
			}
			if i%5 == 0 {
				claim := allocated[i/10%len(allocated)].DeepCopy()
				if i%10 == 0 {
					claim.Status.Allocation, claim.Status.ReservedFor = nil, nil
				}
				next.Claims = slices.Clone(s.Claims)
				at := slices.IndexFunc(next.Claims, func(c *resourceapi.ResourceClaim) bool { return c.UID == claim.UID })
				next.Claims[at] = claim
			}
			s = &next
			if !yield(recording.Moment{Snapshot: s}, nil) {
				return
			}
		}
	}
}

// BenchmarkHour follows a pod that waits for an hour in a cluster of 600 nodes.
func BenchmarkHour(b *testing.B) {
	s := fleet.Mixed(600)
	fleet.AddWaiting(s, 59)
	s.TakenAt = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, node := range s.Nodes {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	var pod *corev1.Pod
	for _, p := range s.Pods {
		if p.Name == "waits-000004" {
			pod = p
		}
	}
	for b.Loop() {
		out, err := History(b.Context(), busyHour(s), explain.Options{Object: api.RefTo(api.KindPod, pod)})
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("%d entries, waited %d s, now %s", len(out.Entries), out.SecondsWaited, out.Now.Summary)
	}
}
