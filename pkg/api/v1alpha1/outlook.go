// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition has to come true before a target fits.
type Condition string

// Each condition includes those before it, up to HardwareAlone.
const (
	// LowerPrioritiesGone means that the pods of lower priority that have devices are gone.
	LowerPrioritiesGone Condition = "LowerPrioritiesGone"
	// ClaimsReleased means that all claims are released, and the pods that used them are gone.
	ClaimsReleased Condition = "ClaimsReleased"
	// HardwareAlone means that, besides, there are no taints, no cordoned nodes and
	// no other pods.
	HardwareAlone Condition = "HardwareAlone"
	// OneMoreNode means that there is one more node, like one of the cluster and empty.
	OneMoreNode Condition = "OneMoreNode"
	// MoreNodes means that there are several more nodes, like one of the cluster and
	// empty. Only members of a workload or a PodGroup have it.
	MoreNodes Condition = "MoreNodes"
	// Never means that none of these is enough on the nodes of the cluster.
	Never Condition = "Never"
	// ConditionUnknown means that something decisive could not be read or decided.
	ConditionUnknown Condition = "Unknown"
)

// Outlook says when a target that does not fit would, for the nodes, slices and
// feature gates of the cluster.
type Outlook struct {
	// Fits is the first condition under which it fits.
	Fits Condition `json:"fits"`
	// Message says that in a sentence.
	Message string `json:"message"`
	// Now is the answer for the cluster as it is.
	Now Prospect `json:"now"`
	// LowerPrioritiesGone is missing if no pod asks.
	LowerPrioritiesGone *Prospect `json:"lowerPrioritiesGone,omitempty"`
	// ClaimsReleased and HardwareAlone include the conditions before them: what fits
	// under one fits under the next.
	ClaimsReleased Prospect `json:"claimsReleased"`
	HardwareAlone  Prospect `json:"hardwareAlone"`
	// OneMoreNode has an answer for each distinct group of nodes, those where it
	// fits first. It is empty if it was asked about one node.
	OneMoreNode []NewNode `json:"oneMoreNode,omitempty"`
}

// Prospect is the answer under one condition.
type Prospect struct {
	// Verdict is Fits, DoesNotFit or Undetermined.
	Verdict Verdict `json:"verdict"`
	// Node is a node where it fits, or else the node that comes nearest.
	Node string `json:"node,omitempty"`
	// Code and Message say why it does not fit there.
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// NewNode is the answer for one more node.
type NewNode struct {
	// Like is the model of the new node, the first of NodeCount equivalent ones.
	Like      string  `json:"like"`
	NodeCount int     `json:"nodeCount"`
	Verdict   Verdict `json:"verdict"`
	// Message says why it does not fit.
	Message string `json:"message,omitempty"`
}
