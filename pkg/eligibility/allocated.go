// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// PlacementClaim returns what the allocator picks for a claim. One that is yet to be
// created has no name.
func PlacementClaim(claim *resourceapi.ResourceClaim, devices []api.AllocatedDevice) api.PlacementClaim {
	out := api.PlacementClaim{Namespace: claim.Namespace, Devices: devices}
	if _, planned := cluster.IsPlanned(claim); planned {
		out.PodClaim = cluster.ClaimTitle(claim)
	} else {
		out.Name = claim.Name
	}
	return out
}

// PickedDevices describes what the allocator picks for a claim of a pod.
func PickedDevices(pod *corev1.Pod, claim *resourceapi.ResourceClaim, allocation *resourceapi.AllocationResult) []api.AllocatedDevice {
	devices := make([]api.AllocatedDevice, 0, len(allocation.Devices.Results))
	for i := range allocation.Devices.Results {
		device := AllocatedDevice(pod, claim, &allocation.Devices.Results[i])
		// The share has a new ID at each attempt.
		device.ShareID = ""
		devices = append(devices, device)
	}
	return devices
}

// AllocatedDevice describes a device of a claim. The pod uses the
// claim; it can be nil.
func AllocatedDevice(pod *corev1.Pod, claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) api.AllocatedDevice {
	device := api.AllocatedDevice{
		Request: result.Request, Driver: result.Driver, Pool: result.Pool, Device: result.Device,
		AdminAccess: result.AdminAccess != nil && *result.AdminAccess,
	}
	if use, ok := cluster.ExtendedResourceRequest(pod, claim, result.Request); ok {
		device.Container, device.ExtendedResource = use.ContainerName, use.ResourceName
	}
	if result.ShareID != nil {
		device.ShareID = string(*result.ShareID)
	}
	for name, quantity := range result.ConsumedCapacity {
		if device.ConsumedCapacity == nil {
			device.ConsumedCapacity = map[string]string{}
		}
		device.ConsumedCapacity[string(name)] = quantity.String()
	}
	return device
}

// PlacementText says in one clause what the allocator picks.
func PlacementText(placement *api.Placement) string {
	text := "the allocator picks " + placement.Node
	var chosen []string
	for _, claim := range placement.Claims {
		for _, d := range claim.Devices {
			if resourceclaim.IsSubRequestRef(d.Request) && !slices.Contains(chosen, d.Request) {
				chosen = append(chosen, d.Request)
			}
		}
	}
	if len(chosen) > 0 {
		text += ", taking " + english.JoinAnd(chosen)
	}
	return text
}
