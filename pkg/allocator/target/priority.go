// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// WithClassPriority returns a pod that does not exist yet with the priority that the API
// server will give it. PriorityClasses are not read: the value is from other
// pods and PodGroups of the class. It is missing if there are none.
func WithClassPriority(snap *snapshot.Snapshot, pod *corev1.Pod) *corev1.Pod {
	if pod.Spec.Priority != nil || pod.Spec.PriorityClassName == "" {
		return pod
	}
	priority := classPriority(snap, pod.Spec.PriorityClassName)
	if priority == nil {
		return pod
	}
	changed := *pod
	changed.Spec.Priority = priority
	return &changed
}

// classPriority returns the priority of a PriorityClass, nil if it is not known.
func classPriority(snap *snapshot.Snapshot, class string) *int32 {
	for _, pod := range snap.Pods {
		if pod.Spec.PriorityClassName == class && pod.Spec.Priority != nil {
			return pod.Spec.Priority
		}
	}
	for _, group := range snap.PodGroups {
		if group.Spec.PriorityClassName == class && group.Spec.Priority != nil {
			return group.Spec.Priority
		}
	}
	return systemPriority(class)
}

// systemPriority returns the priority of the classes that every cluster has
// (pkg/apis/scheduling/v1/helpers.go), nil for others.
func systemPriority(class string) *int32 {
	const highestUserDefinable = int32(1000000000)
	priority := 2 * highestUserDefinable
	switch class {
	case "system-cluster-critical":
	case "system-node-critical":
		priority += 1000
	default:
		return nil
	}
	return &priority
}
