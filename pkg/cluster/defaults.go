// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"maps"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Defaulted returns the claim with the API server's defaults that the allocator relies on
// (pkg/apis/resource/v1/defaults.go of Kubernetes). A claim that has them is returned as it
// is; others are copied.
func Defaulted(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	lacking := false
	eachCount(&claim.Spec, func(mode *resourceapi.DeviceAllocationMode, count *int64) {
		lacking = lacking || lacksDefaults(*mode, *count)
	})
	if !lacking {
		return claim
	}
	changed := claim.DeepCopy()
	setClaimDefaults(&changed.Spec)
	return changed
}

// setClaimDefaults sets what the API server sets in the spec of a claim.
func setClaimDefaults(spec *resourceapi.ResourceClaimSpec) {
	eachCount(spec, func(mode *resourceapi.DeviceAllocationMode, count *int64) {
		if lacksDefaults(*mode, *count) {
			*mode, *count = resourceapi.DeviceAllocationModeExactCount, cmp.Or(*count, 1)
		}
	})
}

// lacksDefaults reports whether the API server sets the mode or the count of a request.
func lacksDefaults(mode resourceapi.DeviceAllocationMode, count int64) bool {
	return mode == "" || mode == resourceapi.DeviceAllocationModeExactCount && count == 0
}

// eachCount visits the mode and the count of each request, and of each alternative.
func eachCount(spec *resourceapi.ResourceClaimSpec, visit func(mode *resourceapi.DeviceAllocationMode, count *int64)) {
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if request.Exactly != nil {
			visit(&request.Exactly.AllocationMode, &request.Exactly.Count)
		}
		for j := range request.FirstAvailable {
			visit(&request.FirstAvailable[j].AllocationMode, &request.FirstAvailable[j].Count)
		}
	}
}

// defaultedPod returns the pod with the defaults that the API server sets for pods, but not
// for pod templates, and that matter for scheduling (SetDefaults_Pod in
// pkg/apis/core/v1/defaults.go of Kubernetes): missing requests are the limits, and ports
// of the host's network are host ports. A pod that has them is returned as it is.
func defaultedPod(pod *corev1.Pod) *corev1.Pod {
	changed := pod
	container := func(list func(*corev1.Pod) []corev1.Container) {
		for i, c := range list(pod) {
			for name, limit := range c.Resources.Limits {
				if _, exists := c.Resources.Requests[name]; exists {
					continue
				}
				if changed == pod {
					changed = pod.DeepCopy()
				}
				resources := &list(changed)[i].Resources
				if resources.Requests == nil {
					resources.Requests = corev1.ResourceList{}
				}
				resources.Requests[name] = limit.DeepCopy()
			}
			for p, port := range c.Ports {
				if !pod.Spec.HostNetwork || port.HostPort != 0 {
					continue
				}
				if changed == pod {
					changed = pod.DeepCopy()
				}
				list(changed)[i].Ports[p].HostPort = port.ContainerPort
			}
		}
	}
	container(func(p *corev1.Pod) []corev1.Container { return p.Spec.InitContainers })
	container(func(p *corev1.Pod) []corev1.Container { return p.Spec.Containers })
	if missing := podLevelRequests(changed); len(missing) > 0 {
		if changed == pod {
			changed = pod.DeepCopy()
		}
		if changed.Spec.Resources.Requests == nil {
			changed.Spec.Resources.Requests = corev1.ResourceList{}
		}
		maps.Copy(changed.Spec.Resources.Requests, missing)
	}
	return changed
}

// podLevelRequests returns the missing pod-level requests of a pod with pod-level limits:
// the requests of its containers, or else the limit.
func podLevelRequests(pod *corev1.Pod) corev1.ResourceList {
	if pod.Spec.Resources == nil || len(pod.Spec.Resources.Limits) == 0 {
		return nil
	}
	missing := corev1.ResourceList{}
	requests := resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, exists := pod.Spec.Resources.Requests[name]; exists {
			continue
		}
		if sum, exists := requests[name]; exists {
			missing[name] = sum
		} else if limit, exists := pod.Spec.Resources.Limits[name]; exists {
			missing[name] = limit
		}
	}
	return missing
}
