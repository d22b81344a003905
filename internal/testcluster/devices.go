// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// Shareable lets a device be allocated several times.
func Shareable(d *resourceapi.Device) { d.AllowMultipleAllocations = ptr.To(true) }

// WithCapacity gives a device a capacity.
func WithCapacity(name, value string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		if d.Capacity == nil {
			d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}
		}
		d.Capacity[resourceapi.QualifiedName(name)] = resourceapi.DeviceCapacity{Value: resource.MustParse(value)}
	}
}

// WithAttribute gives a device a string attribute.
func WithAttribute(name, value string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		if d.Attributes == nil {
			d.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
		}
		d.Attributes[resourceapi.QualifiedName(name)] = resourceapi.DeviceAttribute{StringValue: &value}
	}
}
