// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Claim is a ResourceClaim with its requests and devices.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Claim struct {
	metav1.TypeMeta `json:",inline"`

	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	State     ClaimState `json:"state"`
	// Flags are its unexpected properties.
	Flags []ClaimFlag `json:"flags,omitempty"`
	// Requests are in the order of the claim, each with the devices it got.
	Requests []ClaimRequest `json:"requests"`
	// Node is the node where the devices can be used, empty if that is not one
	// node or there are none; Scope says it in words.
	Node  string `json:"node,omitempty"`
	Scope string `json:"scope,omitempty"`
	// Alignment compares its devices by attributes that say where hardware is, and by those that
	// its constraints name.
	Alignment []Alignment `json:"alignment,omitempty"`
	// Pods are the pods that name the claim, at most ten; PodCount counts all. ReservedFor
	// tells which of them may use it.
	Pods     []string `json:"pods,omitempty"`
	PodCount int      `json:"podCount"`
	// ReservedFor lists the consumers: pods, or a PodGroup.
	ReservedFor []ObjectRef `json:"reservedFor,omitempty"`
	// Template is the template that it was generated from, as far as the pod tells.
	Template string `json:"template,omitempty"`
	// ComputeDomains are the domains that its configuration names, without their nodes:
	// one, as a rule.
	ComputeDomains []ComputeDomain `json:"computeDomains,omitempty"`
	// Stage is the first unfinished stage of the pods that use it, of several pods the
	// least advanced, as far as claims and pods tell; "why" knows more. It is empty if no
	// pod uses the claim.
	Stage string `json:"stage,omitempty"`
	// Code and Reason say why it is pending, and Outlook the condition under which it fits,
	// as in "why"; they are only set on request.
	Code    string    `json:"code,omitempty"`
	Outlook Condition `json:"outlook,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	// AllocatedAt is the time of the allocation, if the server recorded it.
	AllocatedAt *metav1.Time `json:"allocatedAt,omitempty"`
	// Created is the creation time of the claim, AgeSeconds the time from then until the
	// snapshot was taken.
	Created    *metav1.Time      `json:"created,omitempty"`
	AgeSeconds int64             `json:"ageSeconds,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// Alignment says whether allocated devices have an attribute in common.
type Alignment struct {
	// Attribute is its name with the domain.
	Attribute string `json:"attribute"`
	// Aligned is true if all devices have the same value, or the same element of lists.
	Aligned bool `json:"aligned"`
	// Required is true if all devices are of one claim that has a constraint for that.
	Required bool `json:"required,omitempty"`
	// Values are the different values, the most frequent first.
	Values []AlignedValue `json:"values"`
	// Without counts the devices that do not have the attribute, or are not published any more.
	Without int `json:"without,omitempty"`
}

// AlignedValue is a value of an attribute of allocated devices.
type AlignedValue struct {
	Value string `json:"value"`
	// Devices counts the devices with it.
	Devices int `json:"devices"`
}

// ClaimState is the progress of a claim.
type ClaimState string

// States of a claim.
const (
	// ClaimStatePending means that the claim has no devices.
	ClaimStatePending ClaimState = "Pending"
	// ClaimStateAllocated means that the claim has devices, but nobody may use them yet.
	ClaimStateAllocated ClaimState = "Allocated"
	// ClaimStateReserved means that the claim has devices and consumers.
	ClaimStateReserved ClaimState = "Reserved"
	// ClaimStateDeleting means that the claim is being deleted.
	ClaimStateDeleting ClaimState = "Deleting"
)

// ClaimFlag is an unexpected property of a claim.
type ClaimFlag struct {
	Name FlagName `json:"name"`
	// Message describes it in one sentence.
	Message string `json:"message"`
}

// FlagName is stable: names are added, never renamed.
type FlagName string

const (
	// FlagUnreserved means that the claim has devices and is reserved for nobody.
	FlagUnreserved FlagName = "Unreserved"
	// FlagWaitingForPod means that the claim has no devices and no pod uses it.
	FlagWaitingForPod FlagName = "WaitingForPod"
	// FlagOrphaned means that the claim was made for a pod that does not exist any more.
	FlagOrphaned FlagName = "Orphaned"
	// FlagHeld means that the claim is being deleted and somebody keeps it.
	FlagHeld FlagName = "Held"
	// FlagStaleReservation means that the claim is reserved for a pod that is finished,
	// deleted or another one of the same name.
	FlagStaleReservation FlagName = "StaleReservation"
	// FlagDeviceTwice means that a device is allocated once more, although one of its
	// holders has it for itself, or that its shares exceed its capacity.
	FlagDeviceTwice FlagName = "DeviceTwice"
	// FlagDeviceGone means that a device is missing in the newest generation of its pool,
	// or in all slices.
	FlagDeviceGone FlagName = "DeviceGone"
	// FlagBinding means that the pod is not bound before a driver sets a binding condition.
	FlagBinding FlagName = "Binding"
	// FlagBindingFailed means that a driver reports a failure of the binding.
	FlagBindingFailed FlagName = "BindingFailed"
	// FlagDeviceCondition means that a device has an unexpected condition: Ready=False, for
	// instance.
	FlagDeviceCondition FlagName = "DeviceCondition"
	// FlagUnused means that no container of a pod names the claim, or that a container
	// names a request that does not exist: the pod runs without the devices.
	FlagUnused FlagName = "Unused"
	// FlagDeviceUnhealthy means that a kubelet reports a device as unhealthy.
	FlagDeviceUnhealthy FlagName = "DeviceUnhealthy"
)

// ClaimRequest is one request of a claim.
type ClaimRequest struct {
	Name string `json:"name"`
	// ExtendedResource is the resource that the container asks for by this request, in the
	// claim for the extended resources of a pod.
	ExtendedResource string `json:"extendedResource,omitempty"`
	// Container is the container that asks for it.
	Container string `json:"container,omitempty"`
	// DeviceClass is the class of the request; with alternatives, DeviceClasses has the
	// classes of all, in order.
	DeviceClass   string   `json:"deviceClass,omitempty"`
	DeviceClasses []string `json:"deviceClasses,omitempty"`
	// Mode is ExactCount or All, Count the number for the former.
	Mode        string `json:"mode,omitempty"`
	Count       int64  `json:"count,omitempty"`
	AdminAccess bool   `json:"adminAccess,omitempty"`
	// Devices are the allocated devices.
	Devices []ClaimDevice `json:"devices,omitempty"`
}

// ClaimDevice is a device that a claim has.
type ClaimDevice struct {
	// Request is "request/subrequest" if an alternative was taken.
	Request string `json:"request"`
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Device  string `json:"device"`
	ShareID string `json:"shareID,omitempty"`
	// ConsumedCapacity is the consumption of the share, by capacity.
	ConsumedCapacity map[string]string `json:"consumedCapacity,omitempty"`
	// Missing is true if the newest generation of its pool does not have the
	// device any more.
	Missing bool `json:"missing,omitempty"`
	// Status is the driver's status of the device.
	Status *DeviceStatus `json:"status,omitempty"`
}

// AttributeSource is the part of a device that publishes a value.
type AttributeSource string

// Sources of attributes.
const (
	SourceAttributes AttributeSource = "attributes"
	SourceCapacity   AttributeSource = "capacity"
)

// Attribute is an attribute or a capacity that devices publish, by its qualified
// name, and its values on all of them.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Attribute struct {
	metav1.TypeMeta `json:",inline"`

	// Name is DOMAIN/NAME. A name without a domain in a ResourceSlice belongs to
	// the domain of the driver.
	Name string `json:"name"`
	// Source is attributes or capacity, as in device.attributes and device.capacity.
	Source AttributeSource `json:"source"`
	// Types are the types of its values: string, int, bool, version, list, quantity. More
	// than one is unusual: a comparison is false, or fails, for values of another type.
	Types []string `json:"types"`
	// Devices counts the devices that publish it, TotalDevices all that were looked at.
	Devices      int `json:"devices"`
	TotalDevices int `json:"totalDevices"`
	// Drivers are the drivers of the devices that publish it.
	Drivers []string `json:"drivers"`
	// Values are the most frequent values, at most 100. MoreValues counts the other values,
	// DevicesWithMoreValues the devices with them.
	Values                []AttributeValue `json:"values"`
	MoreValues            int              `json:"moreValues,omitempty"`
	DevicesWithMoreValues int              `json:"devicesWithMoreValues,omitempty"`
	// Expression is a selector for its most frequent value that can be copied into a
	// request: it was evaluated for all the devices, is true for Matches of them and fails
	// for none. It is empty if there is no such expression.
	Expression string `json:"expression,omitempty"`
	Matches    int    `json:"matches,omitempty"`
}

// AttributeValue is a value of an attribute or a capacity.
type AttributeValue struct {
	// Value is the value as written in an expression: strings have quotation marks.
	Value string `json:"value"`
	// Type is one of the types of the attribute.
	Type string `json:"type"`
	// Devices counts the devices that have it.
	Devices int `json:"devices"`
}
