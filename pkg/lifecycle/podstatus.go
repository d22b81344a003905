// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// sandboxReady returns the condition that a pod has a sandbox.
func sandboxReady(pod *corev1.Pod) *corev1.PodCondition {
	if c := PodCondition(pod, corev1.PodReadyToStartContainers); c != nil && c.Status == corev1.ConditionTrue {
		return c
	}
	return nil
}

// sandboxLost returns the condition that a pod which ran lost its sandbox: the kubelet
// makes another one, after preparing the devices again.
func sandboxLost(pod *corev1.Pod) *corev1.PodCondition {
	c := PodCondition(pod, corev1.PodReadyToStartContainers)
	if c == nil || c.Status != corev1.ConditionFalse || pod.Status.Phase != corev1.PodRunning || !started(pod).IsZero() {
		return nil
	}
	return c
}

// started returns the start of the first running container, zero if none runs.
func started(pod *corev1.Pod) time.Time {
	var first time.Time
	for _, status := range containerStatuses(pod) {
		if r := status.State.Running; r != nil && (first.IsZero() || r.StartedAt.Time.Before(first)) {
			first = r.StartedAt.Time
		}
	}
	return first
}

func containerStatuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// failingContainers returns the containers that wait for anything but their turn.
func failingContainers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.DeleteFunc(containerStatuses(pod), func(status corev1.ContainerStatus) bool {
		waiting := status.State.Waiting
		return waiting == nil || waiting.Reason == "" || waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing"
	})
}

// unresolvedContainers returns the containers that the runtime cannot create because it
// does not know their CDI devices.
func unresolvedContainers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.DeleteFunc(failingContainers(pod), func(status corev1.ContainerStatus) bool {
		return len(cdiDevices(status.State.Waiting.Message)) == 0
	})
}

// allStarted returns the first start among some pods, if all were started. Finished pods do
// not count.
func allStarted(pods []*corev1.Pod) time.Time {
	var first time.Time
	for _, pod := range pods {
		since := started(pod)
		switch {
		case snapshot.Finished(pod):
			continue
		case since.IsZero():
			return time.Time{}
		case first.IsZero(), since.Before(first):
			first = since
		}
	}
	return first
}
