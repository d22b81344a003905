// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// KindOutline is the kind of a saved Outline, in a group of this program.
const (
	OutlineGroup = "dra.kubectl.dev"
	KindOutline  = "Outline"
)

// OutlineSpec has what keeps an object from creating pods.
type OutlineSpec struct {
	// Suspend is from a Job and most kinds of jobs.
	Suspend bool `json:"suspend,omitempty"`
	// ClusterQueue is from a LocalQueue of Kueue.
	ClusterQueue string `json:"clusterQueue,omitempty"`
	// StopPolicy is from a queue of Kueue.
	StopPolicy string `json:"stopPolicy,omitempty"`
	// ScaleTargetRef is from a HorizontalPodAutoscaler, nil for others.
	ScaleTargetRef *ScaleTarget `json:"scaleTargetRef,omitempty"`
}

// ScaleTarget is the object whose number of pods a HorizontalPodAutoscaler sets.
type ScaleTarget struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// OutlineStatus has the conditions of the object.
type OutlineStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GroupKind returns the group and kind of the object.
func (o *Outline) GroupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(o.Of.APIVersion, o.Of.Kind).GroupKind()
}

// Ref returns the reference to the object.
func (o *Outline) Ref() api.ObjectRef {
	return api.RefTo(o.Of.Kind, o).In(o.GroupKind().Group)
}

// Condition returns the condition of that type, or nil.
func (o *Outline) Condition(name string) *metav1.Condition {
	return meta.FindStatusCondition(o.Status.Conditions, name)
}

// DeepCopy returns a copy that shares nothing with the outline.
func (o *Outline) DeepCopy() *Outline {
	c := *o
	o.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = slices.Clone(o.Status.Conditions)
	if ref := o.Spec.ScaleTargetRef; ref != nil {
		c.Spec.ScaleTargetRef = new(*ref)
	}
	return &c
}

// Scales reports whether the object sets the number of pods of a workload.
func (o *Outline) Scales(kind schema.GroupKind, namespace, name string) bool {
	ref := o.Spec.ScaleTargetRef
	return o.GroupKind() == AutoscalerKind() && ref != nil && o.Namespace == namespace && ref.Name == name &&
		schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == kind
}

// Outline has the parts of an object that say whether pods are created: of a direct or
// indirect owner of pods (a JobSet, a RayCluster, the Job of a JobSet), of the queues of
// Kueue, and of a HorizontalPodAutoscaler.
type Outline struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	// Of is the type of the object.
	Of     metav1.TypeMeta `json:"of"`
	Spec   OutlineSpec     `json:"spec"`
	Status OutlineStatus   `json:"status"`
}

// AutoscalerKind returns the kind of objects that set the number of pods of a workload.
func AutoscalerKind() schema.GroupKind {
	return schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
}
