// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
