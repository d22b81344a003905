// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// Health is the kubelet's report about a device in the status of a pod (KEP-4680).
type Health struct {
	Pod     *corev1.Pod
	Status  corev1.ResourceHealthStatus
	Message string
}

// HealthOf returns the kubelet's reports about an allocated device in the status of the
// given pods, which use the claim. If a request has several devices, the kubelet names one
// only if the driver gives it no CDI name: then nothing is known.
func (c *Claims) HealthOf(holder Holder, pods []*corev1.Pod) []Health {
	results := holder.Claim.Status.Allocation.Devices.Results
	sameRequest := 0
	for i := range results {
		if results[i].Request == holder.Result.Request {
			sameRequest++
		}
	}
	id := DeviceID{Driver: holder.Result.Driver, Pool: holder.Result.Pool, Device: holder.Result.Device}.String()
	var found []Health
	for _, pod := range pods {
		statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
		if !slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return len(s.AllocatedResourcesStatus) > 0 }) {
			continue
		}
		// among counts the devices of each entry that has the device.
		among := map[corev1.ResourceName]int{}
		for _, entry := range c.OfPod(pod) {
			if entry.Claim != nil && entry.Claim.Name == holder.Claim.Name {
				among[corev1.ResourceName("claim:"+entry.Entry)] = len(results)
				among[corev1.ResourceName("claim:"+entry.Entry+"/"+resourceclaim.BaseRequestRef(holder.Result.Request))] = sameRequest
			}
		}
		for i := range statuses {
			for _, r := range statuses[i].AllocatedResourcesStatus {
				devices, ours := among[r.Name]
				for _, health := range r.Resources {
					if !ours || devices != 1 && string(health.ResourceID) != id {
						continue
					}
					h := Health{Pod: pod, Status: health.Health}
					if health.Message != nil {
						h.Message = *health.Message
					}
					if !slices.Contains(found, h) {
						found = append(found, h)
					}
				}
			}
		}
	}
	return found
}
