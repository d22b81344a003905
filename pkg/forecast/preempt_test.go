// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

func preempting(t *testing.T, parts ...any) *api.Plan {
	t.Helper()
	state := start(t, tc.Cluster(parts...))
	out, err := forecast.MakePlan(t.Context(), state, true)
	if err != nil {
		t.Fatal(err)
	}
	forecast.ComparePlan(out, planOf(t, state), state)
	return out
}

func preemptText(out *api.Plan) string {
	line := text(out)
	for i := range out.Pods {
		for j := range out.Pods[i].Preempts {
			line += fmt.Sprintf("; %s takes the place of %s on %s", out.Pods[i].Name, out.Pods[i].Preempts[j].Name, out.Pods[i].Preempts[j].Node)
		}
	}
	return line
}

func controlled(parts []any) []any {
	for _, part := range parts {
		if pod, ok := part.(*corev1.Pod); ok {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}
		}
	}
	return parts
}

// TestPreempt covers pods of low priority on all devices of two nodes.
func TestPreempt(t *testing.T) {
	never := func(p *corev1.Pod) { p.Spec.PreemptionPolicy = new(corev1.PreemptNever) }
	nodes := []any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(2)...)}
	for name, test := range map[string]struct {
		parts []any
		want  string
	}{
		"of the lowest priority": {
			slices.Concat(waits("a", 1, 1, 9), runs("r", "n1", 5, "gpu-0", "gpu-1"), runs("s", "n2", 3, "gpu-0"), runs("u", "n2", 4, "gpu-1")),
			"a Placed n2 today Waiting; a takes the place of s on n2",
		},
		"as few as possible": {
			slices.Concat(waits("a", 2, 1, 9), runs("r", "n1", 5, "gpu-0", "gpu-1"), runs("s", "n2", 5, "gpu-0"), runs("u", "n2", 5, "gpu-1")),
			"a Placed n1 today Waiting; a takes the place of r on n1",
		},
		"the highest of them as low as possible": {
			slices.Concat(waits("a", 2, 1, 9), runs("r", "n1", 5, "gpu-0", "gpu-1"), runs("s", "n2", 3, "gpu-0"), runs("u", "n2", 4, "gpu-1")),
			"a Placed n2 today Waiting; a takes the place of u on n2; a takes the place of s on n2",
		},
		"not those of the same priority": {
			slices.Concat(waits("a", 2, 1, 5), runs("r", "n1", 5, "gpu-0", "gpu-1"), runs("s", "n2", 5, "gpu-0"), runs("u", "n2", 3, "gpu-1")),
			"a Waiting <r",
		},
		"not if it never preempts": {
			slices.Concat(waits("a", 1, 1, 9, never), runs("r", "n1", 5, "gpu-0", "gpu-1"), runs("s", "n2", 5, "gpu-0", "gpu-1")),
			"a Waiting <r",
		},
		"what is left goes to the next": {
			slices.Concat(waits("a", 1, 1, 9), waits("b", 1, 9, 1), runs("r", "n1", 5, "gpu-0", "gpu-1"), runs("s", "n2", 6, "gpu-0", "gpu-1")),
			"a Placed n1 today Waiting; b Placed n1 today Waiting; a takes the place of r on n1",
		},
		"who was preempted waits again": {
			slices.Concat(waits("a", 2, 1, 9), controlled(runs("r", "n1", 5, "gpu-0", "gpu-1")), runs("s", "n2", 9, "gpu-0"), waits("b", 1, 1, 1)),
			"a Placed n1 today Waiting; r Waiting <a today n1; b Placed n2; a takes the place of r on n1",
		},
		"and may find another place": {
			slices.Concat(waits("a", 2, 1, 9), controlled(runs("r", "n1", 5, "gpu-0")), runs("s", "n2", 9, "gpu-0"), waits("b", 1, 1, 1)),
			"a Placed n1 today Waiting; r Placed n2 today n1; b Waiting <a today Placedn1; a takes the place of r on n1",
		},
		"one after another": {
			slices.Concat(waits("a", 1, 2, 9), waits("b", 1, 1, 9), runs("r", "n1", 5, "gpu-0"), runs("s", "n1", 5, "gpu-1"), runs("u", "n2", 9, "gpu-0", "gpu-1")),
			"a Placed n1 today Waiting; b Placed n1 today Waiting; a takes the place of s on n1; b takes the place of r on n1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := preemptText(preempting(t, append(slices.Clone(nodes), test.parts...)...)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestPreemptNetwork covers a device that all nodes can use: nobody is preempted for it.
func TestPreemptNetwork(t *testing.T) {
	net := tc.Claim("of-r", tc.GPUs("gpu", 1)).ReservedFor("r", string(tc.UID("r"))).Holding("net/gpu-0")
	out := preempting(t, append(waits("a", 1, 1, 9), tc.Nodes("n1"), tc.Slice("net", tc.Driver, "net", tc.Devices(1)...).OnAllNodes(), net, tc.Pod("r", tc.Using("of-r"), tc.RunningOn("n1")))...)
	if got := preemptText(out); got != "a Waiting <r" {
		t.Error(got)
	}
}

// TestPreemptProperties covers random queues and pods that run: no device goes to two pods,
// nobody leaves for a pod that is not more important, and for each pod that waits, all of
// the lower priority on no single node would be enough.
func TestPreemptProperties(t *testing.T) {
	preempted, waiting := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5690))
		var parts []any
		for n := range 1 + r.IntN(3) {
			name := fmt.Sprintf("n%d", n)
			devices := 1 + r.IntN(4)
			parts = append(parts, tc.Nodes(name), tc.Pool(name, tc.Devices(devices)...))
			for from := 0; from < devices; {
				some := min(1+r.IntN(2), devices-from)
				var names []string
				for i := range some {
					names = append(names, fmt.Sprintf("gpu-%d", from+i))
				}
				from += some
				if r.IntN(4) > 0 {
					pod := runs(fmt.Sprintf("r-%s-%d", name, from), name, r.IntN(4), names...)
					if r.IntN(2) == 0 {
						pod = controlled(pod)
					}
					parts = append(parts, pod...)
				}
			}
		}
		for i := range 2 + r.IntN(6) {
			parts = append(parts, waits(fmt.Sprintf("p%d", i), int64(1+r.IntN(3)), r.IntN(60), r.IntN(5))...)
		}
		state := start(t, tc.Cluster(parts...))
		decisions, after, err := explain.DecideQueue(t.Context(), state, state.Waiting(), explain.QueueOptions{Preempts: true, Outlook: true})
		if err != nil {
			t.Fatal(err)
		}
		has := map[string]string{}
		for _, claim := range after.Snapshot.Claims {
			if claim.Status.Allocation == nil {
				continue
			}
			for _, d := range claim.Status.Allocation.Devices.Results {
				key := d.Pool + "/" + d.Device
				if other := has[key]; other != "" {
					t.Errorf("seed %d: %s and %s have %s", seed, other, claim.Name, key)
				}
				has[key] = claim.Name
			}
		}
		priority := func(pod *corev1.Pod) int32 { return *pod.Spec.Priority }
		for i := range decisions {
			d := &decisions[i]
			for _, victim := range d.Preempts {
				preempted++
				if priority(victim) >= priority(d.Pod) || victim.Spec.NodeName != d.Reservation.Node {
					t.Errorf("seed %d: %s on %s leaves for %s", seed, victim.Name, victim.Spec.NodeName, d.Pod.Name)
				}
			}
			if d.Reservation != nil {
				continue
			}
			waiting++
			for _, node := range after.Snapshot.Nodes {
				lower := slices.DeleteFunc(slices.Clone(after.Snapshot.Pods), func(pod *corev1.Pod) bool {
					return pod.Spec.NodeName != node.Name || priority(pod) >= priority(d.Pod)
				})
				without := after.Amended(whatif.Delete(after.Snapshot, lower))
				if fits, err := allocator.NewAttempt(without, d.Pod).On(t.Context(), node); fits != nil || err != nil {
					t.Errorf("seed %d: %s waits and fits on %s without %d pods (%v)", seed, d.Pod.Name, node.Name, len(lower), err)
				}
			}
		}
	}
	if preempted < 30 || waiting < 30 {
		t.Errorf("%d preempted, %d waiting: too few to mean anything", preempted, waiting)
	}
	if !strings.Contains(preemptText(preempting(t, append(waits("a", 1, 1, 1), tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...))...)), "a Placed n1") {
		t.Error("a pod that fits preempts")
	}
}
