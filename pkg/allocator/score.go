// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// Score returns the score that the scheduler's dynamicresources plugin gives a node before
// normalization: the sooner an alternative of a prioritized list comes, the more points it
// brings. Claims are all of the pod's in order, allocations those that [Allocator.Check]
// gave for the ones without an allocation.
func Score(claims []*resourceapi.ResourceClaim, allocations []resourceapi.AllocationResult) int64 {
	var score int64
	for _, claim := range claims {
		allocation := claim.Status.Allocation
		if allocation == nil {
			if len(allocations) == 0 {
				break
			}
			allocation, allocations = &allocations[0], allocations[1:]
		}
		chosen := sets.New[string]()
		for i := range allocation.Devices.Results {
			chosen.Insert(allocation.Devices.Results[i].Request)
		}
		for i := range claim.Spec.Devices.Requests {
			request := &claim.Spec.Devices.Requests[i]
			for j := range request.FirstAvailable {
				if chosen.Has(resourceclaim.CreateSubRequestRef(request.Name, request.FirstAvailable[j].Name)) {
					score += int64(resourceapi.FirstAvailableDeviceRequestMaxSize - j)
				}
			}
		}
	}
	return score
}
