// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Plan predicts the outcome of all pods that wait for devices if the scheduler decides them
// one after another in the order of its queue, and nothing else changes.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Plan struct {
	metav1.TypeMeta `json:",inline"`

	// Source names the cluster or file in a few words.
	Source string `json:"source"`
	// Conditions are the changes under which the queue was decided, in words; it is
	// empty for the cluster as it is.
	Conditions []string `json:"conditions,omitempty"`
	// Namespace is the namespace whose pods are listed and counted; it is left out for all
	// namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Counts has the pods by outcome.
	Counts PlanCounts `json:"counts"`
	// Today counts the pods by outcome in the cluster as it is; it is left out
	// without conditions.
	Today *PlanCounts `json:"today,omitempty"`
	// Pods are in the order of the queue: by priority, then by age. Pods with scheduling
	// gates, which are not in the queue, come last.
	Pods []PlannedPod `json:"pods"`
	// NotModeled lists conditions that could change the order or the nodes, and are not
	// evaluated.
	NotModeled string `json:"notModeled"`
	// Assumptions could not be read or verified.
	Assumptions []string `json:"assumptions,omitempty"`
}

// PlanCounts counts pods by their outcome.
type PlanCounts struct {
	// Placed counts the pods that get a node and devices.
	Placed int `json:"placed"`
	// Waiting counts the pods that fit once something is released or settled.
	Waiting int `json:"waiting"`
	// Never counts the pods that do not fit on the present hardware.
	Never int `json:"never"`
	// NotByWaiting counts the pods that do not fit once all claims are released, where it is not
	// known what else helps.
	NotByWaiting int `json:"notByWaiting,omitempty"`
	// Gated counts the pods with scheduling gates.
	Gated int `json:"gated"`
	// Undetermined counts the pods for which something decisive is not known.
	Undetermined int `json:"undetermined"`
}

// PlanOutcome is the outcome of a pod in the queue.
type PlanOutcome string

const (
	// PlanPlaced means that it gets a node and its devices.
	PlanPlaced PlanOutcome = "Placed"
	// PlanWaiting means that it fits once others release something, or once a problem
	// besides devices is settled.
	PlanWaiting PlanOutcome = "Waiting"
	// PlanNever means that it does not fit on the present hardware, even with all claims
	// released and all taints removed, or that the allocator fails for it, until somebody
	// changes something.
	PlanNever PlanOutcome = "Never"
	// PlanNotByWaiting means that it does not fit even with all claims released. Whether it fits
	// on the present hardware without taints, cordons and other pods is not known.
	PlanNotByWaiting PlanOutcome = "NotByWaiting"
	// PlanGated means that scheduling gates keep it out of the queue.
	PlanGated PlanOutcome = "Gated"
	// PlanUndetermined means that something decisive is not known.
	PlanUndetermined PlanOutcome = "Undetermined"
)

// PlannedPod is the outcome for one pod.
type PlannedPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Owner is the workload of the pod; it is left out for a bare pod.
	Owner ObjectRef `json:"owner,omitzero"`
	// Position is its place in the queue, from 1 on; 0 for a pod with scheduling gates.
	Position int `json:"position"`
	// Priority is the pod's spec.priority.
	Priority int32 `json:"priority"`
	// AgeSeconds is the time since its creation, 0 if that is not known.
	AgeSeconds int64 `json:"ageSeconds,omitempty"`
	// PodGroup is the gang with which it is placed as a whole or not at all.
	PodGroup string `json:"podGroup,omitempty"`
	// Outcome is its outcome.
	Outcome PlanOutcome `json:"outcome"`
	// Node is where it is placed, Devices the devices that it gets there.
	Node    string            `json:"node,omitempty"`
	Devices []AllocatedDevice `json:"devices,omitempty"`
	// Preempts are the pods whose place it takes: only if that was asked for.
	Preempts []BlockingPod `json:"preempts,omitempty"`
	// Code and Reason say why it is not placed.
	Code   Code   `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Outlook is the first condition under which it would fit.
	Outlook Condition `json:"outlook,omitempty"`
	// Behind are the pods that have, or get before it, the devices that it needs. For a pod
	// that fits on no node now, they are pods on one node that would all have to go.
	Behind []BlockingPod `json:"behind,omitempty"`
	// BehindCount counts all of them, if not all are listed.
	BehindCount int `json:"behindCount,omitempty"`
	// BehindWith counts the pods before it in the queue that wait behind the same pods.
	BehindWith int `json:"behindWith,omitempty"`
	// Today is its outcome in the present cluster, if that differs.
	Today *PlannedToday `json:"today,omitempty"`
}

// PlannedToday is the outcome of a pod without the conditions of a plan.
type PlannedToday struct {
	// Outcome is empty for a pod that does not wait today.
	Outcome PlanOutcome `json:"outcome,omitempty"`
	// Node is where it is placed, or where it is today.
	Node string `json:"node,omitempty"`
}

// BlockingPod is a pod that has devices which another one needs.
type BlockingPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Priority is the pod's spec.priority.
	Priority int32 `json:"priority"`
	// Queued is set if it is a pod of the queue, which gets the devices before.
	Queued bool `json:"queued,omitempty"`
	// Node is where it is or will be.
	Node string `json:"node"`
	// Devices are the devices that it has or gets.
	Devices []AllocatedDevice `json:"devices,omitempty"`
	// EndsWithinSeconds is the longest time that it still runs, by the
	// activeDeadlineSeconds of the pod or of its Job. It is left out if they have none.
	EndsWithinSeconds *int64 `json:"endsWithinSeconds,omitempty"`
}
