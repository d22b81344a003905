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

	// Target is the object that was asked about.
	Target ObjectRef `json:"target"`
	// Node is set for a question about one node. Then Verdict, Claims and Nodes are about
	// that node alone.
	Node *NodeExplanation `json:"node,omitempty"`
	// Device is set for a question about one device.
	Device *DeviceExplanation `json:"device,omitempty"`
	// Verdict is the verdict of the scheduler's own allocator, unless something else keeps
	// the pod from working: then it is Blocked.
	Verdict Verdict `json:"verdict"`
	// Finished is set if the pod has ended, or the Job is complete or has failed:
	// it needs no devices any more.
	Finished bool `json:"finished,omitempty"`
	// AgeSeconds counts from the creation of a workload until the snapshot was taken; it is
	// left out for others, and where that is not known. Pods have an age of their own.
	AgeSeconds int64 `json:"ageSeconds,omitempty"`
	// Code is the dominant reason, as in Summary. It is empty if there is nothing to
	// explain: for Fits and Allocated, and where no code applies.
	Code Code `json:"code,omitempty"`
	// Summary is one sentence: the dominant reason.
	Summary string `json:"summary"`
	// Headline is the decisive fact of Summary: the available devices, and then the required
	// ones. It is left out where Summary is as short.
	Headline string `json:"headline,omitempty"`
	// Stage is the current stage of the target's life; empty for a claim that no pod uses.
	Stage Stage `json:"stage,omitempty"`
	// StageEvidence proves that the stage is not done, or has a problem: the values of
	// objects, the most telling first.
	StageEvidence []Evidence `json:"stageEvidence,omitempty"`
	// Pods are the pods that wait for, or use, the target, at most ten; PodCount counts all
	// of them.
	Pods     []PodStatus `json:"pods,omitempty"`
	PodCount int         `json:"podCount,omitempty"`
	// DifferentPods are set if the target has pods with other needs than Pods, such as the
	// head of a cluster of workers. They are no part of the answer.
	DifferentPods *DifferentPods `json:"differentPods,omitempty"`
	// SchedulerMessage is the scheduler's own last message, if any.
	SchedulerMessage *SchedulerMessage `json:"schedulerMessage,omitempty"`
	// OtherScheduler is set if the pod waits for another scheduler than default-scheduler.
	// That scheduler decides about the pod; Verdict is the decision that kube-scheduler
	// would make.
	OtherScheduler *OtherScheduler `json:"otherScheduler,omitempty"`
	// SchedulingGates are the gates of a waiting pod: no scheduler looks at it before they
	// are removed, and no remedy removes them. Verdict is the verdict after that.
	SchedulingGates []string `json:"schedulingGates,omitempty"`
	// SameAs is a pod with the same answer: both are equal to the scheduler. Nodes,
	// funnels, conflict, remedies and the outlook for one more node are in that answer and
	// not here.
	SameAs ObjectRef `json:"sameAs,omitzero"`
	// Queue names the pods that get the devices first. It is set if the target would fit
	// without those pods.
	Queue *QueueStatus `json:"queue,omitempty"`
	// Members counts the pods of a workload or a PodGroup, and says which of them fit.
	Members *Members `json:"members,omitempty"`
	// Allocator describes the allocator that answered.
	Allocator AllocatorInfo `json:"allocator"`
	// Assumptions lists, a sentence each, facts that were assumed and not verified.
	Assumptions []string `json:"assumptions,omitempty"`
	// Claims has the pod's claims in the order of the pod, each request with
	// its funnel.
	Claims []ClaimExplanation `json:"claims"`
	// Nodes puts every node of the cluster into exactly one group, the most
	// promising group first.
	Nodes []NodeGroup `json:"nodes,omitempty"`
	// NodeCount counts the nodes in all groups.
	NodeCount int `json:"nodeCount"`
	// Conflict explains why nothing fits on the most promising node, if that could be
	// found.
	Conflict *Conflict `json:"conflict,omitempty"`
	// Remedies are changes that make it fit, ordered by the actor who can act soonest and
	// then by cost.
	Remedies []Remedy `json:"remedies,omitempty"`
	// MoreRemedies counts the remedies that were found and left out.
	MoreRemedies int `json:"moreRemedies,omitempty"`
	// Outlook says when a target that does not fit would. It is missing where the
	// allocator was not asked.
	Outlook *Outlook `json:"outlook,omitempty"`
	// WhyHere says why a pod that works with its devices has this node and these
	// devices.
	WhyHere *WhyHere `json:"whyHere,omitempty"`
	// Alignment compares the allocated devices of all claims by attributes that say where
	// hardware is, and by those that constraints of the claims name.
	Alignment []Alignment `json:"alignment,omitempty"`
	// Placement is the allocator's choice, if it fits.
	Placement *Placement `json:"placement,omitempty"`
	// Hints are other facts about the cluster that may be behind the verdict, or that
	// people look for and do not find, the most telling first. They are no part of the
	// allocator's reasons and never contradict them.
	Hints []Hint `json:"hints,omitempty"`
	// NextSteps are actions with their actors, the most useful first.
	NextSteps []NextStep `json:"nextSteps,omitempty"`
}

// PodStatus is a pod that waits for or uses the target.
type PodStatus struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Phase is the pod's status.phase.
	Phase string `json:"phase,omitempty"`
	// Node is the node of the pod, empty if it is not scheduled.
	Node string `json:"node,omitempty"`
	// Since is when the pod was created.
	Since *metav1.Time `json:"since,omitempty"`
	// AgeSeconds counts the seconds from then until the snapshot was taken.
	AgeSeconds int64 `json:"ageSeconds,omitempty"`
	// Stage is the current stage of the pod.
	Stage Stage `json:"stage,omitempty"`
	// Owner is the workload that the pod belongs to; it is left out for a bare pod.
	Owner ObjectRef `json:"owner,omitzero"`
}

// DifferentPods counts pods of a target that an answer does not cover.
type DifferentPods struct {
	// Count is the number of pods.
	Count int `json:"count"`
	// Waiting counts the pods without a node.
	Waiting int `json:"waiting"`
	// Names are at most ten of them.
	Names []string `json:"names"`
}

// OtherScheduler is the scheduler that a pod names. Whether it is a profile of
// kube-scheduler or a program of its own is not in the API.
type OtherScheduler struct {
	// Name is the pod's spec.schedulerName.
	Name string `json:"name"`
	// Message says how that affects the verdict.
	Message string `json:"message"`
}

// QueueStatus has the pods before the target in the scheduling queue that take devices from
// it. The order is by priority, then by age.
type QueueStatus struct {
	// Before are these pods, at most ten; BeforeCount counts all of them.
	Before      []QueuedPod `json:"before"`
	BeforeCount int         `json:"beforeCount"`
}

// QueuedPod is a waiting pod with its future node and devices.
type QueuedPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Priority is the pod's spec.priority.
	Priority int32 `json:"priority"`
	// Node is where it fits, Devices the devices that the allocator picks there.
	Node    string            `json:"node"`
	Devices []AllocatedDevice `json:"devices"`
}

// SchedulerMessage is the scheduler's last message about a pod.
type SchedulerMessage struct {
	// Text is the message as the scheduler wrote it.
	Text string `json:"text"`
	// Source is its origin: "condition PodScheduled" or "event FailedScheduling".
	Source string `json:"source"`
	// Time is the last time it was reported.
	Time *metav1.Time `json:"time,omitempty"`
}

// AllocatorInfo describes the allocator that answered.
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
	// Features are the enabled features that the allocator knows, sorted.
	Features []string `json:"features"`
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
	// Missing is the number of further devices that each of these nodes would need, for the
	// request or constraint that lacks most; 0 if the number does not matter. It decides
	// the order of such nodes.
	Missing int `json:"missing,omitempty"`
	// Score is the dynamicresources score of nodes where it fits, before
	// normalization; only prioritized lists make it differ from 0.
	Score int64 `json:"score,omitempty"`
	// Parts splits the nodes by their number of devices, if they differ in nothing else.
	Parts []NodeGroup `json:"parts,omitempty"`
}

// Placement is the allocator's choice on the first of the best nodes.
type Placement struct {
	Node string `json:"node"`
	// Score is the score of the node, see [NodeGroup].
	Score int64 `json:"score,omitempty"`
	// Claims are in the order of the pod.
	Claims []PlacementClaim `json:"claims"`
}

// PlacementClaim has the devices for one claim, in the allocator's order.
type PlacementClaim struct {
	Namespace string `json:"namespace,omitempty"`
	// Name is empty for a claim that is yet to be created.
	Name string `json:"name"`
	// PodClaim is the name in the pod's spec.resourceClaims of a claim that is yet to be
	// created, empty for the one for extended resources.
	PodClaim string            `json:"podClaim,omitempty"`
	Devices  []AllocatedDevice `json:"devices"`
}

// ExplanationList is printed when several targets were asked for.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ExplanationList struct {
	metav1.TypeMeta `json:",inline"`

	// Items has one explanation for each target, in the order asked.
	Items []Explanation `json:"items"`
}

// NodeExplanation describes one node that was asked about.
type NodeExplanation struct {
	Name string `json:"name"`
	// Misfits are all conditions that keep the pod away, whatever devices there are.
	Misfits []NodeMisfit `json:"misfits,omitempty"`
	// Pools are the pools that the node can reach, in the allocator's order.
	Pools []ReachablePool `json:"pools,omitempty"`
	// AllocatorVerdict is the allocator's verdict without the misfits, empty if all claims
	// have their devices. Code and Message give the reason if devices are missing.
	AllocatorVerdict Verdict `json:"allocatorVerdict,omitempty"`
	Code             Code    `json:"code,omitempty"`
	Message          string  `json:"message,omitempty"`
}

// NodeMisfit is a condition that keeps a pod away from a node.
type NodeMisfit struct {
	Code     Code     `json:"code"`
	Message  string   `json:"message"`
	Evidence Evidence `json:"evidence"`
}

// ReachablePool is a pool as the allocator sees it from one node.
type ReachablePool struct {
	Driver string `json:"driver"`
	Name   string `json:"name"`
	// Generation is the generation that counts for the node, 0 if none does.
	Generation int64 `json:"generation"`
	// Slices counts the published slices of the newest generation, ExpectedSlices the
	// expected ones.
	Slices         int   `json:"slices"`
	ExpectedSlices int64 `json:"expectedSlices"`
	// Devices counts the devices for the node.
	Devices int `json:"devices"`
	// Usable reports whether the allocator takes devices from the pool.
	Usable bool `json:"usable"`
	// Code and Message give the reason if the allocator does not use the pool, or leaves
	// out a part of it.
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Evidence proves it.
	Evidence *Evidence `json:"evidence,omitempty"`
}

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
	// Groups counts its groups, Fit the groups with enough pods that have a node or get one.
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

// WhyHere explains a pod's node and devices: it has the scheduler's options if it had to
// place the pod again, in the cluster as it is now, with the devices of the pod released.
type WhyHere struct {
	// Node is the node of the pod.
	Node string `json:"node"`
	// FitsHere is set if the pod would fit on its node again.
	FitsHere bool `json:"fitsHere"`
	// Nodes puts every node into exactly one group, as in Explanation.nodes. Which of the
	// fitting nodes the scheduler takes depends on the scores of all its plugins.
	Nodes []NodeGroup `json:"nodes,omitempty"`
	// NodeCount counts the nodes in all groups.
	NodeCount int `json:"nodeCount"`
	// NotEvaluated lists features of the pod that may keep it from nodes and were not
	// evaluated.
	NotEvaluated []string `json:"notEvaluated,omitempty"`
	// Alternatives has the requests with a prioritized list.
	Alternatives []ChosenAlternative `json:"alternatives,omitempty"`
	// Smaller has the devices for which a smaller one would be enough.
	Smaller []SmallerDevice `json:"smaller,omitempty"`
}

// ChosenAlternative is the alternative of a prioritized list that a claim got.
type ChosenAlternative struct {
	// Claim and Request name the request.
	Claim   string `json:"claim"`
	Request string `json:"request"`
	// Chosen is the name of the alternative, Position its place in the list, from 1.
	Chosen   string `json:"chosen"`
	Position int    `json:"position"`
	// Count counts the alternatives of the list.
	Count int `json:"count"`
	// Earlier are the alternatives before it.
	Earlier []EarlierAlternative `json:"earlier,omitempty"`
}

// EarlierAlternative is an alternative that was passed over.
type EarlierAlternative struct {
	// Name is the name of the alternative, with its request.
	Name string `json:"name"`
	// FitsNow is set if it is available on the node now: something has changed since.
	FitsNow bool `json:"fitsNow,omitempty"`
	// Code and Message say why it could not.
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// SmallerDevice means that a larger device than required was allocated.
type SmallerDevice struct {
	// Claim and Request name the request.
	Claim   string `json:"claim"`
	Request string `json:"request"`
	// Device is the device of the claim, Instead the device that the allocator picks if
	// that one is missing; both as driver/pool/device.
	Device  string `json:"device"`
	Instead string `json:"instead"`
	// Capacities are the capacities in which they differ.
	Capacities []CapacityDifference `json:"capacities"`
}

// CapacityDifference is a capacity of two devices.
type CapacityDifference struct {
	Name string `json:"name"`
	// Device is the capacity of the claim's device, Instead the capacity of the other one.
	Device  string `json:"device"`
	Instead string `json:"instead"`
}
