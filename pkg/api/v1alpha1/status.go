// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status describes the condition of a cluster by its causes. They are behind pods that do not run
// and behind findings of "doctor".
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Status struct {
	metav1.TypeMeta `json:",inline"`

	// Source is the cluster or the file that was read.
	Source string `json:"source"`
	// Namespace is the namespace of the pods that count; it is left out for all namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Pods counts the pods that wait for devices or cannot work with them.
	Pods StatusPods `json:"pods"`
	// Capacity has the DeviceClasses or, where there are none, the drivers.
	Capacity []ClassCapacity `json:"capacity"`
	// Causes are in order of urgency, the worst first.
	Causes []Cause `json:"causes"`
	// Upcoming lists the next events without anybody's doing: evictions, claims that are being
	// released.
	Upcoming []Upcoming `json:"upcoming,omitempty"`
	// NotChecked lists what could not be checked, and why.
	NotChecked []string `json:"notChecked,omitempty"`
	// Assumptions are the facts that could not be read or verified.
	Assumptions []string `json:"assumptions,omitempty"`
}

// StatusPods counts pods that wait for devices or cannot work with them.
type StatusPods struct {
	// Waiting counts the pods without a node that want devices. Starting counts the pods of
	// them for which the allocator finds devices now, one after another.
	Waiting  int `json:"waiting"`
	Starting int `json:"starting"`
	// Blocked counts the pods that have devices and cannot work with them.
	Blocked int `json:"blocked"`
	// LongestSeconds is the age of the oldest waiting pod.
	LongestSeconds int64 `json:"longestSeconds,omitempty"`
}

// Cause describes a fault that keeps pods from running, or that doctor has found before a pod
// suffers from it.
type Cause struct {
	// ID identifies the cause in all snapshots of a cluster: it is made of the code and the
	// object alone.
	ID string `json:"id"`
	// Number is its number in text. Causes that read the same, such as two templates that ask
	// for equally many devices, have one number.
	Number int `json:"number,omitempty"`
	// Code is a reason code or the code of a check of "doctor".
	Code string `json:"code"`
	// Severity is Error if pods do not run because of it.
	Severity Severity `json:"severity"`
	// Message describes the fault in one sentence.
	Message string `json:"message"`
	// Objects are the objects at fault, at most ten; ObjectCount counts all.
	Objects     []ObjectRef `json:"objects,omitempty"`
	ObjectCount int         `json:"objectCount"`
	// Evidence proves it, at most ten facts.
	Evidence []Evidence `json:"evidence,omitempty"`
	// Findings are the codes of all checks of "doctor" that found it.
	Findings []string `json:"findings,omitempty"`
	// Since is when it began, if that is recorded, AgeSeconds the time from then until the
	// cluster was read.
	Since      *metav1.Time `json:"since,omitempty"`
	AgeSeconds int64        `json:"ageSeconds,omitempty"`
	// Affected are the pods that suffer from it by owner, the most first, at most ten entries.
	Affected []AffectedPods `json:"affected,omitempty"`
	// Pods, Workloads and Namespaces count what suffers from it. A pod may suffer from several
	// causes. LongestSeconds is the age of the oldest pod.
	Pods           int   `json:"pods"`
	Workloads      int   `json:"workloads"`
	Namespaces     int   `json:"namespaces"`
	LongestSeconds int64 `json:"longestSeconds,omitempty"`
	// Nodes and Devices count the nodes and devices that nobody can use because of it.
	Nodes   int `json:"nodes,omitempty"`
	Devices int `json:"devices,omitempty"`
	// Actor is User, Admin or Nobody (wait); empty if nothing is known that helps.
	Actor string `json:"actor,omitempty"`
	// NextStep mends it.
	NextStep *NextStep `json:"nextStep,omitempty"`
	// AlsoFor are the pods and workloads that need the next step in objects of their own, which
	// its commands do not change. The explanation of each has its commands.
	AlsoFor []ObjectRef `json:"alsoFor,omitempty"`
	// Mended says what changes when it is mended, as the allocator decides; it is left out
	// where that cannot be known.
	Mended *Mended `json:"mended,omitempty"`
}

// AffectedPods are pods of one owner that suffer from a cause.
type AffectedPods struct {
	Namespace string `json:"namespace"`
	// Name is the name of the first pod, or of the workload if there is no pod yet.
	Name string `json:"name"`
	// Owner is the workload of the pods; it is left out for a bare pod.
	Owner ObjectRef `json:"owner,omitzero"`
	// Count counts the pods.
	Count int `json:"count"`
}

// Mended says what changes when a cause is mended. The allocator decides all pods that wait
// again, with Edits made.
type Mended struct {
	// Edits are the changes with which the allocator was asked.
	Edits []Edit `json:"edits"`
	// Starts counts the pods that fit then and do not fit now, Waiting all pods that wait.
	Starts  int `json:"starts"`
	Waiting int `json:"waiting"`
	// Stops counts the pods that fit now and do not fit then: others get their devices first.
	Stops int `json:"stops,omitempty"`
	// Safe counts the pods that are not evicted then.
	Safe int `json:"safe,omitempty"`
	// Message says it in a few words.
	Message string `json:"message"`
}

// Upcoming is an event that is due without anybody acting.
type Upcoming struct {
	// Kind is Eviction or Release.
	Kind string `json:"kind"`
	// Count counts the pods that are evicted, or the claims that are being released.
	Count int `json:"count"`
	// At is when the first of them is due, if that is known.
	At *metav1.Time `json:"at,omitempty"`
	// Message says it in a few words.
	Message string `json:"message"`
}

// Kinds of [Upcoming].
const (
	UpcomingEviction = "Eviction"
	UpcomingRelease  = "Release"
)
