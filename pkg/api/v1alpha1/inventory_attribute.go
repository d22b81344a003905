// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
