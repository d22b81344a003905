// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Unserved lists the extended resources of a pod that no node has from a device
// plugin and that no DeviceClass stands for. None are known where nodes or classes
// could not be read.
func Unserved(c *cluster.Cluster, pod *corev1.Pod) []corev1.ResourceName {
	if len(c.Snapshot.Nodes) == 0 || c.Snapshot.Gap(snapshot.ResourceNodes) != nil || c.Snapshot.Gap(snapshot.ResourceClasses) != nil {
		return nil
	}
	return slices.DeleteFunc(cluster.ExtendedResources(pod), func(name corev1.ResourceName) bool {
		return c.Claims.ClassOf(name) != nil || slices.ContainsFunc(c.Snapshot.Nodes, func(node *corev1.Node) bool {
			_, offered := node.Status.Allocatable[name]
			_, has := node.Status.Capacity[name]
			return offered || has
		})
	})
}
