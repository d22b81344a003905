// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

func read(t *testing.T, path ...string) *snapshot.Snapshot {
	t.Helper()
	s, err := files.Load(t.Context(), []string{filepath.Join(append([]string{"..", ".."}, path...)...)}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func between(t *testing.T, old, later *snapshot.Snapshot, opts Options) *api.Difference {
	t.Helper()
	d, err := Between(t.Context(), old, later, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// messages returns the changes in words, one a line.
func messages(changes []api.Change) string {
	var list []string
	for i := range changes {
		list = append(list, changes[i].Message)
	}
	return strings.Join(list, "\n")
}

// TestNothing compares a cluster with itself, and with what drivers, kubelets and the API server
// write while nothing changes.
func TestNothing(t *testing.T) {
	old, later := read(t, "examples", "cluster"), read(t, "examples", "cluster")
	later.TakenAt = later.TakenAt.Add(time.Second)
	newest := newestGenerations(later.Slices)
	for i, s := range later.Slices {
		s.Name, s.Spec.Pool.Generation = "again-"+s.Name, s.Spec.Pool.Generation+7
		s.ResourceVersion = "9"
		if i == 0 {
			s.UID = "other"
		}
	}
	if len(newest) == 0 {
		t.Fatal("the cluster has no pools")
	}
	for _, n := range later.Nodes {
		n.ResourceVersion = "9"
		for i := range n.Status.Conditions {
			n.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(later.TakenAt)
		}
	}
	for _, p := range later.Pods {
		p.ResourceVersion, p.ManagedFields = "9", []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	}
	later.Sort()
	for _, other := range []*snapshot.Snapshot{old, later} {
		if d := between(t, old, other, Options{Fields: true}); Any(d) {
			t.Errorf("a cluster differs from itself: %+v\n%s", d, messages(d.Changes))
		}
	}
}

// TestMirror compares two states in both directions.
func TestMirror(t *testing.T) {
	before, after := read(t, "docs", "diff", "before.yaml"), read(t, "docs", "diff", "after.yaml")
	one, other := between(t, before, after, Options{}), between(t, after, before, Options{})
	if diff := cmp.Diff(ids(one.Began), ids(other.Ended)); diff != "" || len(one.Began) != 2 {
		t.Errorf("%d causes began: %s", len(one.Began), diff)
	}
	if diff := cmp.Diff(ids(one.Ended), ids(other.Began)); diff != "" || len(one.Ended) != 1 {
		t.Errorf("%d causes ended: %s", len(one.Ended), diff)
	}
	if len(one.Capacity) != 1 || len(other.Capacity) != 1 || !cmp.Equal(one.Capacity[0].Was, other.Capacity[0].Is) || !cmp.Equal(one.Capacity[0].Is, other.Capacity[0].Was) {
		t.Errorf("the capacity is %+v, and %+v the other way", one.Capacity, other.Capacity)
	}
	for _, d := range []*api.Difference{one, other} {
		if len(d.Answers) != 1 || d.Answers[0].Object != api.Ref(api.KindPod, "ml", "train") || len(d.Answers[0].Undo) != 1 {
			t.Fatalf("answers that differ: %+v", d.Answers)
		}
	}
	if a, b := one.Answers[0], other.Answers[0]; a.Was.Verdict != b.Is.Verdict || a.Is.Verdict != b.Was.Verdict || a.Was.Verdict != api.Fits {
		t.Errorf("%s -> %s, and the other way %s -> %s", a.Was.Verdict, a.Is.Verdict, b.Was.Verdict, b.Is.Verdict)
	}
	for d, want := range map[*api.Difference]string{
		one: `driver gpu.example.com 1.4.0 -> 1.5.0 on 2 nodes (gpu-1, gpu-2)
pool gpu-1 lost 2 devices (1 of 2 slices)
pod ml/serve scheduled
claim ml/serve-gpu of pod ml/serve got gpu-2/gpu-0`,
		other: `driver gpu.example.com 1.5.0 -> 1.4.0 on 2 nodes (gpu-1, gpu-2)
pool gpu-1 got 2 devices (all slices)
pod ml/serve is not scheduled any more
claim ml/serve-gpu released gpu-2/gpu-0`,
	} {
		if diff := cmp.Diff(want, messages(d.Changes)); diff != "" {
			t.Errorf("changes, -want +got:\n%s", diff)
		}
	}
}

func ids(causes []api.Cause) []string {
	var list []string
	for i := range causes {
		list = append(list, causes[i].ID)
	}
	return list
}

// TestArrived asks about pods that wait in one of the states alone.
func TestArrived(t *testing.T) {
	before, after := read(t, "docs", "diff", "before.yaml"), read(t, "docs", "diff", "after.yaml")
	target := explain.Options{Object: api.Ref(api.KindPod, "ml", "train")}
	without := func(s *snapshot.Snapshot) *snapshot.Snapshot {
		out := *s
		out.Pods = out.Pods[:1]
		out.Claims = out.Claims[:1]
		return &out
	}
	scheduled := read(t, "docs", "diff", "before.yaml")
	pod, claim := scheduled.Pod("ml", "train"), scheduled.Claim("ml", "train-gpu")
	pod.Spec.NodeName = "gpu-1"
	claim.Status.Allocation = &resourceapi.AllocationResult{}
	for _, device := range []string{"gpu-0", "gpu-1", "gpu-2"} {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "gpu", Driver: "gpu.example.com", Pool: "gpu-1", Device: device,
		})
	}
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "train"}}
	for name, test := range map[string]struct {
		old, later *snapshot.Snapshot
		target     *explain.Options
		was, is    api.Verdict
		supposed   bool
		undo       int
	}{
		"created, and would have fitted": {without(before), after, nil, api.Fits, api.DoesNotFit, true, 1},
		"created, and fits":              {without(after), before, &target, api.DoesNotFit, api.Fits, true, 1},
		"did not fit, and runs":          {after, scheduled, nil, api.DoesNotFit, api.Allocated, false, 1},
		"ran, and does not fit":          {scheduled, after, nil, api.Allocated, api.DoesNotFit, false, 1},
		"deleted":                        {before, without(after), &target, api.Fits, "", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := between(t, test.old, test.later, Options{Target: test.target})
			if len(d.Answers) != 1 {
				t.Fatalf("answers that differ: %+v", d.Answers)
			}
			a := d.Answers[0]
			if a.Object != target.Object || a.Was.Verdict != test.was || a.Is.Verdict != test.is || a.Was.Supposed != test.supposed || len(a.Undo) != test.undo {
				t.Errorf("the answer is %+v", a)
			}
		})
	}
}
