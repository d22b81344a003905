// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	resourceapi "k8s.io/api/resource/v1"
)

// Unallocated returns a claim without its allocation.
func Unallocated(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	claim = claim.DeepCopy()
	claim.Status = resourceapi.ResourceClaimStatus{}
	return claim
}
