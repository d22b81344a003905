// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
)

// Conflict is a minimal set of conditions that conflict on a node: as long as all of them
// hold, the claims do not fit there, whatever else changes, and no part of the set is
// enough for that.
type Conflict struct {
	// Node is the most promising node.
	Node string `json:"node"`
	// Facts are the conditions that conflict.
	Facts []ConflictFact `json:"facts"`
	// AnyOneSuffices is true if relaxing any one of the facts is enough. Otherwise other
	// conditions also rule out the node.
	AnyOneSuffices bool `json:"anyOneSuffices,omitempty"`
	// Besides lists other conditions that each rule out the node, if there is only one
	// fact.
	Besides []ConflictFact `json:"besides,omitempty"`
	// OtherNodeCount counts the other nodes with the same conflict, as is proved for each:
	// the requests are the same, and the claims, taints or pools in the way belong to that
	// node. It is 0 if that was not found out.
	OtherNodeCount int `json:"otherNodeCount,omitempty"`
}

// ConflictFact is one condition of a conflict, with its evidence.
type ConflictFact struct {
	// Text is the condition as a clause.
	Text     string   `json:"text"`
	Evidence Evidence `json:"evidence"`
}

// Remedy is a change after which the allocator finds devices on Node: it was asked again
// about all nodes that are suitable for the pod, with the change made.
type Remedy struct {
	// Actor can make the change: User, Admin, or Nobody for something to wait for.
	Actor string `json:"actor"`
	// Change describes the change in a few words.
	Change string `json:"change"`
	// Diff is the change of the files that the target was read from, as a
	// unified diff. Only a program that has read the files knows it.
	Diff string `json:"diff,omitempty"`
	// Edits are the changes of objects with which the allocator was asked.
	Edits []Edit `json:"edits,omitempty"`
	// Commands make the change in the cluster, one line each, to be run by a
	// shell in this order, if there are any.
	Commands []string `json:"commands,omitempty"`
	// Owner is the controller of the pod, if its kind is not one of Kubernetes and it was
	// not read: the edits of the pod belong into its pod template, and there are no
	// commands.
	Owner ObjectRef `json:"owner,omitzero"`
	// FeatureGate is a gate of the cluster that was off and has to be on.
	FeatureGate string `json:"featureGate,omitempty"`
	// Node is a node where it then fits, Devices the devices that the allocator picks
	// there.
	Node    string            `json:"node"`
	Devices []AllocatedDevice `json:"devices"`
	// Nodes counts the nodes where it then fits.
	Nodes int `json:"nodes,omitempty"`
	// UsedBy are pods that use the changed object: a ResourceClaimTemplate, or the pod
	// template of a workload. Pods that get the change come first. It lists at most 100 of
	// them; UsedByCount counts all.
	UsedBy      []RemedyPod `json:"usedBy,omitempty"`
	UsedByCount int         `json:"usedByCount,omitempty"`
}

// RemedyPod is a pod that uses the object that a remedy changes.
type RemedyPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Phase is the pod's status.phase, Node where it runs or is bound to.
	Phase string `json:"phase,omitempty"`
	Node  string `json:"node,omitempty"`
	// Owner is the workload that the pod belongs to; it is left out for a bare pod.
	Owner ObjectRef `json:"owner,omitzero"`
	// Changed is true if the commands bring the change to this pod: it, or its claim, is
	// deleted and recreated. Otherwise the pod stays as it is until it is recreated.
	Changed bool `json:"changed,omitempty"`
}

// Edit is one operation of a JSON patch (RFC 6902) on an object.
type Edit struct {
	// Object is the edited object.
	Object ObjectRef `json:"object"`
	// Op is add, replace or remove.
	Op string `json:"op"`
	// Path is a JSON pointer; empty means the whole object.
	Path string `json:"path"`
	// From is the previous value of a field of the spec or of the metadata, if there was
	// one.
	From json.RawMessage `json:"from,omitempty"`
	// Value is the added or new value.
	Value json.RawMessage `json:"value,omitempty"`
	// Generated is true for an object that a controller made from another edited object. It
	// is enough to delete it.
	Generated bool `json:"generated,omitempty"`
}

// Hint is a fact about the cluster outside of the allocation: a driver that does not run, a
// queue that holds the pod back.
type Hint struct {
	// Text is the hint in a sentence.
	Text string `json:"text"`
	// Evidence proves it.
	Evidence []Evidence `json:"evidence,omitempty"`
}

// NextStep is an action that somebody can take.
type NextStep struct {
	// Actor is User, Admin or Nobody (wait).
	Actor string `json:"actor"`
	// Text is the advice in one line.
	Text string `json:"text"`
	// Commands do it in the cluster, one line each for a shell, if there are any.
	Commands []string `json:"commands,omitempty"`
}

// Actors of a [NextStep].
const (
	ActorUser   = "User"
	ActorAdmin  = "Admin"
	ActorNobody = "Nobody"
)

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
