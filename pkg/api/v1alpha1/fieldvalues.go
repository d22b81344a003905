// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// FieldValues are the values of those [Slice.Fields] that have a fixed set.
func (in *Slice) FieldValues() map[string][]string {
	return map[string][]string{"state": texts(SliceStateCurrent, SliceStateEmpty, SliceStateObsolete, SliceStateIncomplete, SliceStateInvalid, SliceStateNodeGone, SliceStateNodeNotReady)}
}

// FieldValues are the values of those [Pool.Fields] that have a fixed set.
func (in *Pool) FieldValues() map[string][]string {
	return map[string][]string{"state": texts(PoolStateUsable, PoolStateEmpty, PoolStateIncomplete, PoolStateInvalid, PoolStateNodeGone, PoolStateUnusable)}
}

// FieldValues are the values of those [Device.Fields] that have a fixed set. A
// device of which nobody says how it is has an empty health.
func (in *Device) FieldValues() map[string][]string {
	return map[string][]string{
		"state":     texts(DeviceStateFree, DeviceStateAllocated, DeviceStateShared, DeviceStateBlocked, DeviceStateTainted, DeviceStateUnusable, DeviceStateUnpublished),
		"uncertain": {"true", "false"},
		"health":    texts(corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy, corev1.ResourceHealthStatusUnknown, ""),
	}
}

// FieldValues are the values of those [Claim.Fields] that have a fixed set.
func (in *Claim) FieldValues() map[string][]string {
	return map[string][]string{"state": texts(ClaimStatePending, ClaimStateAllocated, ClaimStateReserved, ClaimStateDeleting)}
}

// FieldValues are the values of those [Taint.Fields] that have a fixed set.
func (in *Taint) FieldValues() map[string][]string {
	return map[string][]string{"effect": texts(resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute, resourceapi.DeviceTaintEffectNone)}
}

// FieldValues are none: no field of a class has a fixed set.
func (in *Class) FieldValues() map[string][]string { return nil }

func texts[T ~string](values ...T) []string {
	list := make([]string, 0, len(values))
	for _, value := range values {
		list = append(list, string(value))
	}
	return list
}
