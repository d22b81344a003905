// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Waiting lists the pods that wait for a node and want devices, in the order of the
// snapshot. The list must not be changed.
func (c *Cluster) Waiting() []*corev1.Pod { return c.waiting() }

func (c *Cluster) findWaiting() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range c.Snapshot.Pods {
		if snapshot.Waits(pod) && c.WantsDevices(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// WantsDevices reports whether a pod uses claims or extended resources of DRA, or
// an extended resource that nothing in the cluster serves: that is mostly a typo in
// the name of a resource that something does.
func (c *Cluster) WantsDevices(pod *corev1.Pod) bool {
	return len(c.Claims.OfPod(pod)) > 0 || len(c.Unserved(pod)) > 0
}

// Unserved lists the extended resources of a pod that no node has from a device
// plugin and that no DeviceClass stands for. None are known where nodes or classes
// could not be read.
func (c *Cluster) Unserved(pod *corev1.Pod) []corev1.ResourceName {
	if len(c.Snapshot.Nodes) == 0 || c.Snapshot.Gap(snapshot.ResourceNodes) != nil || c.Snapshot.Gap(snapshot.ResourceClasses) != nil {
		return nil
	}
	return slices.DeleteFunc(ExtendedResources(pod), func(name corev1.ResourceName) bool {
		return c.Claims.ClassOf(name) != nil || slices.ContainsFunc(c.Snapshot.Nodes, func(node *corev1.Node) bool {
			_, offered := node.Status.Allocatable[name]
			_, has := node.Status.Capacity[name]
			return offered || has
		})
	})
}
