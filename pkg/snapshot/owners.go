// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Autoscaler returns the HorizontalPodAutoscaler of a workload, or nil.
func (s *Snapshot) Autoscaler(w *Workload) *Outline {
	for _, o := range s.Outlines {
		if o.Scales(w.GroupVersionKind().GroupKind(), w.Namespace, w.Name) {
			return o
		}
	}
	return nil
}

// Outline returns the outline of that kind and name, or nil. The group may be
// left out.
func (s *Snapshot) Outline(kind schema.GroupKind, namespace, name string) *Outline {
	for _, o := range named(s.Outlines, namespace, name) {
		if o.Of.Kind == kind.Kind && (kind.Group == "" || o.GroupKind() == kind) {
			return o
		}
	}
	return nil
}

// Owners lists what an object belongs to: its controller, what controls that, and
// so on, as far as the snapshot has them.
func (s *Snapshot) Owners(object metav1.Object) []metav1.OwnerReference {
	var owners []metav1.OwnerReference
	for len(owners) < maxOwners {
		controller := metav1.GetControllerOfNoCopy(object)
		if controller == nil {
			break
		}
		owners = append(owners, *controller)
		if object = s.owner(object.GetNamespace(), controller); object == nil {
			break
		}
	}
	return owners
}

// owner finds the object that a reference names, nil if the snapshot does not
// have it, or has another one of that name.
func (s *Snapshot) owner(namespace string, ref *metav1.OwnerReference) metav1.Object {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	if ref.Kind == "Pod" {
		if pod := s.Pod(namespace, ref.Name); pod != nil && SameUID(pod.UID, ref.UID) {
			return pod
		}
		return nil
	}
	for _, w := range named(s.Workloads, namespace, ref.Name) {
		if w.GroupVersionKind().GroupKind() == kind && SameUID(w.UID, ref.UID) {
			return w
		}
	}
	if o := s.Outline(kind, namespace, ref.Name); o != nil && SameUID(o.UID, ref.UID) {
		return o
	}
	return nil
}
