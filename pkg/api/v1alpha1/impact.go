// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Impact is the effect of a change of the cluster on its pods and claims. Nothing was
// changed to find out.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Impact struct {
	metav1.TypeMeta `json:",inline"`

	// Change describes the change in a few words.
	Change string `json:"change"`
	// Source names the cluster in a few words.
	Source string `json:"source,omitempty"`
	// Counts counts the pods by effect and outcome.
	Counts ImpactCounts `json:"counts"`
	// Pods are the affected pods: first the running ones, in the order in which they are
	// evicted, then the waiting ones.
	Pods []ImpactPod `json:"pods"`
	// Claims are allocated claims that no longer match a changed class.
	Claims []ImpactClaim `json:"claims,omitempty"`
	// Budgets are the PodDisruptionBudgets of pods that are evicted from a drained node.
	Budgets []ImpactBudget `json:"budgets,omitempty"`
	// Drivers are the nodes where the pod of a driver is replaced, or that it leaves before
	// pods that need it to end. The nodes with most such pods come first.
	Drivers []ImpactDriver `json:"drivers,omitempty"`
	// Update is how a DaemonSet replaces the pods of a driver, absent for other changes.
	Update *ImpactUpdate `json:"update,omitempty"`
	// Steps are the steps of the change, in order.
	Steps []NextStep `json:"steps,omitempty"`
	// Notes are further facts, a sentence each.
	Notes []string `json:"notes,omitempty"`
	// Assumptions lists, a sentence each, facts that were assumed and not verified.
	Assumptions []string `json:"assumptions,omitempty"`
}

// ImpactCounts counts pods by effect and outcome.
type ImpactCounts struct {
	// Evicted counts the pods that leave their nodes, DevicesLost the pods that stay
	// without one of their devices.
	Evicted     int `json:"evicted"`
	DevicesLost int `json:"devicesLost"`
	// Placed counts the pods whose replacement finds a place, NoPlace the pods whose
	// replacement finds none, NotRecreated the pods that nothing creates again, and
	// Undetermined the pods with an unknown outcome.
	Placed       int `json:"placed"`
	NoPlace      int `json:"noPlace"`
	NotRecreated int `json:"notRecreated"`
	Undetermined int `json:"undetermined"`
	// FitLost and FitGained count waiting pods that no longer fit, or fit then.
	FitLost   int `json:"fitLost"`
	FitGained int `json:"fitGained"`
	// NeedDriver counts the pods that need a driver of Drivers to start or to end.
	NeedDriver int `json:"needDriver,omitempty"`
}

// ImpactEffect is the effect of a change on a pod.
type ImpactEffect string

// Effects on pods.
const (
	// EffectEvicted means that the pod leaves its node.
	EffectEvicted ImpactEffect = "Evicted"
	// EffectRemoved means that the pod is deleted with its node and is needed nowhere else:
	// a pod of a DaemonSet, or of the node itself.
	EffectRemoved ImpactEffect = "Removed"
	// EffectStays means that the pod stays on a drained node: a pod of a DaemonSet, or of
	// the node itself.
	EffectStays ImpactEffect = "Stays"
	// EffectDevicesLost means that the pod stays without one of its devices, which is no
	// longer published.
	EffectDevicesLost ImpactEffect = "DevicesLost"
	// EffectFitLost means that the waiting pod fits now and would not fit then.
	EffectFitLost ImpactEffect = "FitLost"
	// EffectFitGained means that the waiting pod does not fit now and would fit then.
	EffectFitGained ImpactEffect = "FitGained"
)

// ImpactOutcome is the outcome for a pod that has to go elsewhere.
type ImpactOutcome string

// Outcomes for pods.
const (
	// OutcomePlaced means that the replacement of the pod, or the waiting pod itself, finds
	// a place.
	OutcomePlaced ImpactOutcome = "Placed"
	// OutcomeNoPlace means that the replacement of the pod, or the waiting pod itself,
	// finds no place.
	OutcomeNoPlace ImpactOutcome = "NoPlace"
	// OutcomeNotRecreated means that the pod has no controller: nothing creates it again.
	OutcomeNotRecreated ImpactOutcome = "NotRecreated"
	// OutcomeUndetermined means that the outcome is not known.
	OutcomeUndetermined ImpactOutcome = "Undetermined"
)

// ImpactPod is the effect of a change on one pod.
type ImpactPod struct {
	// Namespace and Name identify the pod.
	Namespace string `json:"namespace"`
	// Name is its name; a replacement may get another one.
	Name string `json:"name"`
	// Effect is the effect of the change on the pod.
	Effect ImpactEffect `json:"effect"`
	// Node is the node where it runs, absent for a waiting pod.
	Node string `json:"node,omitempty"`
	// Owner is the workload of the pod; it is left out for a bare pod.
	Owner ObjectRef `json:"owner,omitzero"`
	// Drivers are the drivers whose kubelet plugin it is.
	Drivers []string `json:"drivers,omitempty"`
	// Devices are the devices that it has and loses, or releases.
	Devices []string `json:"devices,omitempty"`
	// Budgets are the PodDisruptionBudgets that have to allow its eviction.
	Budgets []string `json:"budgets,omitempty"`
	// EvictionAt is when it is evicted, where that is later than the change.
	EvictionAt *metav1.Time `json:"evictionAt,omitempty"`
	// Outcome is its outcome, absent for a pod that stays.
	Outcome ImpactOutcome `json:"outcome,omitempty"`
	// Placement is where its replacement fits, or one like it if nothing creates it
	// again, absent if it fits nowhere.
	Placement *Placement `json:"placement,omitempty"`
	// UnfitNow is set if it would fit nowhere without the change either, once it is deleted.
	UnfitNow bool `json:"unfitNow,omitempty"`
	// Code is the reason why it fits nowhere.
	Code Code `json:"code,omitempty"`
	// Reason says why it fits nowhere, or why that is not known.
	Reason string `json:"reason,omitempty"`
}

// ImpactClaim is an allocated claim that no longer matches a changed class.
type ImpactClaim struct {
	// Namespace and Name identify the claim.
	Namespace string `json:"namespace"`
	// Name is its name.
	Name string `json:"name"`
	// DeviceClass is the class that changes.
	DeviceClass string `json:"deviceClass"`
	// Devices are its devices that the class no longer selects. They stay allocated.
	Devices []string `json:"devices"`
	// Pods are the pods for which it is reserved.
	Pods []string `json:"pods,omitempty"`
}

// BudgetEffect is the effect of a PodDisruptionBudget on the eviction of pods.
type BudgetEffect string

// Effects of budgets.
const (
	// BudgetAllows means that the budget allows all of these evictions at once.
	BudgetAllows BudgetEffect = "Allows"
	// BudgetDelays means that the budget allows some evictions now, and others once
	// replacements are ready.
	BudgetDelays BudgetEffect = "Delays"
	// BudgetStops means that the budget allows some evictions now and perhaps never the
	// others, because not all replacements find a place.
	BudgetStops BudgetEffect = "Stops"
	// BudgetBlocks means that the budget allows no eviction now.
	BudgetBlocks BudgetEffect = "Blocks"
)

// ImpactBudget is a PodDisruptionBudget of pods that are to be evicted.
type ImpactBudget struct {
	// Namespace and Name identify the budget.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Allowed is its status.disruptionsAllowed.
	Allowed int `json:"allowed"`
	// Pods are the pods to be evicted that it covers.
	Pods []string `json:"pods"`
	// Effect is its effect on these evictions.
	Effect BudgetEffect `json:"effect"`
}

// DriverEffect is the effect of a change on the pod of a driver on a node.
type DriverEffect string

// Effects on the pods of drivers.
const (
	// DriverLeaves means that the pod leaves the node, with or before pods that need the
	// driver to end. They stay in Terminating until the driver is back.
	DriverLeaves DriverEffect = "Leaves"
	// DriverAway means that the pod ends before the next one starts. Meanwhile, pods that
	// end stay in Terminating, and pods that start wait.
	DriverAway DriverEffect = "Away"
	// DriverOverlaps means that the next pod is ready before the old one ends.
	DriverOverlaps DriverEffect = "Overlaps"
	// DriverUnregistered means that the next pod is ready before the old one ends, and
	// the kubelet, older than 1.33, unregisters the driver all the same when the old one ends.
	DriverUnregistered DriverEffect = "Unregistered"
	// DriverStays means that the pod stays until somebody deletes it.
	DriverStays DriverEffect = "Stays"
)

// ImpactDriver is a node where a change affects the pod of a driver.
type ImpactDriver struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// Drivers are the names of the drivers.
	Drivers []string `json:"drivers"`
	// Effect is the effect of the change on the driver's pod.
	Effect DriverEffect `json:"effect"`
	// Pods are the pods of the driver on the node.
	Pods []ObjectRef `json:"pods,omitempty"`
	// KubeletVersion is the version of the node's kubelet.
	KubeletVersion string `json:"kubeletVersion,omitempty"`
	// Running are the pods that run with devices of the driver. They go on, and need the driver
	// when they end.
	Running []ObjectRef `json:"running,omitempty"`
	// Starting are the pods that have devices of the driver and do not run yet.
	Starting []ObjectRef `json:"starting,omitempty"`
	// Ending are the pods in Terminating whose devices the driver may not have unprepared.
	Ending []ObjectRef `json:"ending,omitempty"`
}

// ImpactUpdate is the update strategy of a DaemonSet, with percentages counted out.
type ImpactUpdate struct {
	// Type is RollingUpdate or OnDelete.
	Type string `json:"type"`
	// MaxUnavailable is on how many nodes at a time the old pod ends before the new one
	// starts; MaxSurge is on how many at a time the new pod starts before the old one ends.
	MaxUnavailable int `json:"maxUnavailable"`
	MaxSurge       int `json:"maxSurge"`
}
