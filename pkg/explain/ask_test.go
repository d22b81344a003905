// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestEqualPodsAreOneLine(t *testing.T) {
	ofJob := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "train", Controller: ptr.To(true)}}
	}
	parts := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(5)...), tc.Template("nine", tc.GPUs("gpu", 9)), tc.Template("two", tc.GPUs("gpu", 2))}
	var targets []Options
	add := func(name, template string, age time.Duration, changes ...func(*corev1.Pod)) {
		parts = append(parts, queuedPodOf(name, template, age, changes...))
		targets = append(targets, Options{Object: api.Ref(api.KindPod, tc.Namespace, name)})
	}
	for i := range 4 {
		add(fmt.Sprintf("train-%d", i), "two", time.Hour-time.Duration(i)*time.Minute, ofJob)
	}
	for i := range 3 {
		add(fmt.Sprintf("bare-%d", i), "nine", time.Minute)
	}
	snap := tc.Cluster(parts...)
	c := cluster.New(snap)
	answers, err := ExplainEach(t.Context(), c, targets)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]*api.Explanation, 0, len(answers))
	for _, answer := range answers {
		if answer.Err != nil {
			t.Fatal(answer.Err)
		}
		list = append(list, answer.Explanation)
	}
	for i := range list[:4] {
		list[i].OtherScheduler = &api.OtherScheduler{Name: "volcano"}
	}
	volcano := GroupAnswers(list)[0].Summary()
	if want := "2 pods fit now for kube-scheduler, the first one on n1, but scheduler volcano decides."; volcano != want {
		t.Errorf("got %q, want %q", volcano, want)
	}
	if alone := GroupAnswers(list[:1])[0].Summary(); alone != "For kube-scheduler, but scheduler volcano decides: "+list[0].Summary {
		t.Errorf("one pod of another scheduler: %s", alone)
	}
	for i := range list[:4] {
		list[i].OtherScheduler = nil
	}
	var lines []string
	for _, g := range GroupAnswers(list) {
		lines = append(lines, fmt.Sprintf("%s %s %ds: %s", g.Name(), g.First.Verdict, g.Oldest, g.Summary()))
	}
	for i, want := range []string{
		"job/train (2 pods) Fits 3600s: 2 pods fit now, the first one on n1.",
		"job/train (2 pods) DoesNotFit 3480s: 2 pods, which are before it in the queue, get what it needs: ml/train-0 and ml/train-1.",
		"bare-0 and 2 equal pods DoesNotFit 60s: ",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is not %q:\n%s", i, want, strings.Join(lines, "\n"))
		}
	}
	if len(lines) != 3 {
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

// TestAgeOfWorkload: a workload without pods is as old as it is.
func TestAgeOfWorkload(t *testing.T) {
	e, err := Explain(t.Context(), tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(4)...), tc.Template("one", tc.GPUs("gpu", 1)),
		existing("Deployment", 3, replicaFailure("no"), func(w *snapshot.Workload) { w.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-time.Hour)) })), Options{Object: api.Ref("Deployment", tc.Namespace, "train")})
	if err != nil {
		t.Fatal(err)
	}
	if group := GroupAnswers([]*api.Explanation{e})[0]; group.Oldest != 3600 {
		t.Errorf("it is %ds old", group.Oldest)
	}
}
