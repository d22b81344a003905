// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Evict returns the snapshot as it is after some pods were evicted and created
// again: they are on no node, their claims are reserved for them no longer, and
// a claim that is reserved for nobody else is deallocated. The claim for extended
// resources is gone: the scheduler makes another one. Nothing of the argument is
// changed, and all other objects are shared.
func Evict(snap *snapshot.Snapshot, pods []*corev1.Pod) *snapshot.Snapshot {
	after := *snap
	evicted := func(claim *resourceapi.ResourceClaim, c resourceapi.ResourceClaimConsumerReference) bool {
		return c.APIGroup == "" && c.Resource == "pods" && slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
			return pod.Namespace == claim.Namespace && pod.Name == c.Name && pod.UID == c.UID
		})
	}
	after.Claims = nil
	for _, claim := range snap.Claims {
		isEvicted := func(c resourceapi.ResourceClaimConsumerReference) bool { return evicted(claim, c) }
		if !slices.ContainsFunc(claim.Status.ReservedFor, isEvicted) {
			after.Claims = append(after.Claims, claim)
			continue
		}
		if claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true" {
			continue
		}
		released := *claim
		released.Status.ReservedFor = slices.DeleteFunc(slices.Clone(claim.Status.ReservedFor), isEvicted)
		if len(released.Status.ReservedFor) == 0 {
			released.Status = resourceapi.ResourceClaimStatus{}
		}
		after.Claims = append(after.Claims, &released)
	}
	for _, pod := range pods {
		pending := *pod
		pending.Spec.NodeName = ""
		pending.DeletionTimestamp = nil
		pending.Status = corev1.PodStatus{Phase: corev1.PodPending, ResourceClaimStatuses: pod.Status.ResourceClaimStatuses}
		after.Pods = replaced(after.Pods, &pending)
	}
	return &after
}
