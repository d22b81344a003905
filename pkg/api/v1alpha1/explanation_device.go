// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
