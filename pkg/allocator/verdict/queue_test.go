// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// waits returns a pod of some age with a claim of its own for devices.
func waits(name string, devices int64, age time.Duration, priority int32) []any {
	return []any{tc.Claim(name, tc.GPUs("gpu", devices)), tc.Pod(name, tc.UsingClaim("gpus", name), func(p *corev1.Pod) {
		p.CreationTimestamp, p.Spec.Priority = metav1.NewTime(tc.Taken().Add(-age)), &priority
	})}
}

// TestQueue covers pods for two devices on a node, and who gets them.
func TestQueue(t *testing.T) {
	for name, test := range map[string]struct {
		pods []any
		want string
	}{
		"the older one first":        {slices.Concat(waits("a", 2, time.Minute, 0), waits("b", 1, time.Hour, 0), waits("c", 1, 30*time.Minute, 0)), "a: none, b: n1, c: n1"},
		"the important one first":    {slices.Concat(waits("a", 2, time.Minute, 10), waits("b", 1, time.Hour, 0)), "a: n1, b: none"},
		"too large takes nothing":    {slices.Concat(waits("a", 3, time.Hour, 0), waits("b", 2, time.Minute, 0)), "a: none, b: n1"},
		"by name where all is equal": {slices.Concat(waits("b", 2, time.Hour, 0), waits("a", 2, time.Hour, 0)), "a: n1, b: none"},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append(test.pods, tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...))...)
			c := cluster.New(snap)
			q := NewQueue(c, Options{})
			for _, pod := range snap.Pods {
				q.AddPod(pod)
			}
			if err := q.Decide(t.Context()); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, pod := range snap.Pods {
				node := "none"
				if p := q.Of(pod); p.Gets() {
					node = p.Reservation.Node
				}
				got = append(got, pod.Name+": "+node)
			}
			if text := strings.Join(got, ", "); text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}

// decided decides the queue of one pod, and counts the verdicts that the cluster remembers then.
func decided(t *testing.T, c *cluster.Cluster, name string) (*Queued, int) {
	t.Helper()
	s, err := target.Find(c, target.Options{Object: api.Ref(api.KindPod, tc.Namespace, name)})
	if err != nil {
		t.Fatal(err)
	}
	q := NewQueue(c, Options{})
	q.Add(s)
	if err := q.Decide(t.Context()); err != nil {
		t.Fatal(err)
	}
	return q.Of(s.Pod), len(memoryOf(c).byKind)
}

// TestPodsBefore decides the last of many pods, each with a claim of its own: those before it are
// equal but for names, and one verdict is enough for all of them.
func TestPodsBefore(t *testing.T) {
	objects := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(8)...)}
	for i := range 8 {
		objects = append(objects, waits(fmt.Sprintf("before-%d", i), 1, time.Hour, 0)...)
	}
	c := cluster.New(tc.Cluster(append(objects, waits("last", 1, time.Minute, 0)...)...))
	last, verdicts := decided(t, c, "last")
	if last.Gets() || len(last.Before) != 1 {
		t.Errorf("got %+v behind %d pods, want nothing, behind the one that gets the device picked for it", last.Reservation, len(last.Before))
	}
	if verdicts != 1 {
		t.Errorf("%d verdicts about the pods before it, want one", verdicts)
	}
}

// TestMemory decides one pod after the other, in a queue of its own each time: the pods before it
// are decided once, and what each gets is the same as without what other queues know.
func TestMemory(t *testing.T) {
	objects := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(8)...)}
	for i := range 4 {
		objects = append(objects, waits(fmt.Sprintf("before-%d", i), int64(i+1), time.Hour, 0)...)
	}
	for i := range 3 {
		objects = append(objects, waits(fmt.Sprintf("asked-%d", i), 1, time.Minute, int32(-i))...)
	}
	c := cluster.New(tc.Cluster(objects...))
	known := 0
	for i := range 3 {
		name := fmt.Sprintf("asked-%d", i)
		alone, _ := decided(t, c.Forgetful(), name)
		got, verdicts := decided(t, c, name)
		if got.Gets() != alone.Gets() || len(got.Before) != len(alone.Before) {
			t.Errorf("%s gets %+v behind %d pods, want %+v behind %d", name, got.Reservation, len(got.Before), alone.Reservation, len(alone.Before))
		}
		if i > 0 && verdicts > known+1 {
			t.Errorf("%s: %d verdicts are known, after %d before", name, verdicts, known)
		}
		known = verdicts
	}
	after := func(change func(*snapshot.Snapshot)) int {
		later := *c.Snapshot
		change(&later)
		return len(memoryOf(c.Amended(&later)).byKind)
	}
	if kept := after(func(s *snapshot.Snapshot) { s.TakenAt = s.TakenAt.Add(time.Second) }); kept != known {
		t.Errorf("%d verdicts are remembered a second later, want %d", kept, known)
	}
	if kept := after(func(s *snapshot.Snapshot) { s.TakenAt = s.TakenAt.Add(time.Hour) }); kept != 0 {
		t.Errorf("%d verdicts are remembered an hour later", kept)
	}
	if kept := after(func(s *snapshot.Snapshot) { s.Nodes = nil }); kept != 0 {
		t.Errorf("%d verdicts are remembered without nodes", kept)
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
		got, err := decideGang(t.Context(), cluster.New(snap), snap.Pod(tc.Namespace, name))
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
