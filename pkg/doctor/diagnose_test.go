// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// TestOverview checks the reasons of two pods for one device, which the queue decides. What
// doctor finds besides needs attention.
func TestOverview(t *testing.T) {
	waits := func(name string, age time.Duration) *corev1.Pod {
		return tc.Pod(name, tc.Using(name), func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-age)) })
	}
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.ClassWhere("broken", `device.driver ==`),
		tc.Claim("first", tc.GPUs("gpu", 1)), waits("first", time.Hour), tc.Claim("second", tc.GPUs("gpu", 1)), waits("second", time.Minute))
	tc.Unchanged(t, snap)
	o, err := Overview(t.Context(), facts.New(snap), "")
	if err != nil || len(o.Stuck) != 2 || len(o.Nodes) != 1 {
		t.Fatalf("%+v, %v", o, err)
	}
	if first, second := &o.Stuck[0].Reason, &o.Stuck[1].Reason; first.Verdict != api.Fits || second.Verdict != api.DoesNotFit || second.Code != api.PodsCompete || second.Summary == "" {
		t.Errorf("the first one %s, the second one %s, %s: %s", first.Verdict, second.Verdict, second.Code, second.Summary)
	}
	if len(o.Attention) != 1 || o.Attention[0].Kind != "Finding" || o.Attention[0].Code == "" {
		t.Errorf("attention %+v", o.Attention)
	}
}
