// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	corev1 "k8s.io/api/core/v1"
)

func redactedNodes() []Redaction {
	return []Redaction{
		redacted[corev1.Node](`metadata  meta Node`),
		redacted[corev1.NodeSpec](`
			podCIDR       drop
			podCIDRs      drop
			providerID    drop
			configSource  drop
			externalID    drop`),
		redacted[corev1.Taint](`value  nodeTaint`),
		redacted[corev1.NodeStatus](`
			config           drop
			runtimeHandlers  drop`),
		redacted[corev1.NodeCondition](`
			type     qualified
			message  text`),
		redacted[corev1.NodeSystemInfo](`
			machineID   name UID
			systemUUID  name UID
			bootID      name UID`),
	}
}

// neverReadOfNodes lists fields that take room in a long list, and that [Strip] removes anyway.
func neverReadOfNodes() []Field {
	return ReadFields("status.images", "status.volumesInUse", "status.volumesAttached")
}

func stripNode(node *corev1.Node) {
	node.Status.Images = nil
	node.Status.VolumesAttached = nil
	node.Status.VolumesInUse = nil
}

func (s *Sharer) node(node *corev1.Node) {
	node.Status.Capacity = s.quantities(node.Status.Capacity)
	node.Status.Allocatable = s.quantities(node.Status.Allocatable)
	for i := range node.Status.Conditions {
		condition := &node.Status.Conditions[i]
		s.each((*string)(&condition.Type), (*string)(&condition.Status), &condition.Reason, &condition.Message)
	}
}
