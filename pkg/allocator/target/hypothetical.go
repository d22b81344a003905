// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Hypothetical reports whether a pod does not exist in the cluster: it was read from
// a manifest, or made up for a workload.
func Hypothetical(pod *corev1.Pod) bool {
	return pod.UID == "" && pod.CreationTimestamp.IsZero()
}

// podOf returns a pod as a workload will create it.
func podOf(snap *snapshot.Snapshot, w *snapshot.Workload) *corev1.Pod {
	return WithClassPriority(snap, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: w.Name + "-…",
			Labels: w.Template.Labels, Annotations: w.Template.Annotations,
		},
		Spec: lifecycle.TemplateSpec(w),
	})
}

// maxReplicas limits how many pods are made up for a workload that has none yet.
const maxReplicas = 1000

// replicas returns the pods of a workload that has none yet. Where it is not known how many
// there should be, or there are too many, one stands for all of them.
func replicas(pod *corev1.Pod, desired *int32) (pods []*corev1.Pod, sample bool) {
	count := int(ptr.Deref(desired, 1))
	sample = desired == nil || count > maxReplicas
	if sample {
		count = 1
	}
	for i := range max(count, 1) {
		replica := *pod
		replica.Name = fmt.Sprintf("%s%d", pod.Name, i)
		pods = append(pods, &replica)
	}
	return pods, sample
}

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
