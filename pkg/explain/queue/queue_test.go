// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/internal/testquestion"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/queue"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// verdictsOnly answers with the allocator's verdict, and the nodes where it fits.
func verdictsOnly(t *testing.T) queue.Explainer {
	describe := func(_ *cluster.Cluster, s *target.Target) *api.Explanation {
		return &api.Explanation{Target: s.Object}
	}
	return queue.Explainer{Describe: describe, Explain: func(ctx context.Context, c *cluster.Cluster, s *target.Target) (*api.Explanation, error) {
		q := testquestion.Of(t, c.Snapshot, s.Pod)
		out := describe(c, s)
		out.Verdict = api.DoesNotFit
		for _, node := range q.Reach.Candidates {
			claims, err := q.ClaimsFor(node)
			if err != nil {
				return nil, err
			}
			if allocator.Of(c).Check(ctx, node, claims).Outcome == allocator.Fits {
				out.Verdict = api.Fits
				out.Nodes = append(out.Nodes, api.NodeGroup{Names: []string{node.Name}, Count: 1, Verdict: api.Fits})
			}
		}
		return out, nil
	}}
}

// waits is a pod of some age with a claim of its own for devices.
func waits(name string, devices int64, age time.Duration, priority int32) []any {
	return []any{tc.Claim(name, tc.GPUs("gpu", devices)), tc.Pod(name, tc.UsingClaim("gpus", name), func(p *corev1.Pod) {
		p.CreationTimestamp, p.Spec.Priority = metav1.NewTime(tc.Taken().Add(-age)), &priority
	})}
}

// TestQueue has pods for two devices on a node, and who gets them.
func TestQueue(t *testing.T) {
	for name, test := range map[string]struct {
		pods []any
		want string
	}{
		"the older one first":        {slices.Concat(waits("a", 2, time.Minute, 0), waits("b", 1, time.Hour, 0), waits("c", 1, 30*time.Minute, 0)), "a: DoesNotFit, b: Fits, c: Fits"},
		"the important one first":    {slices.Concat(waits("a", 2, time.Minute, 10), waits("b", 1, time.Hour, 0)), "a: Fits, b: DoesNotFit"},
		"too large takes nothing":    {slices.Concat(waits("a", 3, time.Hour, 0), waits("b", 2, time.Minute, 0)), "a: DoesNotFit, b: Fits"},
		"by name where all is equal": {slices.Concat(waits("b", 2, time.Hour, 0), waits("a", 2, time.Hour, 0)), "a: Fits, b: DoesNotFit"},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append(test.pods, tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...))...)
			alloc := testquestion.Allocator(t, snap)
			q := queue.New(verdictsOnly(t), alloc.Facts)
			if q.Any() {
				t.Error("there is a pod in the queue before one was added")
			}
			var targets []*target.Target
			for _, pod := range snap.Pods {
				s, err := target.Find(alloc.Facts, target.Options{Kind: api.KindPod, Namespace: pod.Namespace, Name: pod.Name})
				if err != nil {
					t.Fatal(err)
				}
				q.Add(s)
				targets = append(targets, s)
			}
			if err := q.Decide(t.Context()); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range targets {
				answer, err := q.Answer(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintf("%s: %s", s.Object.Name, answer.Verdict))
				if fits := answer.Verdict == api.Fits; fits != (answer.Placement != nil) {
					t.Errorf("%s is placed on %+v", s.Object.Name, answer.Placement)
				}
			}
			if text := strings.Join(got, ", "); text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}

// TestPodsBefore asks about the last of many pods, each with a claim of its own: those before
// it are equal but for names, and one question is enough for all of them.
func TestPodsBefore(t *testing.T) {
	objects := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(8)...)}
	for i := range 8 {
		objects = append(objects, waits(fmt.Sprintf("before-%d", i), 1, time.Hour, 0)...)
	}
	snap := tc.Cluster(append(objects, waits("last", 1, time.Minute, 0)...)...)
	explainer, questions := verdictsOnly(t), 0
	explain := explainer.Explain
	explainer.Explain = func(ctx context.Context, c *cluster.Cluster, s *target.Target) (*api.Explanation, error) {
		questions++
		return explain(ctx, c, s)
	}
	alloc := testquestion.Allocator(t, snap)
	last, err := target.Find(alloc.Facts, target.Options{Kind: api.KindPod, Namespace: tc.Namespace, Name: "last"})
	if err != nil {
		t.Fatal(err)
	}
	q := queue.New(explainer, alloc.Facts)
	q.Add(last)
	if err := q.Decide(t.Context()); err != nil {
		t.Fatal(err)
	}
	answer, err := q.Answer(t.Context(), last)
	if err != nil || answer.Code != api.PodsCompete || answer.Queue.BeforeCount != 8 {
		t.Errorf("got %+v, %v", answer, err)
	}
	if questions != 2 {
		t.Errorf("%d questions were asked, want one about the pod and one about those before it", questions)
	}
}

// TestVerdictsOfOtherQueues asks about one pod after the other, in a queue of its own each time:
// the pods before it are looked at once.
func TestVerdictsOfOtherQueues(t *testing.T) {
	objects := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(8)...)}
	for i := range 4 {
		objects = append(objects, waits(fmt.Sprintf("before-%d", i), int64(i+1), time.Hour, 0)...)
	}
	for i := range 3 {
		objects = append(objects, waits(fmt.Sprintf("asked-%d", i), 1, time.Minute, int32(-i))...)
	}
	snap := tc.Cluster(objects...)
	alloc := testquestion.Allocator(t, snap)
	explainer, questions := verdictsOnly(t), 0
	explain := explainer.Explain
	explainer.Explain = func(ctx context.Context, c *cluster.Cluster, s *target.Target) (*api.Explanation, error) {
		questions++
		return explain(ctx, c, s)
	}
	answers := func(verdicts func() *queue.Verdicts) string {
		questions = 0
		var said []string
		for i := range 3 {
			s, err := target.Find(alloc.Facts, target.Options{Kind: api.KindPod, Namespace: tc.Namespace, Name: fmt.Sprintf("asked-%d", i)})
			if err != nil {
				t.Fatal(err)
			}
			q := queue.New(explainer, alloc.Facts)
			q.Remember(verdicts())
			q.Add(s)
			if err := q.Decide(t.Context()); err != nil {
				t.Fatal(err)
			}
			answer, err := q.Answer(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, fmt.Sprintf("%s %+v", answer.Summary, answer.Queue))
		}
		return strings.Join(said, "; ")
	}
	alone := answers(func() *queue.Verdicts { return &queue.Verdicts{} })
	of := questions
	together := &queue.Verdicts{}
	if got := answers(func() *queue.Verdicts { return together }); got != alone {
		t.Errorf("got %s, want %s", got, alone)
	}
	if questions >= of {
		t.Errorf("%d questions were asked, as many as without what other queues know (%d)", questions, of)
	}
}

// TestDecideGang counts the pods of a gang that get devices, one after another, and
// those that have a node. A pod without a gang has no answer.
func TestDecideGang(t *testing.T) {
	group := &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "g"}}
	group.Spec.SchedulingPolicy.Gang = &schedulingapi.GangSchedulingPolicy{MinCount: 4}
	snap := tc.Cluster(append(slices.Concat(waits("a", 1, time.Hour, 0), waits("b", 1, time.Hour, 0), waits("c", 1, time.Hour, 0), waits("alone", 1, time.Hour, 0)),
		tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Pod("d", tc.RunningOn("n1")), tc.Gates{"GenericWorkload"}, func(s *snapshot.Snapshot) { s.PodGroups = append(s.PodGroups, group) })...)
	for _, pod := range snap.Pods {
		if pod.Name != "alone" {
			tc.InGroup("g")(pod)
		}
	}
	ask := func(name string) *target.Gang {
		got, err := queue.DecideGang(t.Context(), verdictsOnly(t), testquestion.Allocator(t, snap).Facts, snap.Pod(tc.Namespace, name))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := ask("a"); got == nil || got.Existing != 4 || got.Fit != 3 {
		t.Errorf("got %+v, want 4 of which two that wait fit and one runs", got)
	}
	if got := ask("alone"); got != nil {
		t.Errorf("the pod without a gang: %+v", got)
	}
}
