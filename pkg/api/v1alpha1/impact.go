// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Impact is what a change of the cluster would do to its pods and claims. Nothing was
// changed to find out.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Impact struct {
	metav1.TypeMeta `json:",inline"`

	// Change says in a few words what would be done.
	Change string `json:"change"`
	// Source says in a few words which cluster it was asked about.
	Source string `json:"source,omitempty"`
	// Counts has the pods by what becomes of them.
	Counts ImpactCounts `json:"counts"`
	// Pods are those that something becomes of: first those that run, in the order in
	// which they are evicted, then those that wait.
	Pods []ImpactPod `json:"pods"`
	// Claims are allocated claims that no longer match a changed class.
	Claims []ImpactClaim `json:"claims,omitempty"`
	// Budgets are the PodDisruptionBudgets of pods that are evicted from a drained node.
	Budgets []ImpactBudget `json:"budgets,omitempty"`
	// Steps say in which order to make the change.
	Steps []NextStep `json:"steps,omitempty"`
	// Notes are what is true besides, a sentence each.
	Notes []string `json:"notes,omitempty"`
	// Assumptions says, a sentence each, what was taken as true without seeing it.
	Assumptions []string `json:"assumptions,omitempty"`
}

// ImpactCounts has pods by what becomes of them.
type ImpactCounts struct {
	// Evicted counts the pods that leave their nodes, and DevicesLost those that stay
	// without a device that they have.
	Evicted     int `json:"evicted"`
	DevicesLost int `json:"devicesLost"`
	// Placed counts those of these pods whose replacement finds a place, NoPlace those
	// whose replacement finds none, NotRecreated those that nothing creates again, and
	// Undetermined those for which it is not known.
	Placed       int `json:"placed"`
	NoPlace      int `json:"noPlace"`
	NotRecreated int `json:"notRecreated"`
	Undetermined int `json:"undetermined"`
	// FitLost and FitGained count waiting pods that no longer fit, or fit then.
	FitLost   int `json:"fitLost"`
	FitGained int `json:"fitGained"`
}

// ImpactEffect is what a change does to a pod.
type ImpactEffect string

// The effects on pods.
const (
	// EffectEvicted is a pod that leaves its node.
	EffectEvicted ImpactEffect = "Evicted"
	// EffectRemoved is a pod that goes with its node and is needed nowhere else: that of
	// a DaemonSet, or of the node itself.
	EffectRemoved ImpactEffect = "Removed"
	// EffectStays is a pod that stays on a node that is drained: that of a DaemonSet, or
	// of the node itself.
	EffectStays ImpactEffect = "Stays"
	// EffectDevicesLost is a pod that stays without a device that it has: the device is
	// published no longer.
	EffectDevicesLost ImpactEffect = "DevicesLost"
	// EffectFitLost is a waiting pod that fits now and would not fit then.
	EffectFitLost ImpactEffect = "FitLost"
	// EffectFitGained is a waiting pod that does not fit now and would fit then.
	EffectFitGained ImpactEffect = "FitGained"
)

// ImpactOutcome is what becomes of a pod that has to go elsewhere.
type ImpactOutcome string

// The outcomes for pods.
const (
	// OutcomePlaced is a pod whose replacement finds a place, or a waiting one that does.
	OutcomePlaced ImpactOutcome = "Placed"
	// OutcomeNoPlace is a pod whose replacement finds no place, or a waiting one that
	// finds none.
	OutcomeNoPlace ImpactOutcome = "NoPlace"
	// OutcomeNotRecreated is a pod without a controller: nothing creates it again.
	OutcomeNotRecreated ImpactOutcome = "NotRecreated"
	// OutcomeUndetermined is a pod for which it is not known.
	OutcomeUndetermined ImpactOutcome = "Undetermined"
)

// ImpactPod is what a change does to one pod.
type ImpactPod struct {
	// Namespace and Name are those of the pod.
	Namespace string `json:"namespace"`
	// Name is its name; a replacement may get another one.
	Name string `json:"name"`
	// Effect is what the change does to it.
	Effect ImpactEffect `json:"effect"`
	// Node is where it runs, absent for one that waits.
	Node string `json:"node,omitempty"`
	// Owner is the workload that it belongs to, "job/train"; absent for a bare pod.
	Owner string `json:"owner,omitempty"`
	// Drivers are those whose kubelet plugin it is.
	Drivers []string `json:"drivers,omitempty"`
	// Devices are those that it has and loses, or gives back.
	Devices []string `json:"devices,omitempty"`
	// Budgets are the PodDisruptionBudgets that have to allow its eviction.
	Budgets []string `json:"budgets,omitempty"`
	// EvictionAt is when it is evicted, where that is later than the change.
	EvictionAt *metav1.Time `json:"evictionAt,omitempty"`
	// Outcome is what becomes of it, absent for a pod that stays.
	Outcome ImpactOutcome `json:"outcome,omitempty"`
	// Placement is where its replacement fits, or one like it if nothing creates it
	// again, absent if it fits nowhere.
	Placement *Placement `json:"placement,omitempty"`
	// Code is that of the reason why it fits nowhere.
	Code Code `json:"code,omitempty"`
	// Reason says why it fits nowhere, or why that is not known.
	Reason string `json:"reason,omitempty"`
}

// ImpactClaim is an allocated claim that no longer matches a changed class.
type ImpactClaim struct {
	// Namespace and Name are those of the claim.
	Namespace string `json:"namespace"`
	// Name is its name.
	Name string `json:"name"`
	// DeviceClass is the class that changes.
	DeviceClass string `json:"deviceClass"`
	// Devices are those of its devices that the class no longer selects. They stay
	// allocated.
	Devices []string `json:"devices"`
	// Pods are those for which it is reserved.
	Pods []string `json:"pods,omitempty"`
}

// BudgetEffect is what a PodDisruptionBudget does to the eviction of pods.
type BudgetEffect string

// The effects of budgets.
const (
	// BudgetAllows is a budget that allows all of these evictions at once.
	BudgetAllows BudgetEffect = "Allows"
	// BudgetDelays is one that allows some now, and others once replacements are ready.
	BudgetDelays BudgetEffect = "Delays"
	// BudgetStops is one that allows some now, while not all replacements find a place, so
	// that it may never allow the others.
	BudgetStops BudgetEffect = "Stops"
	// BudgetBlocks is one that allows none now.
	BudgetBlocks BudgetEffect = "Blocks"
)

// ImpactBudget is a PodDisruptionBudget of pods that are to be evicted.
type ImpactBudget struct {
	// Namespace and Name are those of the budget.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Allowed is its status.disruptionsAllowed.
	Allowed int `json:"allowed"`
	// Pods are those to be evicted that it covers.
	Pods []string `json:"pods"`
	// Effect is what it does to these evictions.
	Effect BudgetEffect `json:"effect"`
}
