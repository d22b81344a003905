// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InNamespace returns the objects of manifests, each in a namespace, as kubectl apply -n would
// give it one. The argument is not changed.
func (s *Snapshot) InNamespace(namespace string) *Snapshot {
	placed := *s
	place(&placed.Pods, namespace, (*corev1.Pod).DeepCopy)
	place(&placed.Claims, namespace, (*resourceapi.ResourceClaim).DeepCopy)
	place(&placed.Templates, namespace, (*resourceapi.ResourceClaimTemplate).DeepCopy)
	place(&placed.PodGroups, namespace, (*schedulingapi.PodGroup).DeepCopy)
	place(&placed.CompositePodGroups, namespace, (*schedulingv1alpha3.CompositePodGroup).DeepCopy)
	place(&placed.VolumeClaims, namespace, (*corev1.PersistentVolumeClaim).DeepCopy)
	place(&placed.Quotas, namespace, (*corev1.ResourceQuota).DeepCopy)
	place(&placed.LimitRanges, namespace, (*corev1.LimitRange).DeepCopy)
	place(&placed.Outlines, namespace, (*Outline).DeepCopy)
	place(&placed.Workloads, namespace, func(w *Workload) *Workload {
		placed := *w
		return &placed
	})
	return &placed
}

// place puts copies of the objects without a namespace into one.
func place[T metav1.Object](list *[]T, namespace string, copyOf func(T) T) {
	placed := make([]T, len(*list))
	for i, object := range *list {
		if object.GetNamespace() == "" {
			object = copyOf(object)
			object.SetNamespace(namespace)
		}
		placed[i] = object
	}
	*list = placed
}
