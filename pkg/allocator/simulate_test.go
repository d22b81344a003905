// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

func start(t *testing.T, snap *snapshot.Snapshot) *cluster.Cluster {
	t.Helper()
	tc.Unchanged(t, snap)
	return cluster.New(snap)
}

// steps places pods one after another, and says which device each gets.
func steps(t *testing.T, state *cluster.Cluster, names ...string) (placed string, after *cluster.Cluster) {
	t.Helper()
	var texts []string
	for _, name := range names {
		r, err := allocator.Place(t.Context(), state, state.Snapshot.Pod(tc.Namespace, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			texts = append(texts, name+": nowhere")
			continue
		}
		text := name + ": " + r.Node
		for i := range r.Claims {
			allocation := r.Claims[i].Allocation
			if allocation == nil {
				allocation = r.Claims[i].Claim.Status.Allocation
			}
			for _, device := range allocation.Devices.Results {
				text += " " + device.Device
			}
		}
		texts = append(texts, text)
		state = state.Amended(whatif.Reserve(state.Snapshot, *r))
	}
	return strings.Join(texts, "; "), state
}

// TestPlace covers two nodes with two devices and with one.
func TestPlace(t *testing.T) {
	one := []any{tc.Template("one", tc.GPUs("gpu", 1)), tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(1)...)}
	for _, name := range []string{"a", "b", "c", "d"} {
		one = append(one, tc.Pod(name, tc.UsingTemplate("gpu", "one")), tc.Claim(name+"-gpu", tc.GPUs("gpu", 1)).OwnedBy("Pod", name))
	}
	for name, test := range map[string]struct {
		parts []any
		pods  []string
		want  string
	}{
		"devices run out":           {one, []string{"a", "b", "c", "d"}, "a: n1 gpu-0; b: n1 gpu-1; c: n2 gpu-0; d: nowhere"},
		"the order is the caller's": {one, []string{"d", "a"}, "d: n1 gpu-0; a: n1 gpu-1"},
		"a shared claim": {
			[]any{tc.Nodes("n1", "n2"), tc.Pool("n2", tc.Devices(1)...), tc.Claim("both", tc.GPUs("gpu", 1)), tc.Pod("a", tc.Using("both")), tc.Pod("b", tc.Using("both"))},
			[]string{"a", "b"},
			"a: n2 gpu-0; b: n2 gpu-0",
		},
		"room for one pod alone": {
			[]any{
				tc.NodeOffering("n1", "cpu=1", "pods=10"), tc.Pool("n1", tc.Devices(2)...), tc.Claim("x", tc.GPUs("gpu", 1)), tc.Claim("y", tc.GPUs("gpu", 1)),
				tc.Pod("a", tc.Using("x"), tc.Requesting("cpu=1")), tc.Pod("b", tc.Using("y"), tc.Requesting("cpu=1")),
			},
			[]string{"a", "b"},
			"a: n1 gpu-0; b: nowhere",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := steps(t, start(t, tc.Cluster(test.parts...)), test.pods...); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestSteps changes a cluster where one pod runs and another one finds no device.
func TestSteps(t *testing.T) {
	snap := tc.Cluster(
		tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim("wants", tc.GPUs("gpu", 1)), tc.Pod("waits", tc.Using("wants")),
		tc.Claim("has", tc.GPUs("gpu", 1)).Holding("n1/gpu-0").ReservedFor("runs", string(tc.UID("runs"))), tc.Pod("runs", tc.Using("has"), tc.RunningOn("n1")),
	)
	before := start(t, snap)
	runs := snap.Pod(tc.Namespace, "runs")
	for name, test := range map[string]struct {
		step func() *cluster.Cluster
		want string
	}{
		"nothing": {func() *cluster.Cluster { return before }, "waits: nowhere"},
		"evicted": {func() *cluster.Cluster {
			return before.Amended(whatif.Evict(before.Snapshot, []*corev1.Pod{runs}))
		}, "waits: n1 gpu-0; runs: nowhere"},
		"deleted": {func() *cluster.Cluster {
			return before.Amended(whatif.Delete(before.Snapshot, []*corev1.Pod{runs}))
		}, "waits: n1 gpu-0"},
		"one more node": {func() *cluster.Cluster {
			return before.Amended(whatif.AddNodes(before.Snapshot, "n1", 1))
		}, "waits: n1-new-0 gpu-0"},
		"two steps": {func() *cluster.Cluster { return removed(before, runs) }, "waits: nowhere"},
		"a request less": {func() *cluster.Cluster {
			less, err := whatif.Amend(snap, []api.Edit{whatif.NewEdit(api.Ref("ResourceClaim", "ml", "wants"), "remove", "/spec/devices/requests/0", nil)})
			if err != nil {
				t.Fatal(err)
			}
			return before.Amended(less)
		}, "waits: n1"},
	} {
		t.Run(name, func(t *testing.T) {
			state := test.step()
			names := []string{"waits"}
			if pod := state.Snapshot.Pod(tc.Namespace, "runs"); pod != nil && pod.Spec.NodeName == "" {
				names = append(names, "runs")
			}
			if got, _ := steps(t, state, names...); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got, _ := steps(t, before, "waits"); got != "waits: nowhere" {
				t.Errorf("the state before was changed: %s", got)
			}
		})
	}
	if _, err := whatif.Amend(snap, []api.Edit{whatif.NewEdit(api.Ref("Pod", "ml", "nobody"), "remove", "", nil)}); err == nil {
		t.Error("an edit of a pod that does not exist is no error")
	}
}

func removed(state *cluster.Cluster, pod *corev1.Pod) *cluster.Cluster {
	state = state.Amended(whatif.Delete(state.Snapshot, []*corev1.Pod{pod}))
	return state.Amended(whatif.RemoveNode(state.Snapshot, "n1"))
}

// TestUndecided covers a claim of a class that does not exist: the allocator fails.
func TestUndecided(t *testing.T) {
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim("wants", tc.Request("gpu", "nonesuch", 1)), tc.Pod("waits", tc.Using("wants")))
	state := start(t, snap)
	_, err := allocator.Place(t.Context(), state, snap.Pods[0], nil)
	var undecided *allocator.UndecidedError
	if !errors.As(err, &undecided) || undecided.Node != "n1" || !undecided.EndsAttempt {
		t.Errorf("got %v, want an error about n1", err)
	}
	if err := allocator.NewAttempt(state, snap.Pods[0]).Problem(); err != nil {
		t.Errorf("the scheduler tries the pod: %v", err)
	}
	missing := tc.Pod("without", tc.Using("nonesuch"))
	if err := allocator.NewAttempt(state, missing).Problem(); err == nil {
		t.Error("a pod whose claim does not exist is tried")
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := allocator.Place(done, state, snap.Pods[0], nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
}

// TestDelete releases what only the pod used, and keeps what others use.
func TestDelete(t *testing.T) {
	snap := tc.Cluster(
		tc.Nodes("n1"), tc.Pool("n1", tc.Devices(3)...), tc.Pod("a", tc.RunningOn("n1")), tc.Pod("b", tc.RunningOn("n1")),
		tc.Claim("own", tc.GPUs("gpu", 1)).Holding("n1/gpu-0").OwnedBy("Pod", "a").ReservedFor("a", string(tc.UID("a"))),
		tc.Claim("named", tc.GPUs("gpu", 1)).Holding("n1/gpu-1").ReservedFor("a", string(tc.UID("a"))),
		tc.Claim("shared", tc.GPUs("gpu", 1)).Holding("n1/gpu-2").ReservedFor("a", string(tc.UID("a"))).ReservedFor("b", string(tc.UID("b"))),
	)
	after := start(t, snap).Amended(whatif.Delete(snap, []*corev1.Pod{snap.Pod(tc.Namespace, "a")}))
	var got []string
	for _, claim := range after.Snapshot.Claims {
		devices := 0
		if claim.Status.Allocation != nil {
			devices = len(claim.Status.Allocation.Devices.Results)
		}
		users := slices.Collect(func(yield func(string) bool) {
			for _, c := range claim.Status.ReservedFor {
				if !yield(c.Name) {
					return
				}
			}
		})
		got = append(got, claim.Name+" "+strings.Repeat("+", devices)+strings.Join(users, ","))
	}
	if want := []string{"named ", "shared +b"}; !slices.Equal(got, want) || after.Snapshot.Pod(tc.Namespace, "a") != nil {
		t.Errorf("got %q, want %q", got, want)
	}
}
