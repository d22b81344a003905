// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func teamsOf(v *Inventory) []string {
	var got []string
	for _, t := range v.Teams() {
		got = append(got, fmt.Sprintf("%s %s: %d used, %.2f, %d idle, %d wait, %d s", t.Namespace, t.Class, t.Used, t.Share, t.Idle, t.Waiting, t.LongestSeconds))
	}
	return got
}

func TestTeams(t *testing.T) {
	created := func(ago time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-ago)) }
	}
	other := func(claim *resourceapi.ResourceClaim) { claim.Namespace = "other" }
	v := inventoryWith(t, tc.Pool(tc.Node1, tc.NamedDevices("gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4")...),
		tc.Claim("runs", tc.GPUs("gpu", 2)).Holding("gpu-0").Holding("gpu-1").ReservedFor("train", "uid-train"), tc.Pod("train", tc.Using("runs"), tc.RunningOn(tc.Node1)),
		tc.Claim("idle", tc.GPUs("gpu", 1)).Holding("gpu-2"),
		tc.Claim("finished", tc.GPUs("gpu", 1)).Holding("gpu-3").ReservedFor("done", "uid-done"), tc.Pod("done", tc.Using("finished"), tc.OnNode(tc.Node1), tc.InPhase(corev1.PodSucceeded)),
		tc.Claim("watched", tc.GPUs("gpu", 1).WithAdminAccess()).Holding("gpu-0", tc.ForAdmin),
		tc.Claim("theirs", tc.GPUs("gpu", 1)).Holding("gpu-4").Change(other),
		tc.Claim("first", tc.GPUs("gpu", 9), tc.Request("more", "nic", 1)), tc.Pod("first", tc.Using("first"), created(time.Hour)),
		tc.Claim("second", tc.FirstAvailable("gpu", tc.Request("large", "nic", 1), tc.GPUs("small", 9))), tc.Pod("second", tc.Using("second"), created(time.Minute)),
		tc.Claim("for-nobody", tc.Request("gpu", "nobody", 1)),
		tc.Template("made-later", tc.GPUs("gpu", 1)), tc.Pod("third", tc.UsingTemplate("gpu", "made-later"), created(time.Second)),
	)
	want := []string{
		"ml gpu: 4 used, 0.80, 2 idle, 3 wait, 3600 s",
		"ml nic: 0 used, 0.00, 0 idle, 2 wait, 3600 s",
		"other gpu: 1 used, 0.20, 1 idle, 0 wait, 0 s",
	}
	if diff := cmp.Diff(want, teamsOf(v)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTeamsNotRead covers claims of other namespaces and all pods hidden.
func TestTeamsNotRead(t *testing.T) {
	v := inventoryWith(t, tc.Pool(tc.Node1, tc.NamedDevices("gpu-0")...), tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0"),
		snapshot.Gap{Resource: snapshot.ResourcePods, Reason: "forbidden"}, snapshot.Gap{Resource: snapshot.ResourceClaims, Namespace: "ml", Reason: "forbidden"})
	teams := v.Teams()
	if len(teams) != 1 || !teams[0].UsedIsLowerBound || !teams[0].PodsAreUnknown || teams[0].Idle != 0 {
		t.Errorf("got %+v", teams)
	}
}

func TestClosedNodes(t *testing.T) {
	notReady := func(node *corev1.Node) {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	}
	v := inventoryWith(t, tc.Nodes("a", "b", "c", "d"),
		tc.Pool("a", tc.Devices(2)...), tc.Pool("b", tc.Devices(3)...), tc.Pool("c", tc.Devices(4)...), tc.Pool("gone", tc.Devices(1)...),
		tc.ChangeNode("b", func(node *corev1.Node) {
			node.Spec.Unschedulable = true
			node.Spec.Taints = []corev1.Taint{
				{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
				{Key: "dedicated", Value: "ml", Effect: corev1.TaintEffectNoSchedule},
				{Key: "slow", Effect: corev1.TaintEffectPreferNoSchedule},
			}
		}),
		tc.ChangeNode("c", notReady), tc.ChangeNode("d", notReady),
	)
	var got []string
	for _, n := range v.ClosedNodes(v.Usage()) {
		got = append(got, fmt.Sprintf("%s cordoned %v %s %d free", n.Name, n.Cordoned, n.State, n.Devices.Free))
	}
	for _, n := range v.Nodes() {
		got = append(got, fmt.Sprintf("%s cordoned %v %s %v", n.Name, n.Cordoned, n.State, n.Taints))
	}
	want := []string{
		"b cordoned true Ready 3 free", "c cordoned false NotReady 4 free", "gone cordoned false Gone 0 free",
		"a cordoned false Ready []", "b cordoned true Ready [dedicated=ml:NoSchedule]", "c cordoned false NotReady []", "gone cordoned false Gone []",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestUsageHours adds up a known history. Missed time does not count, and groups that stopped stay.
func TestUsageHours(t *testing.T) {
	start := time.Date(2026, 9, 1, 9, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	var h UsageHours
	h.Add(at(0), false, []api.Usage{{Name: "a", Used: 8, Idle: 2}, {Name: "b", Waiting: 1}})
	h.Add(at(30), false, []api.Usage{{Name: "a", Used: 8}, {Name: "b", Used: 4}})
	h.Add(at(60), false, []api.Usage{{Name: "a", Used: 4}})
	h.Add(at(120), true, []api.Usage{{Name: "a", Used: 4}, {Name: "c", Waiting: 2}})
	h.Add(at(135), false, []api.Usage{{Name: "a", Used: 4}, {Name: "c", Waiting: 2}})
	var got []string
	for _, u := range h.Usage("namespace") {
		got = append(got, fmt.Sprintf("%s %d: %g %g %g", u.Name, u.Used, u.Hours.Devices, u.Hours.Idle, u.Hours.Waiting))
	}
	if want := "a 4: 9 1 0\nb 0: 2 0 0.5\nc 0: 0 0 0.5"; strings.Join(got, "\n") != want {
		t.Errorf("want:\n%s\ngot:\n%s", want, strings.Join(got, "\n"))
	}
}
