// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClaimExplanation explains one claim.
type ClaimExplanation struct {
	// Namespace and Name identify the claim. A claim that is not generated yet has no name;
	// Template names its template.
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
	// Constraints are the constraints of the claim, in words.
	Constraints []string `json:"constraints,omitempty"`
	// ComputeDomains are the domains that its configuration names: one, as a rule.
	ComputeDomains []ComputeDomain `json:"computeDomains,omitempty"`
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
	// ReservedFor lists the consumers: pods, or a PodGroup.
	ReservedFor []ObjectRef `json:"reservedFor,omitempty"`
}

// AllocatedDevice is one device of an allocation or of a placement.
type AllocatedDevice struct {
	// Request is the name of the request, "request/subrequest" for one of a
	// prioritized list.
	Request string `json:"request"`
	// ExtendedResource is the resource that the container asks for by this request, in the
	// claim for extended resources.
	ExtendedResource string `json:"extendedResource,omitempty"`
	// Container is the container that asks for it.
	Container string `json:"container,omitempty"`
	Driver    string `json:"driver"`
	Pool      string `json:"pool"`
	Device    string `json:"device"`
	// ShareID is set for a share of a device that several claims can use.
	ShareID string `json:"shareID,omitempty"`
	// ConsumedCapacity is the capacity of this share, by name.
	ConsumedCapacity map[string]string `json:"consumedCapacity,omitempty"`
	AdminAccess      bool              `json:"adminAccess,omitempty"`
	// Missing is true if no ResourceSlice has the device any more and the status
	// of the claim does not say that it is ready. (A driver of networks may move
	// an interface into a pod and no longer publish it.)
	Missing bool `json:"missing,omitempty"`
	// Status is the driver's status of the device: conditions, and the network data of a
	// network device.
	Status *DeviceStatus `json:"status,omitempty"`
}

// RequestExplanation is the funnel of one request or subrequest: all devices of all pools,
// less the devices that a check rejects, in the allocator's own order. Considered =
// Eligible + the sum of the counts in Rejected.
type RequestExplanation struct {
	// Name is "request", or "request/subrequest" for an alternative of a
	// prioritized list.
	Name string `json:"name"`
	// DeviceClass is the class that the request names.
	DeviceClass string `json:"deviceClass"`
	// ExtendedResource is the resource that the container asks for, in the claim for
	// extended resources.
	ExtendedResource string `json:"extendedResource,omitempty"`
	// Container is the container that asks for it.
	Container string `json:"container,omitempty"`
	// Mode is ExactCount or All.
	Mode string `json:"mode"`
	// Needs is the number of devices that one node must have; 0 means all that match, at
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
	// Selectors are the selectors of the class and then of the request, in the order in
	// which the allocator evaluates them. If the question is about one node, they cover the
	// devices that it can reach.
	Selectors []SelectorTrace `json:"selectors,omitempty"`
}

// SelectorTrace has the results of a CEL selector on all devices of all pools, whatever
// their state. A device for which an earlier selector of the request does not hold is not
// reached. The counts of the outcomes add up to the number of devices considered.
type SelectorTrace struct {
	// Source is "class" or "request".
	Source string `json:"source"`
	// Object has the selector, at Path.
	Object ObjectRef `json:"object"`
	Path   string    `json:"path"`
	// Expression is in CEL.
	Expression string `json:"expression"`
	// Cost estimates the cost of an evaluation in the worst case, in the units of CEL; 0 if
	// it is not known. CostLimit is the limit of the API server for this estimate and for
	// an evaluation.
	Cost      uint64 `json:"cost,omitempty"`
	CostLimit uint64 `json:"costLimit"`
	// Outcomes counts devices.
	Outcomes SelectorOutcomes `json:"outcomes"`
	// Error is the error of most devices for which the expression fails.
	Error string `json:"error,omitempty"`
	// Notes are further remarks, a sentence each.
	Notes []string `json:"notes,omitempty"`
	// Parts are the operands of the outermost &&, or the whole expression. There
	// are none if the expression cannot be taken apart.
	Parts []SelectorPart `json:"parts,omitempty"`
}

// SelectorOutcomes counts devices by the outcome of an expression.
type SelectorOutcomes struct {
	// True, False and Fails count the devices for which the expression is true, is false,
	// or ends with an error.
	True  int `json:"true"`
	False int `json:"false"`
	Fails int `json:"fails"`
	// NotEvaluated counts the devices for which it was not evaluated to its end, mostly
	// because something before it had decided.
	NotEvaluated int `json:"notEvaluated"`
}

// SelectorPart is a part of an expression.
type SelectorPart struct {
	// Expression is the part, in CEL.
	Expression string `json:"expression"`
	// Requirement is the requirement in a few words; empty if the expression says it best.
	Requirement string           `json:"requirement,omitempty"`
	Outcomes    SelectorOutcomes `json:"outcomes"`
	// Values are the values of the part, at most ten, the most frequent first. MoreValues
	// counts the others. A part with operands has none: they have them.
	Values     []SelectorValue `json:"values,omitempty"`
	MoreValues int             `json:"moreValues,omitempty"`
	// Operands are its own parts, if a logical operator makes it.
	Operands []SelectorPart `json:"operands,omitempty"`
}

// SelectorValue is a set of values that a part of an expression was evaluated with.
type SelectorValue struct {
	// Found has the values: "model is \"A100\"".
	Found string `json:"found"`
	// Outcome is True, False or Fails.
	Outcome string `json:"outcome"`
	// Count is the number of devices.
	Count int `json:"count"`
}

// Outcomes of a part of an expression.
const (
	OutcomeTrue  = "True"
	OutcomeFalse = "False"
	OutcomeFails = "Fails"
)

// Rejection is a set of devices that the same check rejects.
type Rejection struct {
	Code Code `json:"code"`
	// Count is the number of rejected devices.
	Count int `json:"count"`
	// Label names the check in a word or two: "allocated", "selector 1".
	Label string `json:"label"`
	// Message is the reason in one sentence.
	Message string `json:"message"`
	// Hint is the part of the message that suggests another value or attribute, if no
	// device has the required one.
	Hint string `json:"hint,omitempty"`
	// HintDriver names the driver of which no device is, if the hint says so.
	HintDriver string `json:"hintDriver,omitempty"`
	// Evidence proves it.
	Evidence []Evidence `json:"evidence,omitempty"`
	// Where sums up the nodes or pools: "20 nodes", "node-17".
	Where string `json:"where,omitempty"`
	// Devices lists them as driver/pool/device.
	Devices []string `json:"devices,omitempty"`
	// Holders sums up the claims that the devices are allocated to.
	Holders *Holders `json:"holders,omitempty"`
}

// Holders sums up the claims that the devices of a [Rejection] are allocated to.
type Holders struct {
	// Claims counts them; Claim is set if there is only one.
	Claims int       `json:"claims"`
	Claim  ObjectRef `json:"claim,omitzero"`
	// Namespaces has the namespaces of the claims, the one with the most devices first.
	Namespaces []NamespaceCount `json:"namespaces,omitempty"`
}

// NamespaceCount is a number of devices by namespace.
type NamespaceCount struct {
	Namespace string `json:"namespace"`
	// Devices counts them.
	Devices int `json:"devices"`
}

// DeviceExplanation describes one device that was asked about, and its checks for each
// request.
type DeviceExplanation struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Name   string `json:"name"`
	// Outcome is the best outcome over all requests, empty if none waits for devices.
	Outcome DeviceOutcome `json:"outcome,omitempty"`
	// Summary is one sentence: the reason for the outcome.
	Summary string `json:"summary"`
	// Slice is the ResourceSlice that publishes it, Generation the generation of the slice.
	Slice      string `json:"slice"`
	Generation int64  `json:"generation"`
	// Nodes says where it can be used: "node-23", "any node" or a selector;
	// NodeCount counts the nodes that can reach it.
	Nodes     string `json:"nodes"`
	NodeCount int    `json:"nodeCount"`
	// Shared is true if several claims can have shares of it.
	Shared bool `json:"shared,omitempty"`
	// Attributes are in the order of their names.
	Attributes []DeviceValue    `json:"attributes,omitempty"`
	Capacity   []DeviceCapacity `json:"capacity,omitempty"`
	// Counters are the counters that it takes of its pool.
	Counters []DeviceCounter `json:"counters,omitempty"`
	Taints   []TaintEvidence `json:"taints,omitempty"`
	// BindingConditions must become true after the allocation;
	// BindingFailureConditions end it.
	BindingConditions        []string `json:"bindingConditions,omitempty"`
	BindingFailureConditions []string `json:"bindingFailureConditions,omitempty"`
	// Holders are the claims that have the device, or a share of it.
	Holders []DeviceHolder `json:"holders,omitempty"`
	// HoldersUnknown says why the list of holders may be incomplete.
	HoldersUnknown string `json:"holdersUnknown,omitempty"`
	// Health is from the kubelet, in the status of pods that have it.
	Health []DeviceHealth `json:"health,omitempty"`
	// Requests has each request, and each alternative, that waits for devices.
	Requests []DeviceRequest `json:"requests,omitempty"`
}

// DeviceValue is an attribute, its value as a CEL literal.
type DeviceValue struct {
	// Name has no domain if it is the driver's.
	Name  string `json:"name"`
	Value string `json:"value"`
}

// DeviceCapacity is a capacity of a device. Consumed and Available are set if the
// device is shared.
type DeviceCapacity struct {
	Name string `json:"name"`
	// Total, Consumed and Available are quantities: "80Gi".
	Total     string `json:"total"`
	Consumed  string `json:"consumed,omitempty"`
	Available string `json:"available,omitempty"`
}

// DeviceCounter is a shared counter that a device takes from.
type DeviceCounter struct {
	// CounterSet and Counter are the names of both in the pool.
	CounterSet string `json:"counterSet"`
	Counter    string `json:"counter"`
	// Consumes is the part of Total that the device consumes once it is in use.
	Consumes string `json:"consumes"`
	Total    string `json:"total,omitempty"`
	// Available is the part that other devices do not consume.
	Available string `json:"available,omitempty"`
	// UsedBy are the devices of the pool that are in use and consume some of it.
	UsedBy []string `json:"usedBy,omitempty"`
	// CompatibilityGroups are the groups of the device on this counter set.
	CompatibilityGroups []string `json:"compatibilityGroups,omitempty"`
}

// TaintEvidence is a taint and its source: the slice or a DeviceTaintRule.
type TaintEvidence struct {
	// Taint is KEY[=VALUE]:EFFECT.
	Taint string `json:"taint"`
	// Since is when it was added, if that is known.
	Since    *metav1.Time `json:"since,omitempty"`
	Evidence Evidence     `json:"evidence"`
}

// DeviceHolder is a claim that has a device.
type DeviceHolder struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Request   string `json:"request"`
	// ShareID and ConsumedCapacity are set for a share.
	ShareID          string            `json:"shareID,omitempty"`
	ConsumedCapacity map[string]string `json:"consumedCapacity,omitempty"`
	AdminAccess      bool              `json:"adminAccess,omitempty"`
	// Since is the time of the allocation, if the server recorded it.
	Since *metav1.Time `json:"since,omitempty"`
	// ReservedFor lists the consumers: pods, or a PodGroup.
	ReservedFor []ObjectRef `json:"reservedFor,omitempty"`
	// Conditions are from the driver: "Ready=True".
	Conditions []string `json:"conditions,omitempty"`
}

// DeviceHealth is the health of a device in the status of a pod.
type DeviceHealth struct {
	// Pod is the pod with the status.
	Pod ObjectRef `json:"pod"`
	// Health is Healthy, Unhealthy or Unknown.
	Health  string `json:"health"`
	Message string `json:"message,omitempty"`
}

// DeviceRequest has the checks of a device for one request.
type DeviceRequest struct {
	// Claim is the claim of the request or, before that exists, the template of the claim;
	// it is left out before the claim for extended resources exists.
	Claim ObjectRef `json:"claim,omitzero"`
	// PodClaim is the entry in the pod's spec.resourceClaims.
	PodClaim string `json:"podClaim,omitempty"`
	Name     string `json:"name"`
	// ExtendedResource is the resource that the container asks for by this request, in the
	// claim for extended resources.
	ExtendedResource string `json:"extendedResource,omitempty"`
	// Container is the container that asks for it.
	Container string `json:"container,omitempty"`
	// DeviceClass is the class of the request.
	DeviceClass string `json:"deviceClass"`
	// Node is the node for which the checks are made, empty if none can reach the device.
	Node    string        `json:"node,omitempty"`
	Outcome DeviceOutcome `json:"outcome"`
	// Message says why it is rejected, or why it is not picked.
	Message string `json:"message,omitempty"`
	// Checks are in the allocator's order, starting with the checks of the class.
	Checks []DeviceCheck `json:"checks"`
}

// DeviceOutcome is the outcome of a device for a request.
type DeviceOutcome string

const (
	// Rejected means that a check rejects the device.
	Rejected DeviceOutcome = "Rejected"
	// Eligible means that the device passes every check alone, and is not picked.
	Eligible DeviceOutcome = "Eligible"
	// Picked means that the allocator would give the device to the request.
	Picked DeviceOutcome = "Picked"
)

// DeviceCheck is one check of a device for a request, made for itself: the first failing
// check rejects the device, later ones would.
type DeviceCheck struct {
	// Check is its stable name: Class, Node, Reach, Slice, Pool,
	// BindingConditions, Selector, Capacity, InUse, CapacityLeft,
	// NodeOperations, Partition, Taint or Constraint.
	Check string `json:"check"`
	// Label names it in a word or two.
	Label   string       `json:"label"`
	Outcome CheckOutcome `json:"outcome"`
	// Code, Message and Evidence are set if it fails. Message also says why it
	// is not made.
	Code     Code       `json:"code,omitempty"`
	Message  string     `json:"message,omitempty"`
	Evidence []Evidence `json:"evidence,omitempty"`
}

// CheckOutcome is the result of a check.
type CheckOutcome string

// Outcomes of checks. NotEvaluated means that an earlier check failed, or that the facts
// could not be read.
const (
	CheckPassed       CheckOutcome = "Passed"
	CheckFailed       CheckOutcome = "Failed"
	CheckNotEvaluated CheckOutcome = "NotEvaluated"
)

// ComputeDomain is a set of nodes whose GPUs share memory over NVLink, named by the
// configuration of a claim for the driver compute-domain.nvidia.com. A pod with such a
// claim starts once the driver has its node ready in the domain.
type ComputeDomain struct {
	// ID is the domainID of the configuration: the UID of the ComputeDomain. It is empty
	// if the configuration is wrong.
	ID string `json:"id,omitempty"`
	// Namespace and Name identify the ComputeDomain; empty if there is none of that UID, or
	// if that is not known.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Status is from the driver: Ready or NotReady; empty if it says nothing.
	Status string `json:"status,omitempty"`
	// NumNodes is the number of nodes that the domain needs to be ready, zero for any.
	NumNodes int `json:"numNodes,omitempty"`
	// JoinedNodes counts the nodes that have joined, ReadyNodes the ready ones among them.
	JoinedNodes int `json:"joinedNodes"`
	ReadyNodes  int `json:"readyNodes"`
	// Nodes are the nodes that have joined, and the nodes that the driver has called to
	// join. Lists leave them out.
	Nodes []ComputeDomainNode `json:"nodes,omitempty"`
	// Problem says why the driver cannot prepare the claim for the domain whatever its
	// nodes do: the configuration is wrong, or there is no such ComputeDomain.
	Problem string `json:"problem,omitempty"`
	// Unknown says which facts could not be read, and why.
	Unknown string `json:"unknown,omitempty"`
}

// ComputeDomainNode is a node of a ComputeDomain.
type ComputeDomainNode struct {
	Name string `json:"name"`
	// Clique is the part of the NVLink fabric that its GPUs are in. A node without one
	// shares no memory with others.
	Clique string `json:"clique,omitempty"`
	// Status is from the driver: Ready or NotReady; empty for a node that has not joined.
	Status string `json:"status,omitempty"`
	// Daemon is the pod that the driver runs on the node for the domain.
	Daemon ObjectRef `json:"daemon,omitzero"`
	// Lacks says why the node is not ready, as far as is known.
	Lacks string `json:"lacks,omitempty"`
}
