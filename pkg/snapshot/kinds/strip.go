// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Strip removes from an object, in place, what nothing in this program reads:
// the history of its fields, what containers run, pictures of images. That is
// most of a large cluster's bytes. What decides about scheduling stays.
func Strip(object metav1.Object) {
	object.SetManagedFields(nil)
	object.SetSelfLink("")
	stripImpossible(object)
	if annotations := object.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		noteDropped(object, annotations[corev1.LastAppliedConfigAnnotation])
		annotations = object.GetAnnotations()
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		if len(annotations) == 0 {
			object.SetAnnotations(nil)
		}
	}
	stripVolumeObject(object)
	switch object := object.(type) {
	case *corev1.Node:
		stripNode(object)
	case *corev1.Pod:
		noteComponent(object)
		stripPodSpec(&object.Spec)
		stripPodStatus(&object.Status)
	case *snapshot.Workload:
		notePlugin(object)
		stripPodSpec(&object.Template.Spec)
	case *resourceapi.ResourceClaim:
		stripClaim(object)
	case *resourceapi.ResourceClaimTemplate:
		for i := range object.Spec.Spec.Devices.Config {
			canonicalOpaque(object.Spec.Spec.Devices.Config[i].Opaque)
		}
	case *resourceapi.DeviceClass:
		for i := range object.Spec.Config {
			canonicalOpaque(object.Spec.Config[i].Opaque)
		}
	}
}

// unknownName stands for what cannot be the name of a kind, a resource or an
// object.
const unknownName = "unknown"

// stripImpossible removes from an object references that refer to nothing. The
// API server stores them, since it does not look at the form of these names.
func stripImpossible(object metav1.Object) {
	owners := object.GetOwnerReferences()
	impossible := func(owner metav1.OwnerReference) bool { return Owner(&owner, 0) != nil }
	if slices.ContainsFunc(owners, impossible) {
		object.SetOwnerReferences(slices.DeleteFunc(slices.Clone(owners), impossible))
	}
	switch object := object.(type) {
	case *resourceapi.ResourceClaim:
		for i := range object.Status.ReservedFor {
			// It stays: somebody has the claim.
			consumer := &object.Status.ReservedFor[i]
			if Consumer(consumer, i) != nil {
				consumer.APIGroup, consumer.Resource, consumer.Name = "", unknownName, unknownName
			}
		}
	case *corev1.Event:
		if Reference(&object.InvolvedObject, "") != nil {
			object.InvolvedObject = corev1.ObjectReference{Kind: unknownName, Name: unknownName}
		}
	}
}

// NeverRead returns the largest fields that [Strip] removes from objects of a
// resource, for [NewReader].
func NeverRead(resource string) []Field {
	always := ReadFields("metadata.managedFields")
	switch resource {
	case snapshot.ResourceNodes:
		return append(always, neverReadOfNodes()...)
	case snapshot.ResourcePods:
		return append(always, neverReadOfPods()...)
	default:
		return always
	}
}
