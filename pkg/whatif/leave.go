// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

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
