// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"
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
	// The kinds of Kueue's queues: of a namespace, and of the cluster.
	KindLocalQueue   = "LocalQueue"
	KindClusterQueue = "ClusterQueue"
)

// QueuedWorkload is Kueue's Workload (kueue.x-k8s.io) for a job or pod that waits in one of
// its queues, without the fields that no explanation needs. Its owners are the pods or the
// job.
type QueuedWorkload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              QueuedWorkloadSpec   `json:"spec"`
	Status            QueuedWorkloadStatus `json:"status"`
}

// QueuedWorkloadSpec names the LocalQueue. Active is false for a workload that is
// not to be admitted.
type QueuedWorkloadSpec struct {
	QueueName string `json:"queueName,omitempty"`
	Active    *bool  `json:"active,omitempty"`
}

// QueuedWorkloadStatus tells how far the workload has come.
type QueuedWorkloadStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Admission is set once quota is reserved.
	Admission       *QueuedAdmission `json:"admission,omitempty"`
	AdmissionChecks []AdmissionCheck `json:"admissionChecks,omitempty"`
}

// QueuedAdmission names the ClusterQueue whose quota is reserved.
type QueuedAdmission struct {
	ClusterQueue string `json:"clusterQueue"`
}

// AdmissionCheck is the state of an admission check of a workload: Pending, Ready, Retry or
// Rejected.
type AdmissionCheck struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
}

// Ended reports whether the workload is over. A job can have several, of which
// the others did.
func (w *QueuedWorkload) Ended() bool {
	finished := w.Condition("Finished")
	return finished != nil && finished.Status == metav1.ConditionTrue
}

// Admitted reports whether Kueue lets the pods of the workload start.
func (w *QueuedWorkload) Admitted() bool {
	admitted := w.Condition("Admitted")
	return admitted != nil && admitted.Status == metav1.ConditionTrue
}

// DeepCopy returns a copy that shares nothing with the workload.
func (w *QueuedWorkload) DeepCopy() *QueuedWorkload {
	c := *w
	w.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = slices.Clone(w.Status.Conditions)
	c.Status.AdmissionChecks = slices.Clone(w.Status.AdmissionChecks)
	if w.Spec.Active != nil {
		c.Spec.Active = new(*w.Spec.Active)
	}
	if w.Status.Admission != nil {
		c.Status.Admission = new(*w.Status.Admission)
	}
	return &c
}

// QueuedWorkloadKind returns what a QueuedWorkload is saved as. All versions of Kueue have
// the same few fields.
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
