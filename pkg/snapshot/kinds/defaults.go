// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import resourceapi "k8s.io/api/resource/v1"

// The functions in this file set what the API server sets when an object is
// created, so that a manifest reads like the object it becomes. The rules are
// those of pkg/apis/resource/v1/defaults.go and the +default markers of
// k8s.io/api/resource/v1. The time of a taint is not set: it would be the
// present, and different for each reader.

func defaultClaimSpec(spec *resourceapi.ResourceClaimSpec) {
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if exactly := request.Exactly; exactly != nil {
			defaultCount(&exactly.AllocationMode, &exactly.Count)
			defaultTolerations(exactly.Tolerations)
		}
		for j := range request.FirstAvailable {
			alternative := &request.FirstAvailable[j]
			defaultCount(&alternative.AllocationMode, &alternative.Count)
			defaultTolerations(alternative.Tolerations)
		}
	}
}

func defaultedClaim(claim *resourceapi.ResourceClaim, err error) (*resourceapi.ResourceClaim, error) {
	if err != nil {
		return nil, err
	}
	defaultClaimSpec(&claim.Spec)
	if claim.Status.Allocation == nil {
		return claim, nil
	}
	for i := range claim.Status.Allocation.Devices.Results {
		defaultTolerations(claim.Status.Allocation.Devices.Results[i].Tolerations)
	}
	return claim, nil
}

func defaultCount(mode *resourceapi.DeviceAllocationMode, count *int64) {
	if *mode == "" {
		*mode = resourceapi.DeviceAllocationModeExactCount
	}
	if *mode == resourceapi.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
}

func defaultTolerations(tolerations []resourceapi.DeviceToleration) {
	for i := range tolerations {
		if tolerations[i].Operator == "" {
			tolerations[i].Operator = resourceapi.DeviceTolerationOpEqual
		}
	}
}
