// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectRef refers to an object of a cluster. The same object has the same reference in all
// answers.
type ObjectRef struct {
	// APIGroup is the API group of the kind, without a version; it is left out for the
	// core group.
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind is the kind of the object. Besides the kinds of the API there are Driver, Pool
	// (DRIVER/POOL is its name), Device (DRIVER/POOL/DEVICE) and APIServer, all without a
	// group.
	Kind string `json:"kind"`
	// Namespace is the namespace of the object; it is left out if the object has none.
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the object; it is left out for all objects of the kind, and for
	// an object that does not have one yet.
	Name string `json:"name,omitempty"`
}

// Ref returns a reference to an object. A kind that Kubernetes does not have gets its group
// with [ObjectRef.In].
func Ref(kind, namespace, name string) ObjectRef {
	return ObjectRef{APIGroup: groupOf(kind), Kind: kind, Namespace: namespace, Name: name}
}

// RefTo returns a reference to an object that was read.
func RefTo(kind string, o metav1.Object) ObjectRef {
	return Ref(kind, o.GetNamespace(), o.GetName())
}

// In returns the reference with another group.
func (r ObjectRef) In(group string) ObjectRef {
	r.APIGroup = group
	return r
}

// groupOf returns the API group of a kind of Kubernetes, empty for the core group and for
// unknown kinds.
func groupOf(kind string) string {
	switch kind {
	case KindClaim, KindTemplate, "ResourceSlice", "DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest":
		return "resource.k8s.io"
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet":
		return "apps"
	case "Job", "CronJob":
		return "batch"
	case KindPodGroup, KindCompositePodGroup:
		return "scheduling.k8s.io"
	case "PodDisruptionBudget":
		return "policy"
	case "StorageClass":
		return "storage.k8s.io"
	case "HorizontalPodAutoscaler":
		return "autoscaling"
	case "ComputeDomain", "ComputeDomainClique":
		return "resource.nvidia.com"
	default:
		return ""
	}
}

// String returns the reference as evidence has it: "Kind/namespace/name", as far as there is
// a namespace and a name.
func (r ObjectRef) String() string {
	text := r.Kind
	switch {
	case r.Kind == KindAPIServer:
		text = "API server"
	case r.Namespace != "":
		text += "/" + r.Namespace
	}
	if r.Name != "" {
		text += "/" + r.Name
	}
	return text
}

// Title returns the reference as headlines have it: "Pod ml/train-0".
func (r ObjectRef) Title() string {
	return r.Kind + " " + r.QualifiedName()
}

// QualifiedName returns "namespace/name", or the name of an object without a namespace.
func (r ObjectRef) QualifiedName() string {
	return strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
}

// Argument returns the reference as kubectl takes it in the namespace: "job/train"; empty for
// none.
func (r ObjectRef) Argument() string {
	if r.Kind == "" {
		return ""
	}
	return strings.ToLower(r.Kind) + "/" + r.Name
}

// Kinds of objects with explanations, besides workloads.
const (
	KindClaim    = "ResourceClaim"
	KindTemplate = "ResourceClaimTemplate"
	KindPod      = "Pod"
	KindNode     = "Node"
	KindPodGroup = "PodGroup"
	// KindCompositePodGroup is the kind of a group of PodGroups.
	KindCompositePodGroup = "CompositePodGroup"
	KindDevice            = "Device"
	KindAPIServer         = "APIServer"
)
