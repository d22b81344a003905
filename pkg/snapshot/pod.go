// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Finished reports whether no container of a pod will ever run again.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Waits reports whether the scheduler has yet to find a node for a pod.
func Waits(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !Finished(pod)
}

// Pending reports whether a claim waits for devices.
func Pending(claim *resourceapi.ResourceClaim) bool {
	return claim.Status.Allocation == nil && claim.DeletionTimestamp == nil
}

// ControllerName is the reporting controller of the events of dra-controller, and the name of its
// lease.
const ControllerName = "dra-controller"

// IsAnswer reports whether an event has an answer of dra-controller: that is no fact about the
// cluster, and nothing may be concluded from it.
func IsAnswer(event *corev1.Event) bool { return event.ReportingController == ControllerName }

// StaysOnDrain reports whether a pod belongs to its node: "kubectl drain" leaves pods of DaemonSets, and
// the API's mirrors of static pods, where they are.
func StaysOnDrain(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || owner != nil && (owner.Kind == KindDaemonSet || owner.Kind == "Node")
}
