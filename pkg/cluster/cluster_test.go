// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// newCluster makes sure that nobody changes the snapshot during the test.
func newCluster(t testing.TB, snap *snapshot.Snapshot) *Cluster {
	t.Helper()
	tc.Unchanged(t, snap)
	return New(snap)
}

// TestUnserved names extended resources that neither a node nor a class offers.
func TestUnserved(t *testing.T) {
	pod := tc.Pod("p", tc.Requesting("cpu=1", "example.com/plugin=1", "example.com/class=1", "example.com/none=1"))
	class := tc.Class("mapped", tc.Driver)
	class.Spec.ExtendedResourceName = ptr.To("example.com/class")
	parts := []any{tc.NodeOffering("n1", "example.com/plugin=4"), class, tc.Gate("DRAExtendedResource", true)}
	for name, test := range map[string]struct {
		more []any
		want []corev1.ResourceName
	}{
		"all read":     {nil, []corev1.ResourceName{"example.com/none"}},
		"hidden nodes": {[]any{tc.Gap(snapshot.ResourceNodes, "no")}, nil},
	} {
		snap := tc.Cluster(append(slices.Clone(parts), test.more...)...)
		if got := New(snap).Unserved(pod); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// TestWaiting lists the pods that neither have a node nor end, and that want devices: of a
// claim, whatever its state, or of an extended resource that nothing serves.
func TestWaiting(t *testing.T) {
	ended := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Phase = phase }
	}
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	placed := func(p *corev1.Pod) { p.Spec.NodeName = "n1" }
	snap := tc.Cluster(
		tc.Node("n1"), tc.Claim("pending"), tc.Claim("allocated").Holding("gpu.example.com/p/d1"),
		tc.Pod("a", tc.Using("pending")), tc.Pod("b", tc.Using("allocated")), tc.Pod("c", tc.Requesting("example.com/none=1")), tc.Pod("d", tc.Using("missing")),
		tc.Pod("plain"), tc.Pod("failed", tc.Using("pending"), ended(corev1.PodFailed)), tc.Pod("done", tc.Using("pending"), ended(corev1.PodSucceeded)),
		tc.Pod("deleted", tc.Using("pending"), deleted), tc.Pod("placed", tc.Using("pending"), placed),
	)
	names := func(c *Cluster) []string {
		var got []string
		for _, pod := range c.Waiting() {
			got = append(got, pod.Name)
		}
		return got
	}
	c := New(snap)
	if got, want := names(c), []string{"a", "b", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("%v wait, want %v", got, want)
	}
	after := *snap
	after.Pods = slices.Clone(snap.Pods[1:])
	if got, want := names(c.Amended(&after)), []string{"b", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("without the first one, %v wait, want %v", got, want)
	}
}
