// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestObstacles covers pods for whose claims there are devices, and what keeps them from
// being placed.
func TestObstacles(t *testing.T) {
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
		want  string
		// unknown lists the gaps.
		unknown string
	}{
		"nothing":                {parts: []any{pod()}},
		"no group":               {parts: []any{pod(tc.InGroup("workers"))}, want: "PodGroupMissing Queueing"},
		"group not listed":       {parts: []any{pod(tc.InGroup("workers")), tc.Gap(snapshot.ResourcePodGroups, "may not list")}, unknown: "PodGroup workers (may not list)"},
		"too few pods of a gang": {parts: []any{pod(tc.InGroup("workers")), gang}, want: "GangIncomplete Queueing"},
		"a gang that fits":       {parts: []any{pod(tc.InGroup("workers")), tc.Pod("q", tc.InGroup("workers")), gang}},
		"a gang too large":       {parts: []any{pod(tc.InGroup("workers")), tc.Claim("d", tc.GPUs("gpu", 2)), tc.Pod("q", tc.InGroup("workers"), tc.Using("d")), gang}, want: "GangIncomplete Allocation"},
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
			s, err := target.Find(cluster.New(snap), target.Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")})
			if err != nil {
				t.Fatal(err)
			}
			v, err := Decide(t.Context(), cluster.New(snap), s, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got, unknown []string
			for _, o := range v.Obstacles {
				got = append(got, fmt.Sprintf("%s %s", o.Code, o.Stage))
			}
			for _, u := range v.Unevaluated {
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
