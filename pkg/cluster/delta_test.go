// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func twoCores() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
}

// pods returns a snapshot with a running pod, web/server, and a pod that only waits for its
// turn, web/next.
func pods() *snapshot.Snapshot {
	container := corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{Requests: twoCores()}}
	return &snapshot.Snapshot{
		Nodes: []*corev1.Node{{
			ObjectMeta: metav1.ObjectMeta{Name: "node"},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}},
		Claims: []*resourceapi.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "gpu"}}},
		Pods: []*corev1.Pod{
			{
				ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "next"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{container}}, Status: corev1.PodStatus{Phase: corev1.PodPending},
			},
			{
				ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "server"},
				Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{container}}, Status: corev1.PodStatus{Phase: corev1.PodPending},
			},
		},
	}
}

// TestBetween says for events whether explanations in other namespaces may be wrong, in
// the same one, or none.
func TestBetween(t *testing.T) {
	const nobody, namespace, everybody = "nobody", "its namespace", "everybody"
	server := func(amend func(*corev1.Pod)) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) { amend(s.Pods[1]) }
	}
	next := func(amend func(*corev1.Pod)) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) { amend(s.Pods[0]) }
	}
	for name, test := range map[string]struct {
		event func(*snapshot.Snapshot)
		want  string
	}{
		"nothing":           {func(*snapshot.Snapshot) {}, nobody},
		"time":              {func(s *snapshot.Snapshot) { s.TakenAt = time.Now() }, nobody},
		"version":           {server(func(p *corev1.Pod) { p.ResourceVersion = "7" }), nobody},
		"version of a node": {func(s *snapshot.Snapshot) { s.Nodes[0].ResourceVersion = "8" }, nobody},
		"heartbeat": {func(s *snapshot.Snapshot) {
			s.Nodes[0].Status.Conditions[0].LastHeartbeatTime = metav1.Now()
		}, nobody},

		"it runs": {server(func(p *corev1.Pod) { p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "10.0.0.1" }), namespace},
		"it is ready": {server(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
		}), nobody},
		"its container has a sandbox": {server(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}}
		}), namespace},
		"it restarted": {server(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 3, AllocatedResources: twoCores(), Resources: &corev1.ResourceRequirements{Requests: twoCores()}}}
		}), namespace},
		"the scheduler tried": {next(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes"}}
		}), namespace},
		"it was created": {func(s *snapshot.Snapshot) {
			s.Pods = append([]*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "a"}}}, s.Pods...)
		}, namespace},
		"it is gone": {func(s *snapshot.Snapshot) { s.Pods = s.Pods[1:] }, namespace},

		"it left":        {func(s *snapshot.Snapshot) { s.Pods = s.Pods[:1] }, everybody},
		"it ended":       {server(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), everybody},
		"it is deleted":  {server(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), everybody},
		"another one":    {server(func(p *corev1.Pod) { p.UID = "2" }), everybody},
		"it got a node":  {next(func(p *corev1.Pod) { p.Spec.NodeName = "node" }), everybody},
		"it has a claim": {next(func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }), everybody},
		"it was resized": {server(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}}}
		}), everybody},
		"a device of it failed": {server(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResourcesStatus: []corev1.ResourceStatus{{Name: "claim:gpu"}}}}
		}), everybody},
		"one that asks for an extended resource": {func(s *snapshot.Snapshot) {
			pod := s.Pods[0].DeepCopy()
			pod.Name, pod.Spec.Containers[0].Resources.Requests["example.com/gpu"] = "a", resource.MustParse("1")
			s.Pods = append([]*corev1.Pod{pod}, s.Pods...)
		}, everybody},
		"a driver is not ready": {func(s *snapshot.Snapshot) {
			s.Pods[1].OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: ptr.To(true)}}
			s.Pods[1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		}, everybody},
		"a claim": {func(s *snapshot.Snapshot) { s.Claims[0].Status.Allocation = &resourceapi.AllocationResult{} }, everybody},
		"a message that proves a behavior": {next(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "number of allocations 1 is smaller than number of claims"}}
		}), everybody},
		"readiness of a node": {func(s *snapshot.Snapshot) { s.Nodes[0].Status.Conditions[0].Status = corev1.ConditionFalse }, everybody},
		"label":               {func(s *snapshot.Snapshot) { s.Claims[0].Labels = map[string]string{"a": "b"} }, everybody},
		"a gap":               {func(s *snapshot.Snapshot) { s.Gaps = []snapshot.Gap{{Resource: snapshot.ResourcePods}} }, everybody},
		"a gate":              {func(s *snapshot.Snapshot) { s.Gates = map[string]snapshot.Gate{"DRA": {Enabled: true}} }, everybody},
		"cordoned":            {func(s *snapshot.Snapshot) { s.Nodes[0].Spec.Unschedulable = true }, everybody},
	} {
		before, after := pods(), pods()
		test.event(after)
		version := after.Nodes[0].ResourceVersion
		c := Between(before, after)
		got := nobody
		if c.Any(); after.Nodes[0].ResourceVersion != version {
			t.Errorf("%s: the snapshot is changed", name)
		}
		switch {
		case c.Touches("ml"):
			got = everybody
		case c.Touches("web"):
			got = namespace
		}
		if got != test.want || c.Any() != (got != nobody) {
			t.Errorf("%s: touches %s (any: %t), want %s", name, got, c.Any(), test.want)
		}
	}
}

// TestReady changes the readiness of pods. Answers depend on it for the pods of drivers, and for pods of
// a StatefulSet, which creates the next pod then.
func TestReady(t *testing.T) {
	for owner, want := range map[string]bool{"ReplicaSet": false, "StatefulSet": true, "DaemonSet": true} {
		before, after := pods(), pods()
		for _, pod := range []*corev1.Pod{before.Pods[1], after.Pods[1]} {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Controller: ptr.To(true)}}
		}
		after.Pods[1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if d := Between(before, after); d.Touches("web") != want || d.Any() != want {
			t.Errorf("%s: it affects answers: %t, want %t", owner, d.Any(), want)
		}
	}
}

// TestThen adds the answers that two changes affect, also if the second one undoes the first.
func TestThen(t *testing.T) {
	first, second, third := pods(), pods(), pods()
	second.Pods[1].Status.Phase = corev1.PodRunning
	d := Between(first, second).Then(third)
	if d.Before != first || d.After != third || !d.Touches("web") || d.Touches("ml") {
		t.Errorf("it touches web: %t, ml: %t", d.Touches("web"), d.Touches("ml"))
	}
	third.Nodes[0].Spec.Unschedulable = true
	if d := Between(first, second).Then(third); !d.Touches("ml") {
		t.Error("the later change is forgotten")
	}
	if d := Between(first, pods()).Then(pods()); d.Any() {
		t.Error("changes of nothing are a change")
	}
}
