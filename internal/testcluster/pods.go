// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Pod is in the namespace default and has one container.
func Pod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
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

// OnlyTemplate makes the pod one that no API server has seen.
func OnlyTemplate(p *corev1.Pod) { p.UID = "" }

// OnNode sets the node of the pod.
func OnNode(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = name }
}

// InGroup sets the PodGroup.
func InGroup(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name} }
}

// Requesting sets requests of the only container: "cpu=1".
func Requesting(requests ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = ResourceList(requests...) }
}

// Template is of claims with the requests.
func Template(name string, requests ...RequestWrapper) *resourceapi.ResourceClaimTemplate {
	return &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: resourceapi.ResourceClaimTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"made-from": name}},
			Spec:       Claim("").WithRequests(requests...).Spec,
		},
	}
}

// OwnedBy sets the controller, a Pod or PodGroup.
func (c ClaimWrapper) OwnedBy(kind, name string) ClaimWrapper {
	out := ClaimWrapper{c.DeepCopy()}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}
	if kind == "PodGroup" {
		owner.APIVersion = schedulingapi.SchemeGroupVersion.String()
	}
	out.OwnerReferences = []metav1.OwnerReference{owner}
	return out
}

// Deleted is a claim that is being deleted.
func (c ClaimWrapper) Deleted() ClaimWrapper {
	out := ClaimWrapper{c.DeepCopy()}
	out.DeletionTimestamp = &metav1.Time{}
	return out
}

// ForExtendedResources is the claim that the scheduler makes for extended resources.
func (c ClaimWrapper) ForExtendedResources() ClaimWrapper {
	out := ClaimWrapper{c.DeepCopy()}
	out.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
	return out
}

// ResourceList has quantities given as "name=quantity".
func ResourceList(quantities ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, counter := range counterMap(quantities) {
		list[corev1.ResourceName(name)] = counter.Value
	}
	return list
}
