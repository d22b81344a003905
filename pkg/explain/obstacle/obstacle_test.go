// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package obstacle_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/internal/testquestion"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/obstacle"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestFind has pods for whose claims there are devices, and what keeps them from
// being placed. Of a gang, as many pods fit as the test says.
func TestFind(t *testing.T) {
	gang := func(s *snapshot.Snapshot) {
		s.PodGroups = append(s.PodGroups, &schedulingapi.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "workers"},
			Spec:       schedulingapi.PodGroupSpec{SchedulingPolicy: schedulingapi.PodGroupSchedulingPolicy{Gang: &schedulingapi.GangSchedulingPolicy{MinCount: 2}}},
		})
	}
	quota := func(s *snapshot.Snapshot) {
		list := corev1.ResourceList{"gpu.deviceclass.resource.k8s.io/devices": resource.MustParse("8")}
		s.Quotas = append(s.Quotas, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "gpus"}, Status: corev1.ResourceQuotaStatus{Hard: list, Used: list}})
	}
	volume := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	}
	pod := func(changes ...func(*corev1.Pod)) *corev1.Pod { return tc.Pod("p", append(changes, tc.Using("c"))...) }
	for name, test := range map[string]struct {
		parts []any
		fit   int
		want  string
		// unknown is what could not be evaluated.
		unknown string
	}{
		"nothing":                {parts: []any{pod()}},
		"no group":               {parts: []any{pod(tc.InGroup("workers"))}, want: "PodGroupMissing Queueing"},
		"group not listed":       {parts: []any{pod(tc.InGroup("workers")), tc.Gap(snapshot.ResourcePodGroups, "may not list")}, unknown: "PodGroup workers (may not list)"},
		"too few pods of a gang": {parts: []any{pod(tc.InGroup("workers")), gang}, want: "GangIncomplete Queueing"},
		"a gang that fits":       {parts: []any{pod(tc.InGroup("workers")), tc.Pod("q", tc.InGroup("workers")), gang}, fit: 2},
		"a gang too large":       {parts: []any{pod(tc.InGroup("workers")), tc.Pod("q", tc.InGroup("workers")), gang}, fit: 1, want: "GangIncomplete Allocation"},
		"no volume":              {parts: []any{pod(volume)}, want: "VolumeNotReady NodeFit"},
		"volumes not listed":     {parts: []any{pod(volume), func(s *snapshot.Snapshot) { s.Listed = nil }}, unknown: "volumes (the snapshot does not have them)"},
		"quota and volume": {
			parts: []any{pod(volume), quota, func(s *snapshot.Snapshot) { s.Claims[0].UID = "" }},
			want:  "QuotaExceeded ClaimGeneration, VolumeNotReady NodeFit",
		},
		"quota of a claim that exists": {parts: []any{pod(), quota}},
		"a pod that runs":              {parts: []any{pod(volume, tc.RunningOn("n1"))}},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append([]any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Claim("c", tc.GPUs("gpu", 1))}, test.parts...)...)
			s, err := target.Find(testquestion.Allocator(t, snap).Facts, target.Options{Kind: api.KindPod, Namespace: tc.Namespace, Name: "p"})
			if err != nil {
				t.Fatal(err)
			}
			found, unevaluated, err := obstacle.Find(t.Context(), testquestion.Of(t, snap, s.Pod), s, api.Fits, func(_ context.Context, pod *corev1.Pod) (*target.Gang, error) {
				return &target.Gang{Existing: len(target.GroupPods(snap, pod.Namespace, target.GroupOf(pod))), Fit: test.fit}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var got, unknown []string
			for _, o := range found {
				got = append(got, fmt.Sprintf("%s %s", o.Code, o.Stage))
			}
			for _, u := range unevaluated {
				unknown = append(unknown, u.String())
			}
			if text := strings.Join(got, ", "); text != test.want {
				t.Errorf("found %s, want %s", text, test.want)
			}
			if text := strings.Join(unknown, ", "); text != test.unknown {
				t.Errorf("not evaluated: %s, want %s", text, test.unknown)
			}
		})
	}
}
