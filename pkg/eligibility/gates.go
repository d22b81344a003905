// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// bindingConditions rejects a device with binding conditions if the gates for them are off:
// the allocator then uses it for no request (isSelectable).
func bindingConditions(gates *cluster.Gates, d *cluster.Device) *Reason {
	if len(d.BindingConditions) == 0 || gates.BindingConditions() {
		return nil
	}
	return &Reason{
		Check: BindingConditions, Code: api.BindingConditionsUnsupported, Label: "binding conditions",
		Text: "has binding conditions, which need the feature gates " + cluster.GateBindingConditions + " and " + cluster.GateDeviceStatus,
		Fact: api.Evidence{Object: cluster.SliceObject(d), Path: cluster.DevicePath(d, "bindingConditions"), Found: strings.Join(d.BindingConditions, ", ")},
	}
}

// skipsNodeOperations reports whether the allocator uses a device only for nodes that
// declare DRAOptionalNodeOperations, and only if that gate is on. Only the experimental
// implementation knows the field (allocateDevice); the others allocate such devices like
// any other.
func skipsNodeOperations(gates *cluster.Gates, d *cluster.Device) bool {
	return len(d.Slice.Spec.SkipNodeOperations) > 0 && gates.Channel() == cluster.ChannelExperimental
}

// onNode makes the checks of a device whose result depends on the node.
func onNode(facts *cluster.Cluster, d *cluster.Device, node *corev1.Node) *Reason {
	if r := nodeOperations(facts.Gates, d, node); r != nil {
		return r
	}
	return partitionReason(d, facts.Partitions.ConflictOn(d, node))
}

// nodeOperations rejects a device without node operations if the gate is off, or the node
// does not support that. Without a node, only the gate counts.
func nodeOperations(gates *cluster.Gates, d *cluster.Device, node *corev1.Node) *Reason {
	switch {
	case !skipsNodeOperations(gates, d):
		return nil
	case !gates.Enabled(cluster.GateOptionalNodeOps):
		return featureOff(NodeOperations, cluster.GateOptionalNodeOps, cluster.SliceObject(d), "spec.skipNodeOperations")
	case node == nil || slices.Contains(node.Status.DeclaredFeatures, cluster.GateOptionalNodeOps):
		return nil
	}
	return &Reason{
		Check: NodeOperations, Code: api.NodeOperationUnsupported, Label: "node too old",
		Text: "the node does not declare " + cluster.GateOptionalNodeOps,
		Fact: api.Evidence{
			Object: api.Ref(api.KindNode, "", node.Name), Path: "status.declaredFeatures",
			Found: strings.Join(node.Status.DeclaredFeatures, ", "), Required: cluster.GateOptionalNodeOps,
		},
	}
}
