// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Evict returns the snapshot after some pods were evicted and created again: they are on no
// node, their claims are reserved for them no longer, and a claim that is reserved for
// nobody else is deallocated. The claim for extended resources is gone: the scheduler makes
// another one. They have no creation time, which makes them the youngest. The argument is
// not modified, and all other objects are shared.
func Evict(snap *snapshot.Snapshot, pods []*corev1.Pod) *snapshot.Snapshot {
	after, waiting := *snap, newEdited(snap.Pods)
	after.Claims = released(snap.Claims, pods)
	for _, pod := range pods {
		pending := *pod
		pending.Spec.NodeName = ""
		pending.CreationTimestamp, pending.DeletionTimestamp = metav1.Time{}, nil
		pending.Status = corev1.PodStatus{Phase: corev1.PodPending, ResourceClaimStatuses: pod.Status.ResourceClaimStatuses}
		waiting.put(&pending)
	}
	after.Pods = waiting.merged()
	return &after
}

// Delete returns the snapshot after some pods were deleted for good. Their claims are
// released as by [Evict], and garbage collection has deleted the claims that they own. The
// argument is not modified, and all other objects are shared.
func Delete(snap *snapshot.Snapshot, pods []*corev1.Pod) *snapshot.Snapshot {
	after := *snap
	gone := keysOf(pods)
	after.Pods = slices.DeleteFunc(slices.Clone(snap.Pods), func(pod *corev1.Pod) bool { return gone[podKey{pod.Namespace, pod.Name, pod.UID}] })
	after.Claims = slices.DeleteFunc(released(snap.Claims, pods), func(claim *resourceapi.ResourceClaim) bool {
		return collected(claim, gone, after.Pods)
	})
	return &after
}

// collected reports whether garbage collection deletes a claim after some pods are gone: one of them
// owned it, and no other owner exists (attemptToDeleteItem in
// pkg/controller/garbagecollector/garbagecollector.go of Kubernetes v1.37.1). Owners that are not
// pods are assumed to exist.
func collected(claim *resourceapi.ResourceClaim, gone map[podKey]bool, left []*corev1.Pod) bool {
	owned := false
	for i := range claim.OwnerReferences {
		owner := podKey{claim.Namespace, claim.OwnerReferences[i].Name, claim.OwnerReferences[i].UID}
		switch {
		case claim.OwnerReferences[i].Kind != api.KindPod:
			return false
		case gone[owner]:
			owned = true
		case slices.ContainsFunc(left, func(pod *corev1.Pod) bool { return podKey{pod.Namespace, pod.Name, pod.UID} == owner }):
			return false
		}
	}
	return owned
}

// podKey identifies pods, even earlier ones of the same name.
type podKey struct {
	namespace, name string
	uid             types.UID
}

func keysOf(pods []*corev1.Pod) map[podKey]bool {
	keys := make(map[podKey]bool, len(pods))
	for _, pod := range pods {
		keys[podKey{pod.Namespace, pod.Name, pod.UID}] = true
	}
	return keys
}

// released returns claims that some pods no longer use, in a new list.
func released(claims []*resourceapi.ResourceClaim, pods []*corev1.Pod) []*resourceapi.ResourceClaim {
	gone := keysOf(pods)
	left := func(claim *resourceapi.ResourceClaim, c resourceapi.ResourceClaimConsumerReference) bool {
		return c.APIGroup == "" && c.Resource == "pods" && gone[podKey{claim.Namespace, c.Name, c.UID}]
	}
	after := make([]*resourceapi.ResourceClaim, 0, len(claims))
	for _, claim := range claims {
		hasLeft := func(c resourceapi.ResourceClaimConsumerReference) bool { return left(claim, c) }
		if !slices.ContainsFunc(claim.Status.ReservedFor, hasLeft) {
			after = append(after, claim)
			continue
		}
		if claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true" {
			continue
		}
		free := *claim
		free.Status.ReservedFor = slices.DeleteFunc(slices.Clone(claim.Status.ReservedFor), hasLeft)
		if len(free.Status.ReservedFor) == 0 {
			free.Status = resourceapi.ResourceClaimStatus{}
		}
		after = append(after, &free)
	}
	return after
}

// Leave returns the snapshot after some pods were deleted and some allocated devices
// released. A claim with nothing left is not allocated; a claim for extended resources is
// gone then. The argument is not modified, and all other objects are shared.
func Leave(snap *snapshot.Snapshot, leaves func(*corev1.Pod) bool, released func(*resourceapi.ResourceClaim, *resourceapi.DeviceRequestAllocationResult) bool) *snapshot.Snapshot {
	after := *snap
	after.Pods = slices.DeleteFunc(slices.Clone(snap.Pods), leaves)
	after.Claims = make([]*resourceapi.ResourceClaim, 0, len(snap.Claims))
	for _, claim := range snap.Claims {
		if claim = without(claim, released); claim != nil {
			after.Claims = append(after.Claims, claim)
		}
	}
	return &after
}

// without returns a claim without the released devices, nil if it is gone.
func without(claim *resourceapi.ResourceClaim, released func(*resourceapi.ResourceClaim, *resourceapi.DeviceRequestAllocationResult) bool) *resourceapi.ResourceClaim {
	if claim.Status.Allocation == nil {
		return claim
	}
	results := claim.Status.Allocation.Devices.Results
	var kept []resourceapi.DeviceRequestAllocationResult
	for i := range results {
		if !released(claim, &results[i]) {
			kept = append(kept, results[i])
		}
	}
	after := *claim
	switch {
	case len(kept) == len(results):
		return claim
	case len(kept) > 0:
		allocation := *claim.Status.Allocation
		allocation.Devices.Results = kept
		after.Status.Allocation = &allocation
	case claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true":
		return nil
	default:
		after.Status = resourceapi.ResourceClaimStatus{}
	}
	return &after
}

// Unallocated returns a claim without its allocation.
func Unallocated(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	claim = claim.DeepCopy()
	claim.Status = resourceapi.ResourceClaimStatus{}
	return claim
}
