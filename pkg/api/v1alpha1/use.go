// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UseExplanation is the answer to "why" about a device or a node: who uses the
// devices, or why nobody does.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type UseExplanation struct {
	metav1.TypeMeta `json:",inline"`

	// Target is the object that was asked about. Its kind is Device, with a name of the
	// form driver/pool/device, or Node.
	Target ObjectRef `json:"target"`
	// Summary is one sentence: the state of the device, or how many devices of the node are
	// in which state.
	Summary string `json:"summary"`
	// Undetermined says why the state of some device is not known; empty if all are known.
	Undetermined string `json:"undetermined,omitempty"`
	// Node is set for a question about a node.
	Node *NodeUse `json:"node,omitempty"`
	// WaitingPods counts the pods that wait for devices, of all namespaces that
	// could be read.
	WaitingPods int `json:"waitingPods"`
	// NotExplained counts the waiting pods and claims that are not among the requests of
	// the devices; absent if all of them are.
	NotExplained *NotExplained `json:"notExplained,omitempty"`
	// States counts the devices by state: all devices of a node, or the only one.
	States []DeviceUseCount `json:"states"`
	// Devices has each device once. Equal devices of a node with the same answer
	// are one item.
	Devices []DeviceUse `json:"devices"`
	// Allocator describes the allocator that answered.
	Allocator AllocatorInfo `json:"allocator"`
	// Assumptions lists, a sentence each, facts that were assumed and not verified.
	Assumptions []string `json:"assumptions,omitempty"`
}

// UseExplanationList is printed when several devices or nodes were asked for.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type UseExplanationList struct {
	metav1.TypeMeta `json:",inline"`

	// Items has one explanation for each target, in the order asked.
	Items []UseExplanation `json:"items"`
}

// NotExplained counts the waiting pods and claims that were not compared with the devices:
// there are more kinds of equal pods, or more claims that no pod uses, than are explained.
// Pods whose class selects one of the devices are explained first.
type NotExplained struct {
	// Kinds counts the kinds of equal pods.
	Kinds int `json:"kinds"`
	// Pods counts the pods of these kinds.
	Pods int `json:"pods"`
	// SelectingKinds counts the kinds with a class that selects one of the devices. If
	// there are any, the state of a device that is neither in use nor next is
	// Undetermined.
	SelectingKinds int `json:"selectingKinds"`
	// Claims counts the claims that no pod uses.
	Claims int `json:"claims"`
}

// NodeUse lists conditions that keep pods away from a node, whatever devices it has.
type NodeUse struct {
	Name string `json:"name"`
	// Blocks keep a pod away that tolerates nothing and needs neither CPU nor memory.
	Blocks []NodeMisfit `json:"blocks,omitempty"`
	// Misfits keep pods away that wait for devices.
	Misfits []WaitingMisfit `json:"misfits,omitempty"`
}

// WaitingMisfit is a condition that keeps waiting pods away from a node.
type WaitingMisfit struct {
	NodeMisfit `json:",inline"`

	// Pods are the first pods of each kind of equal pods; PodCount counts all pods.
	Pods     []ObjectRef `json:"pods"`
	PodCount int         `json:"podCount"`
}

// DeviceUseCount is the number of devices in a state.
type DeviceUseCount struct {
	// State is the state of the devices.
	State DeviceUseState `json:"state"`
	// Count is the number of devices.
	Count int `json:"count"`
}

// DeviceUseState reports whether a device is used, or why it is not.
type DeviceUseState string

const (
	// DeviceInUse means that claims have the device.
	DeviceInUse DeviceUseState = "InUse"
	// DeviceNext means that the allocator picks the device for a waiting pod.
	DeviceNext DeviceUseState = "Next"
	// DeviceBlocked means that a request without selectors and tolerations does not get the
	// device, and no waiting request gets past that.
	DeviceBlocked DeviceUseState = "Blocked"
	// DeviceRequested means that waiting requests with a class that selects the device do
	// not get it.
	DeviceRequested DeviceUseState = "Requested"
	// DeviceNotRequested means that the class of no waiting request selects the device.
	DeviceNotRequested DeviceUseState = "NotRequested"
	// DeviceUndetermined means that the device may be in use, or be requested: claims or
	// pods could not be read.
	DeviceUndetermined DeviceUseState = "Undetermined"
)

// DeviceUse is a device, or several equal ones, with the reason for its state.
type DeviceUse struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	// Names are the names of the devices in the pool, in the allocator's order.
	Names []string       `json:"names"`
	State DeviceUseState `json:"state"`
	// Summary is one clause: the reason for the state.
	Summary string `json:"summary"`
	// Nodes says where it can be used: "node-23", "any node" or a selector.
	Nodes string `json:"nodes"`
	// Holders are the claims that have the device, or a share of it.
	Holders []DeviceHolder `json:"holders,omitempty"`
	// Blocks are the checks that fail for a request without selectors and tolerations, of a
	// pod that tolerates nothing, and so for every request. The evidence is from the first
	// device.
	Blocks []DeviceCheck `json:"blocks,omitempty"`
	// BindingConditions must become true after the allocation, before a pod that
	// gets it is bound.
	BindingConditions []string `json:"bindingConditions,omitempty"`
	// Classes are the DeviceClasses that select it.
	Classes []string `json:"classes,omitempty"`
	// Requests are the requests that wait for devices, in the order of the queue. It is
	// empty for a device that is in use and cannot be shared.
	Requests []RequestUse `json:"requests,omitempty"`
}

// RequestUse is a request that waits for devices, and why it does not get the
// device. Requests of equal pods are one.
type RequestUse struct {
	// Pod is the first pod, PodCount counts all equal ones. Both are empty for a claim that
	// no pod uses: the scheduler does not look at it.
	Pod      ObjectRef `json:"pod,omitzero"`
	PodCount int       `json:"podCount,omitempty"`
	// Claim and PodClaim are from the first pod, as in [DeviceRequest].
	Claim    ObjectRef `json:"claim,omitzero"`
	PodClaim string    `json:"podClaim,omitempty"`
	Name     string    `json:"name"`
	// ExtendedResource is the resource that the container asks for by this request, in the
	// claim for extended resources.
	ExtendedResource string `json:"extendedResource,omitempty"`
	// Container is the container that asks for it.
	Container string `json:"container,omitempty"`
	// DeviceClass is the class of the request.
	DeviceClass string `json:"deviceClass"`
	// Node is the node for which the checks are made, empty if none can reach the device.
	Node string `json:"node,omitempty"`
	// Outcome is Rejected if a check fails, Eligible if the device passes each of
	// them and goes to nobody or to another request, Picked if the pod is next.
	Outcome DeviceOutcome `json:"outcome"`
	// Verdict is the pod's verdict: on the node if the device is for one node, else on all
	// nodes.
	Verdict Verdict `json:"verdict"`
	// Code is the code of the first check that fails.
	Code Code `json:"code,omitempty"`
	// Message says why it does not get the device, or that it is next.
	Message string `json:"message"`
	// FalseParts counts the parts of selectors that are false for the device: the fewer,
	// the closer the request.
	FalseParts int `json:"falseParts,omitempty"`
	// Failed are the checks that fail, in the allocator's order.
	Failed []DeviceCheck `json:"failed,omitempty"`
}
