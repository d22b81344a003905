// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Difference describes the changes between two states of a cluster, and the answers about pods
// that differ because of them.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Difference struct {
	metav1.TypeMeta `json:",inline"`

	// Old and New are the two states.
	Old ComparedState `json:"old"`
	New ComparedState `json:"new"`
	// Namespace is the namespace of the pods that count; it is left out for all namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Answers are the answers that differ; with a target, the answer about it.
	Answers []ChangedAnswer `json:"answers"`
	// Began and Ended are the causes that only the new or only the old state has.
	Began []Cause `json:"began"`
	Ended []Cause `json:"ended"`
	// Capacity has the DeviceClasses or, where there are none, the drivers whose numbers differ.
	Capacity []ChangedCapacity `json:"capacity"`
	// Changes are the changes of objects; objects with the same change are one entry.
	Changes []Change `json:"changes"`
	// NotCompared lists what only one of the states has read.
	NotCompared []string `json:"notCompared,omitempty"`
}

// ComparedState is one of two states of a cluster that are compared.
type ComparedState struct {
	// Source is the cluster or the file that was read.
	Source string `json:"source"`
	// TakenAt is when the cluster was read, if that is known.
	TakenAt *metav1.Time `json:"takenAt,omitempty"`
}

// ChangedAnswer is an answer that differs.
type ChangedAnswer struct {
	// Object is the pod or the other target, Others are further pods with the same change.
	Object ObjectRef   `json:"object"`
	Others []ObjectRef `json:"others,omitempty"`
	// Was and Is are the answers in the old and in the new state.
	Was AnswerState `json:"was"`
	Is  AnswerState `json:"is"`
	// Undo is a minimal set of changes that made the difference: with exactly these undone in
	// the new state, the verdict of the old state is back, and with some of them it is not.
	// Note says why there is none.
	Undo []Change `json:"undo,omitempty"`
	Note string   `json:"note,omitempty"`
}

// AnswerState is the answer about a pod or another target in one of two states.
type AnswerState struct {
	// Verdict is the verdict; it is left out if the target does not exist in this state. If
	// Supposed is true, the target does not wait in it, and the verdict is the answer if it did.
	Verdict  Verdict `json:"verdict,omitempty"`
	Supposed bool    `json:"supposed,omitempty"`
	// Code is the dominant reason, Summary says it in one sentence.
	Code    Code   `json:"code,omitempty"`
	Summary string `json:"summary,omitempty"`
	// Node is the node where a pod runs.
	Node string `json:"node,omitempty"`
}

// ChangedCapacity is a DeviceClass or a driver whose numbers of devices differ.
type ChangedCapacity struct {
	// Was and Is are the numbers in the old and in the new state; one is left out if the state
	// does not have the class.
	Was *ClassCapacity `json:"was,omitempty"`
	Is  *ClassCapacity `json:"is,omitempty"`
}

// Change is the same change of one or several objects.
type Change struct {
	// Message describes the change in one line, with the first names.
	Message string `json:"message"`
	// Count counts the nodes, pools, claims or other objects of the message.
	Count int `json:"count"`
	// Objects are the objects of the API that differ.
	Objects []ChangedObject `json:"objects,omitempty"`
}

// ChangedObject is an object that differs between two states.
type ChangedObject struct {
	// Object is the object. It is left out for the version and the feature gates of the cluster.
	Object ObjectRef `json:"object,omitzero"`
	// Op is Added, Removed or Changed.
	Op ChangeOp `json:"op"`
	// Fields are the fields that differ, at most twenty; FieldCount counts all.
	Fields     []ChangedField `json:"fields,omitempty"`
	FieldCount int            `json:"fieldCount,omitempty"`
}

// ChangeOp says how an object differs.
type ChangeOp string

// Ways in which an object differs.
const (
	Added   ChangeOp = "Added"
	Removed ChangeOp = "Removed"
	Changed ChangeOp = "Changed"
)

// ChangedField is a field that differs.
type ChangedField struct {
	// Path is the path of the field. Items of lists that have names are called by them.
	Path string `json:"path"`
	// From and To are the values as JSON, shortened; an absent field has none.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

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
