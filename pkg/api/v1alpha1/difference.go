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
