// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DaemonNode returns the node for which a DaemonSet has created a pod; it is empty for other
// pods. The controller sets this affinity instead of the template's
// (ReplaceDaemonSetPodNodeNameNodeAffinity in pkg/controller/daemon/util).
func DaemonNode(pod *corev1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != KindDaemonSet || pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return ""
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return ""
	}
	return OnlyNode(required.NodeSelectorTerms)
}

// OnlyNode returns the node that terms select by its name, empty if they select otherwise.
func OnlyNode(terms []corev1.NodeSelectorTerm) string {
	if len(terms) != 1 || len(terms[0].MatchExpressions) > 0 || len(terms[0].MatchFields) != 1 {
		return ""
	}
	field := &terms[0].MatchFields[0]
	if field.Key != metav1.ObjectNameField || field.Operator != corev1.NodeSelectorOpIn || len(field.Values) != 1 {
		return ""
	}
	return field.Values[0]
}
