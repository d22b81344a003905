// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Overview describes the condition of a cluster: issues, capacity, pods that are stuck and
// why, teams, nodes, and what needs attention.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Overview struct {
	metav1.TypeMeta `json:",inline"`

	// Source is the cluster or the file that was read.
	Source string `json:"source"`
	// Namespace is the namespace of the pods and claims that count; it is left out for all
	// namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Issues are the faults of the cluster, pools first.
	Issues []Issue `json:"issues"`
	// Capacity has the DeviceClasses or, where there are none, the drivers.
	Capacity []ClassCapacity `json:"capacity"`
	// Stuck has the pods that wait for devices, or cannot work with them, the longest wait
	// first. Pods of one owner with one reason are one entry.
	Stuck []StuckPods `json:"stuck"`
	// Teams are the namespaces that use devices or wait for them, the largest first.
	Teams []Team `json:"teams"`
	// Attention has what somebody should look at, the most urgent first.
	Attention []Attention `json:"attention"`
	// Nodes are the nodes with devices by name, and after them the devices for several
	// nodes.
	Nodes []Node `json:"nodes"`
	// Assumptions are the facts that could not be read or verified.
	Assumptions []string `json:"assumptions,omitempty"`
}

// Issue is a kind of fault in a cluster, with a count.
type Issue struct {
	Code     IssueCode `json:"code"`
	Severity Severity  `json:"severity"`
	// Count is how many there are; 0 if that is not known.
	Count int `json:"count"`
	// LongestSeconds is how long the first of the pods has been waiting.
	LongestSeconds int64 `json:"longestSeconds,omitempty"`
	// NextEviction is when the first of the pods is evicted.
	NextEviction *metav1.Time `json:"nextEviction,omitempty"`
	// Message says it in a few words.
	Message string `json:"message"`
}

// IssueCode names a kind of fault.
type IssueCode string

const (
	// IssuePoolsBroken means that pools are neither usable nor empty.
	IssuePoolsBroken IssueCode = "PoolsBroken"
	// IssuePoolsUnknown means that ResourceSlices could not be read.
	IssuePoolsUnknown IssueCode = "PoolsUnknown"
	// IssuePodsWaiting means that pods wait for devices.
	IssuePodsWaiting IssueCode = "PodsWaiting"
	// IssuePodsBlocked means that pods have devices and cannot work with them.
	IssuePodsBlocked IssueCode = "PodsBlocked"
	// IssuePodsUnknown means that pods could not be read.
	IssuePodsUnknown IssueCode = "PodsUnknown"
	// IssueDevicesTainted means that a taint keeps devices from new claims.
	IssueDevicesTainted IssueCode = "DevicesTainted"
	// IssueDevicesTaintedInUse means that devices are tainted and allocated to claims.
	IssueDevicesTaintedInUse IssueCode = "DevicesTaintedInUse"
	// IssuePodsEvicted means that pods are evicted because of taints of devices.
	IssuePodsEvicted IssueCode = "PodsEvicted"
	// IssueNodesGone means that nodes with devices do not exist.
	IssueNodesGone IssueCode = "NodesGone"
	// IssueNodesNotReady means that nodes with devices are not ready.
	IssueNodesNotReady IssueCode = "NodesNotReady"
	// IssueNodesCordoned means that nodes with devices are cordoned.
	IssueNodesCordoned IssueCode = "NodesCordoned"
	// IssueClaimsWithoutPod means that no pod uses pending claims.
	IssueClaimsWithoutPod IssueCode = "ClaimsWithoutPod"
)

// ClassCapacity counts the devices of a DeviceClass or, where there are none, of a driver.
type ClassCapacity struct {
	// Class is the name of the DeviceClass, Driver the name of the driver; one is empty.
	Class  string `json:"class,omitempty"`
	Driver string `json:"driver,omitempty"`
	// Devices counts the devices by state.
	Devices DeviceCounts `json:"devices"`
	// DevicesAreLowerBounds is true if there may be more devices, because not all slices
	// could be seen.
	DevicesAreLowerBounds bool `json:"devicesAreLowerBounds,omitempty"`
	// Share is the part of the devices that claims have, from 0 to 1; it is left out if
	// there are no devices.
	Share *float64 `json:"share,omitempty"`
	// Failing counts the devices on which a selector of the class fails.
	Failing int `json:"failing,omitempty"`
	// Placeable counts the claims for one device of the class that the allocator can place
	// now, each beside the others, for pods without tolerations. It is left out if
	// it was not counted.
	Placeable *CopyCount `json:"placeable,omitempty"`
	// PlaceableNodes counts the nodes where Placeable are, by their number on a node, the most
	// first.
	PlaceableNodes []PlaceableNodes `json:"placeableNodes,omitempty"`
	// Waiting counts the pods that wait for devices of the class.
	Waiting int `json:"waiting"`
}

// PlaceableNodes are the nodes on which the allocator can place the same number of claims for one
// device of a class.
type PlaceableNodes struct {
	// Placeable is the number of claims on each of them.
	Placeable int `json:"placeable"`
	// Nodes counts the nodes, First is the first by name.
	Nodes int    `json:"nodes"`
	First string `json:"first"`
}

// StuckPods are pods of one owner that wait for devices, or cannot work with them, for one
// reason.
type StuckPods struct {
	Namespace string `json:"namespace"`
	// Name is the name of the first pod.
	Name string `json:"name"`
	// Owner is the workload of the pod; it is left out for a bare pod.
	Owner ObjectRef `json:"owner,omitzero"`
	// Count is how many pods there are.
	Count int `json:"count"`
	// AgeSeconds is how long ago the first pod was created; it is left out if that is not
	// known.
	AgeSeconds *int64 `json:"ageSeconds,omitempty"`
	// Asks has the requests of a pod that waits.
	Asks []Ask `json:"asks,omitempty"`
	// Reason says why they wait, or cannot work with the devices.
	Reason StuckReason `json:"reason"`
}

// StuckReason says why a pod waits for devices, or cannot work with them.
type StuckReason struct {
	// Verdict is the answer of the allocator; it is left out for pods whose devices are
	// allocated.
	Verdict Verdict `json:"verdict,omitempty"`
	Code    Code    `json:"code,omitempty"`
	Stage   Stage   `json:"stage,omitempty"`
	// Summary says why in one sentence.
	Summary string `json:"summary"`
	// Outlook is the first condition under which a pod would fit.
	Outlook Condition `json:"outlook,omitempty"`
	// Actor is User, Admin or Nobody (wait); empty if nothing is known that helps.
	Actor string `json:"actor,omitempty"`
}

// Ask is a request of a pod.
type Ask struct {
	// Classes are the DeviceClasses of the request, one for each alternative.
	Classes []string `json:"classes"`
	// Count is how many devices, of a prioritized list for the first alternative; 0 for all
	// that there are.
	Count int64 `json:"count"`
}

// Team describes the devices that a namespace uses and waits for.
type Team struct {
	Namespace string `json:"namespace"`
	// Used counts the devices in use, and Share is their part of all devices in use, from
	// 0 to 1; it is left out if that is not known.
	Used  int      `json:"used"`
	Share *float64 `json:"share,omitempty"`
	// Waiting counts the pods that wait, Idle the devices of claims that no pod uses.
	Waiting int         `json:"waiting"`
	Idle    int         `json:"idle"`
	Classes []TeamClass `json:"classes"`
}

// TeamClass describes the devices of a DeviceClass that a namespace uses and waits for.
type TeamClass struct {
	// Class is the name of the DeviceClass.
	Class string `json:"class"`
	// Used counts the devices that claims of the namespace have of the class, each
	// once. Idle are the devices whose claims no existing pod uses.
	Used int `json:"used"`
	Idle int `json:"idle"`
	// Share is Used in relation to what all namespaces use of the class, from 0 to 1.
	Share float64 `json:"share"`
	// Waiting counts the pods without a node that ask for the class. LongestSeconds
	// is how long the first of them has been waiting.
	Waiting        int   `json:"waiting"`
	LongestSeconds int64 `json:"longestSeconds,omitempty"`
	// UsedIsLowerBound is true if not all claims could be read, PodsAreUnknown if pods
	// could not be: then Idle and Waiting say nothing.
	UsedIsLowerBound bool `json:"usedIsLowerBound,omitempty"`
	PodsAreUnknown   bool `json:"podsAreUnknown,omitempty"`
}

// Usage describes the devices that a namespace, a workload or another group uses and waits for.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Usage struct {
	metav1.TypeMeta `json:",inline"`

	// By is the common property of the groups, as for --by; Name is its value, empty for
	// claims and pods without one.
	By   string `json:"by"`
	Name string `json:"name"`
	// Used counts the devices of the claims, and Share is their part of all used devices, from
	// 0 to 1; it is left out if not all claims could be read.
	Used  int      `json:"used"`
	Share *float64 `json:"share,omitempty"`
	// Waiting counts the pods that wait for devices. LongestSeconds is how long the first of
	// them has been waiting.
	Waiting        int   `json:"waiting"`
	LongestSeconds int64 `json:"longestSeconds,omitempty"`
	// Idle counts the used devices of claims that no pod uses that is still there.
	// IdleSeconds is how long the first of them is idle: since the last pod has ended or,
	// without a pod, since the allocation.
	Idle        int   `json:"idle"`
	IdleSeconds int64 `json:"idleSeconds,omitempty"`
	// Classes has the same by DeviceClass, the most used first. Share is then the part of
	// the class.
	Classes []TeamClass `json:"classes"`
	// UsedIsLowerBound is true if not all claims could be read, PodsAreUnknown if pods
	// could not be: then Idle and Waiting say nothing.
	UsedIsLowerBound bool `json:"usedIsLowerBound,omitempty"`
	PodsAreUnknown   bool `json:"podsAreUnknown,omitempty"`
	// Hours adds up the time of a recording, with --since.
	Hours *UsageHours `json:"hours,omitempty"`
}

// UsageHours adds up usage over time. Times in which the cluster was not recorded do not count.
type UsageHours struct {
	// Devices are device hours: 2 devices that are in use for 3 hours are 6. Idle are the device
	// hours of claims that no pod used.
	Devices float64 `json:"devices"`
	Idle    float64 `json:"idle"`
	// Waiting are the hours of pods that waited for devices.
	Waiting float64 `json:"waiting"`
}

// Attention is an object or a finding that somebody should look at.
type Attention struct {
	// Kind is Taint, Pool, Node, Finding or ResourceClaim.
	Kind     string   `json:"kind"`
	Severity Severity `json:"severity"`
	// Code is the code of the finding.
	Code string `json:"code,omitempty"`
	// Driver is the driver of the pool or of the tainted devices.
	Driver string `json:"driver,omitempty"`
	// Namespace and Name identify the object, or the first of several claims. A
	// taint is named KEY=VALUE:EFFECT.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Message says what there is to look at.
	Message string `json:"message"`
}

// Node is a node and the devices for it alone, or the devices that several nodes can reach.
type Node struct {
	// Name is empty for devices for several nodes, which Scope says in words.
	Name  string `json:"name,omitempty"`
	Scope string `json:"scope"`
	// State is Ready, NotReady or Gone; empty if it is not known.
	State string `json:"state,omitempty"`
	// Cordoned is true if its spec.unschedulable is set. Taints are the taints of the
	// node itself that keep pods without a toleration away, as "key=value:effect".
	Cordoned bool     `json:"cordoned,omitempty"`
	Taints   []string `json:"taints,omitempty"`
	// Devices counts the devices by state.
	Devices DeviceCounts `json:"devices"`
}

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
