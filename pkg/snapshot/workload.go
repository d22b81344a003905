// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// The kinds of workloads of which more is kept than their pods.
const (
	KindDaemonSet   = "DaemonSet"
	KindJob         = "Job"
	KindDeployment  = "Deployment"
	KindReplicaSet  = "ReplicaSet"
	KindStatefulSet = "StatefulSet"
)

// Update is the way in which a workload replaces its pods after a change of its template.
type Update struct {
	// Type is RollingUpdate, Recreate or OnDelete.
	Type string `json:"type,omitempty"`
	// RollingUpdate has the limits of a RollingUpdate, nil for the defaults.
	RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`
}

// RollingUpdate is how many pods of a workload may be missing, and exist besides, while it
// replaces them. Nil stands for the default of the kind.
type RollingUpdate struct {
	MaxSurge       *intstr.IntOrString `json:"maxSurge,omitempty"`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// DaemonStatus is how many nodes a DaemonSet wants, and has, pods on.
type DaemonStatus struct {
	Desired int32 `json:"desiredNumberScheduled"`
	Ready   int32 `json:"numberReady"`
}

// Workload is any object with a pod template: a Deployment, a Job, a custom
// resource. Only what an explanation needs is kept.
type Workload struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	// Selector matches the labels of the workload's pods, nil if it has none.
	Selector *metav1.LabelSelector
	// Template is the template of its pods.
	Template corev1.PodTemplateSpec
	// Replicas is how many pods there should be at the same time, nil if the
	// workload does not say so, as a DaemonSet does not.
	Replicas *int32
	// Daemon is the status of a DaemonSet, nil if it has none or is none.
	Daemon *DaemonStatus
	// Suspended is set if its spec.suspend is true: it creates no pods.
	Suspended bool
	// Paused is set for a Deployment whose spec.paused is true: it makes no new ReplicaSet.
	Paused bool
	// Ordered is set for a StatefulSet that creates a pod only when the pods before it
	// are ready.
	Ordered bool
	// Update is how a Deployment or a DaemonSet replaces its pods, nil for the default and
	// for others.
	Update *Update
	// ObservedGeneration is the metadata.generation that its controller has acted on, nil
	// if it has no status that says so.
	ObservedGeneration *int64
	// Conditions are the conditions of its status, if it is of a built-in kind.
	Conditions []metav1.Condition
	// End is how a Job ended, nil if it has not, or is none.
	End *JobEnd
	// Limit is how long a Job runs at most, nil if it has no limit, does not run, or is none.
	Limit *JobLimit
}

// Ref returns the reference to the workload.
func (w *Workload) Ref() api.ObjectRef {
	return api.RefTo(w.Kind, w).In(w.GroupVersionKind().Group)
}

// KubeletPlugin reports whether the workload is a DaemonSet that uses the kubelet's
// directories for plugins, with the names in it that could be drivers.
func (w *Workload) KubeletPlugin() (names []string, plugin bool) {
	return Annotated(w, KubeletPluginAnnotation)
}

// JobEnd is how a Job ended. It makes no more pods then.
type JobEnd struct {
	// Condition is the type of the Job's condition that says so: Complete or
	// Failed.
	Condition string
	// Reason is the reason of the condition, such as BackoffLimitExceeded.
	Reason string
}

// JobLimit is when a Job fails that is not complete by then: its pods are deleted.
type JobLimit struct {
	// ActiveDeadlineSeconds is from its spec, and counts from StartTime, which is from its
	// status.
	ActiveDeadlineSeconds int64
	StartTime             metav1.Time
}

// Failed reports whether the Job failed.
func (e *JobEnd) Failed() bool { return e.Condition == string(batchv1.JobFailed) }

// DeepCopy returns a copy that shares nothing with the workload.
func (w *Workload) DeepCopy() *Workload {
	c := &Workload{TypeMeta: w.TypeMeta, Selector: w.Selector.DeepCopy(), Suspended: w.Suspended, Paused: w.Paused, Ordered: w.Ordered}
	c.Update, c.Conditions = w.Update, slices.Clone(w.Conditions)
	if w.ObservedGeneration != nil {
		c.ObservedGeneration = new(*w.ObservedGeneration)
	}
	w.DeepCopyInto(&c.ObjectMeta)
	w.Template.DeepCopyInto(&c.Template)
	if w.Replicas != nil {
		c.Replicas = new(*w.Replicas)
	}
	if w.Daemon != nil {
		c.Daemon = new(*w.Daemon)
	}
	if w.End != nil {
		c.End = new(*w.End)
	}
	if w.Limit != nil {
		c.Limit = new(*w.Limit)
	}
	return c
}
