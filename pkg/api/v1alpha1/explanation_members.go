// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Members counts the pods of a workload or a PodGroup. Waiting pods are decided one after
// another: a pod that fits has its node and its devices before the next one is looked at.
type Members struct {
	// Desired is the desired number of pods at the same time; absent if nothing says so.
	Desired *int32 `json:"desired,omitempty"`
	// Existing counts the existing pods that have not ended.
	Existing int `json:"existing"`
	// WithDevices counts the pods whose claims are all allocated.
	WithDevices int `json:"withDevices"`
	// Waiting counts the pods that wait for devices. Before there are any pods, all of them
	// wait.
	Waiting int `json:"waiting"`
	// FitNow counts the waiting pods that fit now, one after another.
	FitNow int `json:"fitNow"`
	// Group is the PodGroup that they belong to, if any.
	Group *MemberGroup `json:"group,omitempty"`
	// Kinds groups all pods by equal pods with one answer, starting with pods that do not
	// fit.
	Kinds []MemberKind `json:"kinds,omitempty"`
	// Prospects are conditions under which all of them would fit, if not all do. Changes of
	// manifests for that are in remedies.
	Prospects []MemberProspect `json:"prospects,omitempty"`
}

// MemberGroup is a PodGroup (scheduling.k8s.io).
type MemberGroup struct {
	// Name is the name of the PodGroup, in the namespace of the target.
	Name string `json:"name"`
	// MinCount is the number of pods of a gang that are scheduled at the same time or not
	// at all; absent if the group is no gang.
	MinCount *int32 `json:"minCount,omitempty"`
	// Existing counts the existing pods of the group, including pods of other targets.
	Existing int `json:"existing"`
	// Fit counts the pods of the group that have a node or get one.
	Fit int `json:"fit"`
	// Fits is true if the scheduler places the group: for a gang, if MinCount pods have a
	// node or get one at the same time, and enough groups of each of Composites do.
	Fits bool `json:"fits"`
	// Parent is the CompositePodGroup that the group belongs to, empty if there is none.
	Parent string `json:"parent,omitempty"`
	// Composites are the CompositePodGroups that it is placed with, the nearest first;
	// empty if there are none, or if they are not known.
	Composites []CompositeGroup `json:"composites,omitempty"`
	// Claims are the claims that all pods of the group share, by the names of their
	// entries.
	Claims []string `json:"claims,omitempty"`
}

// CompositeGroup is a CompositePodGroup (scheduling.k8s.io).
type CompositeGroup struct {
	// Name is the name of the CompositePodGroup, in the namespace of the target.
	Name string `json:"name"`
	// MinGroupCount is the number of its groups that are scheduled at the same time or not
	// at all; absent if it is no gang, where one is enough.
	MinGroupCount *int32 `json:"minGroupCount,omitempty"`
	// Groups counts its groups, Fit the groups of which enough pods have a node or get one.
	Groups int `json:"groups"`
	Fit    int `json:"fit"`
	// Fits is true if enough of them do.
	Fits bool `json:"fits"`
}

// MemberKind is a group of pods that are equal to the scheduler and have the same answer.
type MemberKind struct {
	// Count is the number of pods.
	Count int `json:"count"`
	// Names are the names of the first pods, at most ten.
	Names []string `json:"names"`
	// Verdict is Allocated, Fits, DoesNotFit, Blocked, Error or Undetermined.
	Verdict Verdict `json:"verdict"`
	// Code is the dominant reason of a pod that does not fit.
	Code Code `json:"code,omitempty"`
	// Message says why they do not fit.
	Message string `json:"message,omitempty"`
	// Nodes are the first nodes that they have or get, at most ten.
	Nodes []string `json:"nodes,omitempty"`
	// NodeCount counts the nodes that they have or get.
	NodeCount int `json:"nodeCount,omitempty"`
}

// MemberProspect reports whether all members fit under a condition, decided one after another.
type MemberProspect struct {
	// Condition is LowerPrioritiesGone, ClaimsReleased or MoreNodes.
	Condition Condition `json:"condition"`
	// Verdict is Fits if all of them fit then, else DoesNotFit.
	Verdict Verdict `json:"verdict"`
	// Fit counts the members that have devices or get them then.
	Fit int `json:"fit"`
	// NodeCount is the smallest number of more nodes that is enough, for MoreNodes.
	NodeCount int `json:"nodeCount,omitempty"`
	// Like is the model of the new nodes, for MoreNodes.
	Like string `json:"like,omitempty"`
}
