// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Pod returns a pod in the namespace that has one container and waits for a node.
func Pod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: UID(name), CreationTimestamp: metav1.NewTime(Taken().Add(-14 * time.Minute))},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

// UsingClaim adds an entry for a claim.
func UsingClaim(entry, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: entry, ResourceClaimName: &name})
	}
}

// Using adds entries for claims, by their names, that the container uses.
func Using(claims ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range claims {
			UsingClaim(name, name)(p)
			p.Spec.Containers[0].Resources.Claims = append(p.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: name})
		}
	}
}

// UsingTemplate adds an entry for a template.
func UsingTemplate(entry, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: entry, ResourceClaimTemplateName: &name})
	}
}

// Generated records the name of a claim made from a template, nil for "none
// needed".
func Generated(entry string, name *string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: entry, ResourceClaimName: name})
	}
}

// OnlyTemplate turns the pod into a template that no API server has seen.
func OnlyTemplate(p *corev1.Pod) { p.UID = "" }

// OnNode sets the node of the pod.
func OnNode(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = name }
}

// RunningOn lets the pod run on a node.
func RunningOn(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning }
}

// InPhase sets the phase.
func InPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

// ReportedHealth adds what the kubelet says about a claim's device of [Node1].
func ReportedHealth(claim, device string, health corev1.ResourceHealthStatus, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "main", AllocatedResourcesStatus: []corev1.ResourceStatus{{
			Name:      corev1.ResourceName("claim:" + claim),
			Resources: []corev1.ResourceHealth{{ResourceID: corev1.ResourceID(Driver + "/" + Node1 + "/" + device), Health: health, Message: &message}},
		}}})
	}
}

// InGroup sets the PodGroup.
func InGroup(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name} }
}

// Requesting sets requests of the only container: "cpu=1".
func Requesting(requests ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = ResourceList(requests...) }
}

// ResourceList returns quantities given as "name=quantity".
func ResourceList(quantities ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, counter := range counterMap(quantities) {
		list[corev1.ResourceName(name)] = counter.Value
	}
	return list
}

// Node returns a node with labels, given as "key=value".
func Node(name string, labels ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		n.Labels[key] = value
	}
	return n
}

// Nodes returns their names as labels, 8 CPUs and 32Gi of memory.
func Nodes(names ...string) []*corev1.Node {
	list := make([]*corev1.Node, 0, len(names))
	for _, name := range names {
		n := Node(name, corev1.LabelHostname+"="+name)
		n.Status.Allocatable = ResourceList("cpu=8", "memory=32Gi", "pods=110")
		list = append(list, n)
	}
	return list
}

// NodeOffering returns the resources, given as "name=quantity".
func NodeOffering(name string, resources ...string) *corev1.Node {
	n := Node(name)
	n.Status.Capacity, n.Status.Allocatable = ResourceList(resources...), ResourceList(resources...)
	return n
}

// ChangeNode changes a node that was added before.
func ChangeNode(name string, change func(*corev1.Node)) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		for _, node := range s.Nodes {
			if node.Name == name {
				change(node)
			}
		}
	}
}
