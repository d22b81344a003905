// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The names that Kueue (https://kueue.sigs.k8s.io) gives to what it holds back.
const (
	KueueGroup = "kueue.x-k8s.io"
	// KueueGate is the scheduling gate of a pod that Kueue has not admitted.
	KueueGate = KueueGroup + "/admission"
	// KueueQueueLabel names the queue that a pod or a job waits in.
	KueueQueueLabel = KueueGroup + "/queue-name"
	// KueuePodGroupLabel names the group, and its QueuedWorkload, of a pod.
	KueuePodGroupLabel = KueueGroup + "/pod-group-name"
)

// QueuedWorkload is what Kueue keeps about a job or pod that waits in one of
// its queues, a Workload of kueue.x-k8s.io. Only what an explanation needs is
// kept. Its owners are the pods or the job.
type QueuedWorkload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              QueuedWorkloadSpec   `json:"spec"`
	Status            QueuedWorkloadStatus `json:"status"`
}

// QueuedWorkloadSpec names the LocalQueue.
type QueuedWorkloadSpec struct {
	QueueName string `json:"queueName,omitempty"`
}

// QueuedWorkloadStatus tells how far the workload has come.
type QueuedWorkloadStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopy returns a copy that shares nothing with the workload.
func (w *QueuedWorkload) DeepCopy() *QueuedWorkload {
	c := *w
	w.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = nil
	for i := range w.Status.Conditions {
		c.Status.Conditions = append(c.Status.Conditions, *w.Status.Conditions[i].DeepCopy())
	}
	return &c
}

// QueuedWorkloadKind is what a QueuedWorkload is saved as. All versions of
// Kueue have the same few fields.
func QueuedWorkloadKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: KueueGroup, Version: "v1beta1", Kind: "Workload"}
}

// HeldByKueue reports whether Kueue decides when a pod or a job may start, by its
// labels and, for a pod, its scheduling gates.
func HeldByKueue(labels map[string]string, gates []corev1.PodSchedulingGate) bool {
	for _, gate := range gates {
		if strings.HasPrefix(gate.Name, KueueGroup+"/") {
			return true
		}
	}
	return labels[KueueQueueLabel] != ""
}

// Condition returns the condition of that type, or nil.
func (w *QueuedWorkload) Condition(name string) *metav1.Condition {
	return meta.FindStatusCondition(w.Status.Conditions, name)
}
