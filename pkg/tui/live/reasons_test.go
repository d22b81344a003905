// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
)

// TestReasonsHeedTheQueue covers two pods for one device: the answer for each is its
// outcome in the queue.
func TestReasonsHeedTheQueue(t *testing.T) {
	waits := func(name, claim string, age time.Duration) *corev1.Pod {
		return tc.Pod(name, tc.UsingClaim("gpu", claim), func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-age)) })
	}
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...),
		tc.Claim("first", tc.GPUs("gpu", 1)), waits("first", "first", time.Hour),
		tc.Claim("second", tc.GPUs("gpu", 1)), waits("second", "second", time.Minute))
	p, _, err := live.Take(t.Context(), live.NewFixed(snap), nil)
	if err != nil {
		t.Fatal(err)
	}
	reasons := live.NewReasons()
	for {
		of, more := reasons.Next(p, tc.Taken())
		if !more {
			break
		}
		if !reasons.Work(t.Context(), p, of, tc.Taken()) {
			t.Fatal("not worked out")
		}
	}
	for name, want := range map[string]string{"first": string(api.Fits), "second": string(api.PodsCompete)} {
		if got := reasons.Get(api.Ref(api.KindClaim, tc.Namespace, name)); got.Word() != want {
			t.Errorf("%s: %s, want %s: %s", name, got.Word(), want, got.Summary)
		}
		answer, err := p.Explain(t.Context(), explain.Options{Object: api.Ref(api.KindPod, tc.Namespace, name)})
		if err != nil || explain.Word(answer) != want {
			t.Errorf("the page about %s: %+v, %v", name, answer, err)
		}
	}
}

// TestQueueFollowsPictures publishes a device, with which a pod that comes first fits too: it
// takes what the other one could have had until then.
func TestQueueFollowsPictures(t *testing.T) {
	waits := func(name string, age time.Duration) *corev1.Pod {
		return tc.Pod(name, tc.UsingClaim("gpu", name), func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-age)) })
	}
	with := func(devices int) *snapshot.Snapshot {
		return tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(devices)...),
			tc.Claim("larger", tc.GPUs("gpu", 2)), waits("larger", time.Hour),
			tc.Claim("smaller", tc.GPUs("gpu", 1)), waits("smaller", time.Minute))
	}
	reasons := live.NewReasons()
	smaller := api.Ref(api.KindClaim, tc.Namespace, "smaller")
	var before *live.Picture
	for i, want := range []string{string(api.Fits), string(api.PodsCompete), string(api.PodsCompete)} {
		p, delta, err := live.Take(t.Context(), live.NewFixed(with(min(i+1, 2))), before)
		if err != nil {
			t.Fatal(err)
		}
		if delta != nil {
			reasons.Follow(p, before, delta)
		}
		if !reasons.Work(t.Context(), p, smaller, tc.Taken()) {
			t.Fatal("not worked out")
		}
		if got := reasons.Get(smaller); got.Word() != want {
			t.Errorf("picture %d: %s, want %s: %s", i, got.Word(), want, got.Summary)
		}
		before = p
	}
}
