// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// History describes how the answer about a pod or another target changed over a time, why, and
// which claims got devices while it waited.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type History struct {
	metav1.TypeMeta `json:",inline"`

	// Object is the target.
	Object ObjectRef `json:"object"`
	// From and To are the times of the first and the last state that were read.
	From metav1.Time `json:"from"`
	To   metav1.Time `json:"to"`
	// Waits reports whether it waits in the last state. WaitingSince is when its last wait began;
	// it is left out if it never waited. SecondsWaited counts the seconds between From and To in
	// which it is known to have waited.
	Waits         bool         `json:"waits"`
	WaitingSince  *metav1.Time `json:"waitingSince,omitempty"`
	SecondsWaited int64        `json:"secondsWaited"`
	// Now is the answer in the last state. It has no verdict if the target does not exist then.
	Now AnswerState `json:"now"`
	// Entries are the events in their order.
	Entries []HistoryEntry `json:"entries"`
}

// HistoryEntry is an event of a history.
type HistoryEntry struct {
	// Time is when the cluster was first seen like that. If that is not exact, because the cluster
	// was not followed or the answer was not asked for, the event was at some time after After.
	Time  metav1.Time  `json:"time"`
	After *metav1.Time `json:"after,omitempty"`
	// Event is Existed, Created, Changed, Scheduled, Deleted, Taken or Missed.
	Event HistoryEvent `json:"event"`
	// Count counts equal events, if there are several; Last is the time of the last of them. Two
	// answers that alternate are two entries.
	Count int          `json:"count,omitempty"`
	Last  *metav1.Time `json:"last,omitempty"`
	// Answer is the answer after the event, Was the answer before a change.
	Answer *AnswerState `json:"answer,omitempty"`
	Was    *AnswerState `json:"was,omitempty"`
	// Undo is a minimal set of changes that changed the verdict: with exactly these undone, the
	// verdict before is back, and with some of them it is not. Note says why there is none or,
	// of Missed, why nothing is known.
	Undo []Change `json:"undo,omitempty"`
	Note string   `json:"note,omitempty"`
	// Taken are claims that got devices which the target could have used.
	Taken []TakenDevices `json:"taken,omitempty"`
}

// HistoryEvent is a kind of events of a history.
type HistoryEvent string

// Events of a history.
const (
	// HistoryExisted means that the target existed in the first state.
	HistoryExisted HistoryEvent = "Existed"
	// HistoryCreated means that the target was created.
	HistoryCreated HistoryEvent = "Created"
	// HistoryChanged means that the verdict or the code of the answer changed.
	HistoryChanged HistoryEvent = "Changed"
	// HistoryScheduled means that the pod got a node.
	HistoryScheduled HistoryEvent = "Scheduled"
	// HistoryDeleted means that the target is gone.
	HistoryDeleted HistoryEvent = "Deleted"
	// HistoryTaken means that other claims got devices while the target waited, and each of
	// these devices passes every check of a request of the target.
	HistoryTaken HistoryEvent = "Taken"
	// HistoryMissed means that the cluster was not followed for some time.
	HistoryMissed HistoryEvent = "Missed"
)

// TakenDevices are devices that a claim got while the target waited.
type TakenDevices struct {
	// Claim is the claim, Pod the pod that uses it; it is left out if none is known.
	Claim ObjectRef `json:"claim"`
	Pod   ObjectRef `json:"pod,omitzero"`
	// Node is the node of the devices or of the pod, if it is known.
	Node string `json:"node,omitempty"`
	// Devices are the devices that the target could have used.
	Devices []AllocatedDevice `json:"devices"`
	// Reason says why the pod was served before the target; it is left out if no pod is known.
	// Priority is the priority of the pod, TargetPriority the priority of the target.
	Reason         TakenReason `json:"reason,omitempty"`
	Priority       int32       `json:"priority"`
	TargetPriority int32       `json:"targetPriority"`
}

// TakenReason says why a pod was served before another one.
type TakenReason string

// Reasons why a pod was served before another one.
const (
	// TakenByPriority means that the pod has a higher priority.
	TakenByPriority TakenReason = "HigherPriority"
	// TakenByAge means that the pod has the same priority and was created earlier.
	TakenByAge TakenReason = "CreatedEarlier"
	// TakenByScheduler means that the order of the queue does not explain it: the scheduler tried
	// the pod first, or the target did not fit.
	TakenByScheduler TakenReason = "SchedulerOrder"
)
