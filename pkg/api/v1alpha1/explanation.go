// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Explanation is the answer to "why": whether a target's claims can be
// allocated, and the evidence. Every face of the program (text, JSON, YAML,
// the dashboard) renders it and computes nothing.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Explanation struct {
	metav1.TypeMeta `json:",inline"`

	// Target is what was asked about.
	Target Target `json:"target"`
	// Node is set if it was asked about one node. Then Verdict, Claims and Nodes
	// are about that node alone.
	Node *NodeExplanation `json:"node,omitempty"`
	// Device is set if it was asked about one device.
	Device *DeviceExplanation `json:"device,omitempty"`
	// Verdict is that of the scheduler's own allocator, unless something else
	// keeps the pod from working: then it is Blocked.
	Verdict Verdict `json:"verdict"`
	// Finished is set if the pod has ended, or the Job is complete or has failed:
	// it needs no devices any more.
	Finished bool `json:"finished,omitempty"`
	// Code is the dominant reason, that of Summary. It is empty if there is nothing
	// to explain: for Fits and Allocated, and where no code applies.
	Code Code `json:"code,omitempty"`
	// Summary is one sentence: the dominant reason.
	Summary string `json:"summary"`
	// Stage is where in its life the target stands; empty for a claim that no
	// pod uses.
	Stage Stage `json:"stage,omitempty"`
	// StageEvidence proves that the stage is not done, or what is wrong in it:
	// what objects say, the most telling first.
	StageEvidence []Evidence `json:"stageEvidence,omitempty"`
	// Pods are those that wait for, or use, what was asked about, at most ten;
	// PodCount counts all of them.
	Pods     []PodStatus `json:"pods,omitempty"`
	PodCount int         `json:"podCount,omitempty"`
	// SchedulerMessage is what the scheduler itself said last, if anything.
	SchedulerMessage *SchedulerMessage `json:"schedulerMessage,omitempty"`
	// SameAs is the pod whose answer this is, too: both are equal to the scheduler.
	// Nodes, the funnels of the requests, conflict and remedies are found there and
	// not here.
	SameAs *Target `json:"sameAs,omitempty"`
	// Queue tells which pods get the devices first. It is set if the target fits
	// as long as those pods are left out.
	Queue *QueueStatus `json:"queue,omitempty"`
	// Replicas counts the pods of a workload.
	Replicas *ReplicaCount `json:"replicas,omitempty"`
	// Allocator tells which allocator answered, and how it was set up.
	Allocator AllocatorInfo `json:"allocator"`
	// Assumptions says, a sentence each, what was taken as true without seeing
	// it.
	Assumptions []string `json:"assumptions,omitempty"`
	// Claims has the pod's claims in the order of the pod, each request with
	// its funnel.
	Claims []ClaimExplanation `json:"claims"`
	// Nodes puts every node of the cluster into exactly one group, the most
	// promising group first.
	Nodes []NodeGroup `json:"nodes,omitempty"`
	// NodeCount counts the nodes in all groups.
	NodeCount int `json:"nodeCount"`
	// Conflict is why nothing fits on the most promising node, if that could be
	// found.
	Conflict *Conflict `json:"conflict,omitempty"`
	// Remedies are changes that make it fit: first those of the actor who can act
	// soonest, and among them the cheapest first.
	Remedies []Remedy `json:"remedies,omitempty"`
	// MoreRemedies counts those that were found and left out.
	MoreRemedies int `json:"moreRemedies,omitempty"`
	// Placement is what the allocator picks, if it fits.
	Placement *Placement `json:"placement,omitempty"`
	// Hints are what else is in the cluster that may be behind the verdict, or
	// that people look for and do not find, the most telling first. They are no part of
	// the allocator's reasons and never contradict them.
	Hints []Hint `json:"hints,omitempty"`
	// NextSteps tells who can do what about it, the most useful first.
	NextSteps []NextStep `json:"nextSteps,omitempty"`
}

// Target identifies an object. Namespace and name are empty where the object
// has none.
type Target struct {
	// Kind is Pod, ResourceClaim, ResourceClaimTemplate or that of a workload.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Verdict is the outcome for a target.
type Verdict string

const (
	// Allocated means that all claims have their devices already.
	Allocated Verdict = "Allocated"
	// Fits means that the allocator finds devices on at least one node, and that
	// nothing that can be seen stops the scheduler from placing the pod there.
	Fits Verdict = "Fits"
	// DoesNotFit means that the allocator ran and found nothing.
	DoesNotFit Verdict = "DoesNotFit"
	// Blocked means that there are devices, available or allocated already, and
	// that something else keeps the pod from working: Code says what, Stage where.
	Blocked Verdict = "Blocked"
	// Error means that the allocator, or what comes before it in the
	// scheduler, fails, so that no node can be tried.
	Error Verdict = "Error"
	// Undetermined means that something decisive could not be known.
	Undetermined Verdict = "Undetermined"
)

// Stage is a step in the life of a pod with claims, in this order.
type Stage string

// The stages; see the design of the resourceclaim controller, the scheduler's
// dynamicresources plugin and the kubelet's dra manager for who does what.
const (
	StageClaimGeneration Stage = "ClaimGeneration"
	StageQueueing        Stage = "Queueing"
	StageNodeFit         Stage = "NodeFit"
	StageAllocation      Stage = "Allocation"
	StageBinding         Stage = "Binding"
	StageReservation     Stage = "Reservation"
	StagePreparation     Stage = "Preparation"
	StageInjection       Stage = "Injection"
	StageRunning         Stage = "Running"
	StageCleanup         Stage = "Cleanup"
)

// Code is a stable reason code: codes are added, never renamed.
type Code string

// The reason codes.
const (
	NodeNotReachable             Code = "NodeNotReachable"
	NodeUnsuitable               Code = "NodeUnsuitable"
	PoolIncomplete               Code = "PoolIncomplete"
	PoolInvalid                  Code = "PoolInvalid"
	PoolObsolete                 Code = "PoolObsolete"
	ClassNotFound                Code = "ClassNotFound"
	ClassSelectorFalse           Code = "ClassSelectorFalse"
	RequestSelectorFalse         Code = "RequestSelectorFalse"
	SelectorError                Code = "SelectorError"
	DeviceAllocated              Code = "DeviceAllocated"
	DeviceTainted                Code = "DeviceTainted"
	CapacityInsufficient         Code = "CapacityInsufficient"
	CountersExhausted            Code = "CountersExhausted"
	CompatibilityGroupConflict   Code = "CompatibilityGroupConflict"
	AttributeMissing             Code = "AttributeMissing"
	ConstraintUnsatisfiable      Code = "ConstraintUnsatisfiable"
	CountUnsatisfiable           Code = "CountUnsatisfiable"
	RequestsCompete              Code = "RequestsCompete"
	BindingConditionsUnsupported Code = "BindingConditionsUnsupported"
	NodeOperationUnsupported     Code = "NodeOperationUnsupported"
	FeatureDisabled              Code = "FeatureDisabled"
	ClaimLimitExceeded           Code = "ClaimLimitExceeded"
	SearchTimeout                Code = "SearchTimeout"
	AdminAccessDenied            Code = "AdminAccessDenied"
	// PodsCompete means that devices are available, and that pods which are before
	// this one in the scheduling queue get them.
	PodsCompete Code = "PodsCompete"
	// AllocatorError is an error of the allocator that has no code of its own.
	AllocatorError Code = "AllocatorError"
	// ClaimNotReady is a claim that does not exist yet, is being deleted, or
	// belongs to another pod.
	ClaimNotReady Code = "ClaimNotReady"
)

// The reason codes of what is no matter of devices, see [Blocked].
const (
	// PodGroupMissing is a PodGroup that the pod names and that does not exist.
	PodGroupMissing Code = "PodGroupMissing"
	// GangIncomplete is a gang of which fewer pods exist, or can be placed, than
	// its minCount.
	GangIncomplete Code = "GangIncomplete"
	// QuotaExceeded is a ResourceQuota that refuses the claim or the pod.
	QuotaExceeded Code = "QuotaExceeded"
	// LimitRangeViolated is a LimitRange that refuses the pod.
	LimitRangeViolated Code = "LimitRangeViolated"
	// VolumeNotReady is a PersistentVolumeClaim that is missing, being deleted or
	// not bound.
	VolumeNotReady Code = "VolumeNotReady"
	// PreparationFailed is a driver, or the kubelet, that fails to prepare devices.
	PreparationFailed Code = "PreparationFailed"
	// BindingPending is a device whose binding conditions are not true yet, or
	// that failed to bind.
	BindingPending Code = "BindingPending"
	// DeviceMissing is an allocated device that no ResourceSlice has any more.
	DeviceMissing Code = "DeviceMissing"
	// DeviceUnhealthy is an allocated device that its driver calls unhealthy.
	DeviceUnhealthy Code = "DeviceUnhealthy"
	// InjectionFailed is a container runtime that does not find the CDI devices of
	// a container.
	InjectionFailed Code = "InjectionFailed"
	// PodNotStarted is a pod on its node that has no sandbox: one could not be
	// created, or nothing happens.
	PodNotStarted Code = "PodNotStarted"
	// NodeNotReady is a pod whose node is not ready, or does not exist.
	NodeNotReady Code = "NodeNotReady"
	// DeviceAllocatedTwice is a device that another claim has, too.
	DeviceAllocatedTwice Code = "DeviceAllocatedTwice"
	// EvictionDue is a pod that a taint of its device is about to evict.
	EvictionDue Code = "EvictionDue"
)

// PodStatus is a pod that waits for or uses the target.
type PodStatus struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Phase is the pod's status.phase.
	Phase string `json:"phase,omitempty"`
	// Node is where it runs or is bound to, empty if it is not scheduled.
	Node string `json:"node,omitempty"`
	// Since is when the pod was created.
	Since *metav1.Time `json:"since,omitempty"`
	// AgeSeconds counts the seconds from then until the snapshot was taken.
	AgeSeconds int64 `json:"ageSeconds,omitempty"`
	// Stage is where the pod stands.
	Stage Stage `json:"stage,omitempty"`
	// Owner is the workload that the pod belongs to, "job/train"; empty for a bare
	// pod.
	Owner string `json:"owner,omitempty"`
}

// QueueStatus is what pods that are before the target in the scheduling queue
// take from it. The order is by priority, then by age.
type QueueStatus struct {
	// Before are those pods, at most ten; BeforeCount counts all of them.
	Before      []QueuedPod `json:"before"`
	BeforeCount int         `json:"beforeCount"`
}

// QueuedPod is a pod that waits, with what it gets.
type QueuedPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Priority is the pod's spec.priority.
	Priority int32 `json:"priority"`
	// Node is where it fits, Devices what the allocator picks there.
	Node    string            `json:"node"`
	Devices []AllocatedDevice `json:"devices"`
}

// ReplicaCount counts the pods of a workload.
type ReplicaCount struct {
	// Desired is how many pods there should be at the same time; absent if the
	// workload does not say so.
	Desired *int32 `json:"desired,omitempty"`
	// WithDevices counts those whose claims are all allocated, Waiting those that
	// wait for devices. Before there are any pods, all of them wait.
	WithDevices int `json:"withDevices"`
	Waiting     int `json:"waiting"`
	// FitNow is how many of those that wait fit now, one after another.
	FitNow int `json:"fitNow"`
}

// SchedulerMessage is the last word of the scheduler about a pod.
type SchedulerMessage struct {
	// Text is the message as the scheduler wrote it.
	Text string `json:"text"`
	// Source is where it was found: "condition PodScheduled" or
	// "event FailedScheduling".
	Source string `json:"source"`
	// Time is when it was said last.
	Time *metav1.Time `json:"time,omitempty"`
}

// AllocatorInfo tells which allocator answered.
type AllocatorInfo struct {
	// Library is the version of k8s.io/dynamic-resource-allocation.
	Library string `json:"library"`
	// Channel is the implementation that the features select: stable,
	// incubating or experimental.
	Channel string `json:"channel"`
	// Cluster is the version of the API server, empty if unknown.
	Cluster string `json:"cluster,omitempty"`
	// FeatureSource is the weakest source among the gates that matter: flag,
	// metrics or default.
	FeatureSource string `json:"featureSource"`
	// Features are the enabled ones that the allocator knows, sorted.
	Features []string `json:"features"`
}

// ClaimExplanation explains one claim.
type ClaimExplanation struct {
	// Namespace and Name identify the claim. A claim that is not generated yet
	// has no name; Template says what it will be made from.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Template  string `json:"template,omitempty"`
	// PodClaim is the entry in the pod's spec.resourceClaims.
	PodClaim string `json:"podClaim,omitempty"`
	// ExtendedResources is true for the claim that the scheduler makes itself
	// from a pod's extended resource requests.
	ExtendedResources bool `json:"extendedResources,omitempty"`
	// Deleting is true if the claim is being deleted.
	Deleting bool `json:"deleting,omitempty"`
	// Allocation is set if the claim is allocated. Then its requests have no
	// funnel.
	Allocation *Allocation          `json:"allocation,omitempty"`
	Requests   []RequestExplanation `json:"requests,omitempty"`
	// Constraints are those of the claim, as people would say them.
	Constraints []string `json:"constraints,omitempty"`
}

// Allocation describes the devices that a claim holds.
type Allocation struct {
	// Since is when it was allocated, if the server recorded it.
	Since *metav1.Time `json:"since,omitempty"`
	// AgeSeconds counts from then until the snapshot was taken.
	AgeSeconds int64             `json:"ageSeconds,omitempty"`
	Devices    []AllocatedDevice `json:"devices"`
	// Nodes describes where the devices can be used: "node-23", "any node" or
	// a node selector.
	Nodes string `json:"nodes"`
	// ReservedFor lists the consumers ("pod/train-0").
	ReservedFor []string `json:"reservedFor,omitempty"`
}

// AllocatedDevice is one device of an allocation or of a placement.
type AllocatedDevice struct {
	// Request is the name of the request, "request/subrequest" for one of a
	// prioritized list.
	Request string `json:"request"`
	// ExtendedResource is what the container asks for by this request, in the
	// claim for extended resources.
	ExtendedResource string `json:"extendedResource,omitempty"`
	// Container is the one that asks for it.
	Container string `json:"container,omitempty"`
	Driver    string `json:"driver"`
	Pool      string `json:"pool"`
	Device    string `json:"device"`
	// ShareID is set for a share of a device that several claims can use.
	ShareID string `json:"shareID,omitempty"`
	// ConsumedCapacity is what this share takes, by capacity name.
	ConsumedCapacity map[string]string `json:"consumedCapacity,omitempty"`
	AdminAccess      bool              `json:"adminAccess,omitempty"`
	// Missing is true if no ResourceSlice has the device any more and the status
	// of the claim does not say that it is ready. (A driver of networks may move
	// an interface into a pod and no longer publish it.)
	Missing bool `json:"missing,omitempty"`
	// Status is what the driver says about the device: conditions, and the
	// network data of a network device.
	Status *DeviceStatus `json:"status,omitempty"`
}

// RequestExplanation is the funnel of one request or subrequest: all devices
// of all pools, less those that a check rejects, in the allocator's own order.
// Considered = Eligible + the sum of the counts in Rejected.
type RequestExplanation struct {
	// Name is "request", or "request/subrequest" for an alternative of a
	// prioritized list.
	Name string `json:"name"`
	// DeviceClass is the class that the request names.
	DeviceClass string `json:"deviceClass"`
	// ExtendedResource is what the container asks for, in the claim for
	// extended resources.
	ExtendedResource string `json:"extendedResource,omitempty"`
	// Container is the one that asks for it.
	Container string `json:"container,omitempty"`
	// Mode is ExactCount or All.
	Mode string `json:"mode"`
	// Needs is how many devices one node must have; 0 means all that match, at
	// least one.
	Needs       int64 `json:"needs"`
	AdminAccess bool  `json:"adminAccess,omitempty"`
	// Considered counts the devices of all pools, Pools the pools.
	Considered int `json:"considered"`
	Pools      int `json:"pools"`
	// Eligible counts the devices that pass every check alone, and
	// EligibleNodes the nodes that can reach at least one of them.
	Eligible      int `json:"eligible"`
	EligibleNodes int `json:"eligibleNodes"`
	// MostOnOneNode is the largest number of eligible devices that one node
	// can reach, BestNode a node with that many.
	MostOnOneNode int    `json:"mostOnOneNode"`
	BestNode      string `json:"bestNode,omitempty"`
	// Rejected has the checks in the allocator's order.
	Rejected []Rejection `json:"rejected,omitempty"`
	// EligibleDevices lists the eligible devices as driver/pool/device.
	EligibleDevices []string `json:"eligibleDevices,omitempty"`
	// Selectors are those of the class and then those of the request, in the
	// order in which the allocator evaluates them. If the question is about one
	// node, they tell of the devices that it can reach.
	Selectors []SelectorTrace `json:"selectors,omitempty"`
}

// SelectorTrace tells what a CEL selector does to all devices of all pools,
// whatever else may be the matter with them. A device for which an earlier
// selector of the request does not hold is not reached. The counts of the
// outcomes add up to the number of devices considered.
type SelectorTrace struct {
	// Source is "class" or "request".
	Source string `json:"source"`
	// Object has the selector, at Path.
	Object string `json:"object"`
	Path   string `json:"path"`
	// Expression is in CEL.
	Expression string `json:"expression"`
	// Cost estimates what an evaluation costs in the worst case, in the units of
	// CEL. It is 0 if that is not known. CostLimit is what the API server accepts
	// as an estimate, and where an evaluation is broken off.
	Cost      uint64 `json:"cost,omitempty"`
	CostLimit uint64 `json:"costLimit"`
	// Outcomes counts devices.
	Outcomes SelectorOutcomes `json:"outcomes"`
	// Error is the error of most devices for which the expression fails.
	Error string `json:"error,omitempty"`
	// Notes say what else is remarkable, a sentence each.
	Notes []string `json:"notes,omitempty"`
	// Parts are the operands of the outermost &&, or the whole expression. There
	// are none if the expression cannot be taken apart.
	Parts []SelectorPart `json:"parts,omitempty"`
}

// SelectorOutcomes counts devices by what became of an expression.
type SelectorOutcomes struct {
	// True, False and Fails count those for which the expression is true, is
	// false, or ends with an error.
	True  int `json:"true"`
	False int `json:"false"`
	Fails int `json:"fails"`
	// NotEvaluated counts those for which it was not evaluated, because something
	// before it had decided, or not to its end.
	NotEvaluated int `json:"notEvaluated"`
}

// SelectorPart is a part of an expression.
type SelectorPart struct {
	// Expression is the part, in CEL.
	Expression string `json:"expression"`
	// Requirement says in a few words what it asks for; empty if the expression says
	// it best.
	Requirement string           `json:"requirement,omitempty"`
	Outcomes    SelectorOutcomes `json:"outcomes"`
	// Values are what it was evaluated with, at most ten, the most frequent first.
	// MoreValues counts the others. A part with operands has none: they have them.
	Values     []SelectorValue `json:"values,omitempty"`
	MoreValues int             `json:"moreValues,omitempty"`
	// Operands are its own parts, if a logical operator makes it.
	Operands []SelectorPart `json:"operands,omitempty"`
}

// SelectorValue is something that a part of an expression was evaluated with.
type SelectorValue struct {
	// Found has the values: "model is \"A100\"".
	Found string `json:"found"`
	// Outcome is True, False or Fails.
	Outcome string `json:"outcome"`
	// Count is for how many devices.
	Count int `json:"count"`
}

// What became of a part of an expression.
const (
	OutcomeTrue  = "True"
	OutcomeFalse = "False"
	OutcomeFails = "Fails"
)

// Rejection is a set of devices that the same check rejects.
type Rejection struct {
	Code Code `json:"code"`
	// Count is how many devices it rejects.
	Count int `json:"count"`
	// Label names the check in a word or two: "allocated", "selector 1".
	Label string `json:"label"`
	// Message says it in one sentence.
	Message string `json:"message"`
	// Hint is the part of the message that says what was probably meant, if
	// something is compared with a value, or asks for an attribute, that no device
	// has.
	Hint string `json:"hint,omitempty"`
	// Evidence proves it.
	Evidence []Evidence `json:"evidence,omitempty"`
	// Where sums up the nodes or pools: "20 nodes", "node-17".
	Where string `json:"where,omitempty"`
	// Devices lists them as driver/pool/device.
	Devices []string `json:"devices,omitempty"`
	// Holders sums up the claims that the devices are allocated to.
	Holders *Holders `json:"holders,omitempty"`
}

// Evidence is one fact: what an object says at a path, against what is required.
type Evidence struct {
	// Object is "Kind/name" or "Kind/namespace/name".
	Object string `json:"object"`
	// Path is the field in the object, as in JSONPath without the braces.
	Path string `json:"path,omitempty"`
	// Found is the value, Required what it was compared with.
	Found    string `json:"found,omitempty"`
	Required string `json:"required,omitempty"`
	// Count is how many devices this fact rejects; 0 if it is not counted.
	Count int `json:"count,omitempty"`
}

// NodeGroup is a set of nodes with the same answer.
type NodeGroup struct {
	// Count is the number of Names.
	Count   int      `json:"count"`
	Names   []string `json:"names"`
	Verdict Verdict  `json:"verdict"`
	// Code and Message are empty for nodes where it fits.
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Missing is how many devices more the request that lacks most would need on
	// each of these nodes, or how many more that a constraint takes together; 0 if
	// it is not a matter of their number. It decides the order of such nodes.
	Missing int `json:"missing,omitempty"`
	// Score is the dynamicresources score of nodes where it fits, before
	// normalization; only prioritized lists make it differ from 0.
	Score int64 `json:"score,omitempty"`
	// Parts has the same nodes apart by how many devices they have, if they differ
	// in nothing else.
	Parts []NodeGroup `json:"parts,omitempty"`
}

// Placement is what the allocator picks on the first of the best nodes.
type Placement struct {
	Node string `json:"node"`
	// Score is that of the node, see [NodeGroup].
	Score int64 `json:"score,omitempty"`
	// Claims are in the order of the pod.
	Claims []PlacementClaim `json:"claims"`
}

// PlacementClaim has the devices for one claim, in the allocator's order.
type PlacementClaim struct {
	Namespace string            `json:"namespace,omitempty"`
	Name      string            `json:"name"`
	Devices   []AllocatedDevice `json:"devices"`
}

// Holders sums up the claims that the devices of a [Rejection] are allocated to.
type Holders struct {
	// Claims counts them, Claim is the only one as "namespace/name".
	Claims int    `json:"claims"`
	Claim  string `json:"claim,omitempty"`
	// Namespaces has those of the claims, the one with the most devices first.
	Namespaces []NamespaceCount `json:"namespaces,omitempty"`
}

// NamespaceCount is a number of devices by namespace.
type NamespaceCount struct {
	Namespace string `json:"namespace"`
	// Devices counts them.
	Devices int `json:"devices"`
}
