// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// ready returns the check of the node's condition in the cluster.
func ready(object *corev1.Node) node.Check {
	const name = "host/ready"
	for i := range object.Status.Conditions {
		condition := &object.Status.Conditions[i]
		switch {
		case condition.Type != corev1.NodeReady:
			continue
		case condition.Status == corev1.ConditionTrue:
			return node.Good(name, "", "node %s is ready, kubelet %s", object.Name, object.Status.NodeInfo.KubeletVersion)
		default:
			check := node.Bad(name, "", "node %s is not ready: %s: %s", object.Name, condition.Reason, condition.Message)
			check.Found, check.Required = string(condition.Status), string(corev1.ConditionTrue)
			return check
		}
	}
	return node.NotKnown(name, "", "node %s has no condition Ready: its kubelet has not reported yet", object.Name)
}
