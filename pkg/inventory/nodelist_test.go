// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestMissingSlices expects a problem of the one node of its kind without slices.
func TestMissingSlices(t *testing.T) {
	kind := func(value string) func(*corev1.Node) {
		return func(node *corev1.Node) {
			node.Labels = map[string]string{corev1.LabelInstanceTypeStable: value, corev1.LabelHostname: node.Name, corev1.LabelOSStable: "linux"}
		}
	}
	v := inventoryWith(t, tc.Nodes("a", "b", "c", "d", "other"), tc.ChangeNode("a", kind("gpu")), tc.ChangeNode("b", kind("gpu")),
		tc.ChangeNode("c", kind("gpu")), tc.ChangeNode("d", kind("gpu")), tc.ChangeNode("other", kind("cpu")),
		tc.Pool("a", tc.Devices(2)...), tc.Pool("b", tc.Devices(2)...), tc.Pool("c", tc.Devices(2)...))
	nodes, err := v.NodeList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range nodes {
		for _, p := range nodes[i].Problems {
			got = append(got, fmt.Sprintf("%s: %s %s", nodes[i].Name, p.Code, p.Message))
		}
	}
	want := []string{"d: SlicesMissing " + tc.Driver + " publishes nothing, and does for 3 of 4 nodes with the same labels"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestProblemsOfClosedNodes expects nodes with devices that take no pods among those with problems, with the time
// since then and the devices that are idle.
func TestProblemsOfClosedNodes(t *testing.T) {
	since := metav1.NewTime(tc.Taken().Add(-3 * time.Hour))
	v := inventoryWith(t, tc.Nodes("n1", "n2", "n3", "n4", "n5"), tc.Pool("n1", tc.Devices(3)...), tc.Pool("n2", tc.Devices(1)...), tc.Pool("n3", tc.Devices(2)...), tc.Pool("n5", tc.Devices(1)...),
		tc.Serving("a", "n1", "gpu-0"), tc.Serving("b", "n2", "gpu-0"),
		tc.ChangeNode("n1", func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &since}}
		}),
		tc.ChangeNode("n2", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		tc.ChangeNode("n3", func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: since}}
		}),
		tc.ChangeNode("n4", func(n *corev1.Node) { n.Spec.Unschedulable = true }))
	nodes, err := v.NodeList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range nodes {
		for _, p := range nodes[i].Problems {
			got = append(got, fmt.Sprintf("%s %s %d %t: %s", nodes[i].Name, p.Code, p.Count, p.Since != nil, p.Message))
		}
	}
	want := []string{
		"n1 Cordoned 2 true: cordoned for 3h, 2 devices idle", "n2 Cordoned 0 false: cordoned", "n3 NotReady 2 true: not ready for 3h, 2 devices idle",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestIdleUsage expects the devices of a claim to be idle since its pod has ended.
func TestIdleUsage(t *testing.T) {
	ended := func(p *corev1.Pod) {
		p.Labels = map[string]string{"team": "blue"}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(tc.Taken().Add(-time.Hour))}},
		}}
	}
	v := inventoryWith(t, tc.Pool(tc.Node1, tc.NamedDevices("gpu-0", "gpu-1", "gpu-2")...),
		tc.Claim("done", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("done", "uid-done"), tc.Pod("done", tc.Using("done"), tc.OnNode(tc.Node1), tc.InPhase(corev1.PodSucceeded), ended),
		tc.Claim("runs", tc.GPUs("gpu", 2)).Holding("gpu-1").Holding("gpu-2").ReservedFor("train", "uid-train"), tc.Pod("train", tc.Using("runs"), tc.RunningOn(tc.Node1)))
	texts := func(list []api.Usage) []string {
		var got []string
		for _, u := range list {
			got = append(got, fmt.Sprintf("%s: %d used, %.2f, %d idle for %d s", u.Name, u.Used, *u.Share, u.Idle, u.IdleSeconds))
		}
		return got
	}
	for by, want := range map[string][]string{
		"namespace":  {"ml: 3 used, 1.00, 1 idle for 3600 s"},
		"owner":      {"ml/pod/train: 2 used, 0.67, 0 idle for 0 s", "ml/pod/done: 1 used, 0.33, 1 idle for 3600 s"},
		"label=team": {": 2 used, 0.67, 0 idle for 0 s", "blue: 1 used, 0.33, 1 idle for 3600 s"},
	} {
		if diff := cmp.Diff(want, texts(v.UsageBy(UsageOf{By: by}))); diff != "" {
			t.Errorf("by %s: -want +got:\n%s", by, diff)
		}
	}
	if got := v.UsageBy(UsageOf{By: "namespace", Namespace: "other"}); len(got) > 0 {
		t.Errorf("another namespace uses %v", texts(got))
	}
}

// TestUsageOfWaitingPods counts pods that wait also if nothing is known of what they ask for,
// and chooses by the labels of pods or, where they have none, of claims.
func TestUsageOfWaitingPods(t *testing.T) {
	team := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels = map[string]string{"team": name} }
	}
	blue := func(c *resourceapi.ResourceClaim) { c.Labels = map[string]string{"team": "blue"} }
	v := inventoryWith(t, tc.Pool(tc.Node1, tc.NamedDevices("gpu-0", "gpu-1")...),
		tc.Template("gpu", tc.GPUs("gpu", 1)), tc.Pod("first", tc.UsingTemplate("gpu", "gpu"), team("red")),
		tc.Pod("second", tc.UsingTemplate("gpu", "missing"), team("green")), tc.Pod("third", tc.Using("missing"), team("green")),
		tc.Claim("idle", tc.GPUs("gpu", 1)).Holding("gpu-0").Change(blue),
		tc.Claim("runs", tc.GPUs("gpu", 1)).Holding("gpu-1").ReservedFor("train", "uid-train").Change(blue), tc.Pod("train", tc.Using("runs"), tc.RunningOn(tc.Node1), team("red")))
	for _, c := range []struct {
		labels string
		want   []string
	}{
		{"", []string{"blue: 1 used, 0 wait", "red: 1 used, 1 wait", "green: 0 used, 2 wait"}},
		{"team in (green,blue)", []string{"blue: 1 used, 0 wait", "green: 0 used, 2 wait"}},
		{"team=none", nil},
	} {
		selector, err := labels.Parse(c.labels)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range v.UsageBy(UsageOf{By: "label=team", Labels: selector}) {
			got = append(got, fmt.Sprintf("%s: %d used, %d wait", u.Name, u.Used, u.Waiting))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", c.labels, diff)
		}
	}
}
