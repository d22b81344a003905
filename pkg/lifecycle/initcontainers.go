// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// initializing returns the init containers that show that the devices of a pod work before
// its phase is Running: started containers with devices. There are none if the next
// container of the pod, which may have devices, too, is not started yet: the kubelet and
// the runtime are at work then.
func initializing(pod *corev1.Pod) []corev1.ContainerStatus {
	if pod.Status.Phase != corev1.PodPending || len(failingContainers(pod)) > 0 {
		return nil
	}
	if c := PodCondition(pod, corev1.PodReadyToStartContainers); c != nil && c.Status == corev1.ConditionFalse {
		return nil
	}
	var with []corev1.ContainerStatus
	runs := false
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		at := slices.IndexFunc(pod.Status.InitContainerStatuses, func(status corev1.ContainerStatus) bool { return status.Name == container.Name })
		if at < 0 {
			continue
		}
		status := pod.Status.InitContainerStatuses[at]
		sidecar := ptr.Deref(container.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
		runs = runs || status.State.Running != nil && !sidecar
		if hasDevices(pod, container) && wasStarted(&status.State) {
			with = append(with, status)
		}
	}
	if !runs {
		return nil
	}
	return with
}

// hasDevices reports whether a container has devices of the pod's claims.
func hasDevices(pod *corev1.Pod, container *corev1.Container) bool {
	if len(container.Resources.Claims) > 0 {
		return true
	}
	extended := pod.Status.ExtendedResourceClaimStatus
	return extended != nil && slices.ContainsFunc(extended.RequestMappings, func(m corev1.ContainerExtendedResourceRequest) bool {
		return m.ContainerName == container.Name
	})
}

// wasStarted reports whether a container runs or has run. A container that the runtime
// could not start has terminated, too, with the beginning of Unix time as its start.
func wasStarted(state *corev1.ContainerState) bool {
	return state.Running != nil || state.Terminated != nil && state.Terminated.StartedAt.Unix() > 0
}

// stateText describes the state of a started container.
func stateText(state *corev1.ContainerState) string {
	if state.Running != nil {
		return "running since " + state.Running.StartedAt.UTC().Format(time.RFC3339)
	}
	return "terminated at " + state.Terminated.FinishedAt.UTC().Format(time.RFC3339)
}
