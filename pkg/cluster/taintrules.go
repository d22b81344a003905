// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// patchedSlices returns the snapshot's slices with the taints of the
// DeviceTaintRules added to the devices that they select, as
// k8s.io/dynamic-resource-allocation/resourceslice/tracker does. Slices that a
// rule changes are copies. Where several rules apply to a device, their taints
// come in the order of the rules' names; for the tracker that order is random.
func patchedSlices(snap *snapshot.Snapshot, rulesEnabled, open bool) []*resourceapi.ResourceSlice {
	patched := slices.Clone(snap.Slices)
	slices.SortStableFunc(patched, func(a, b *resourceapi.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	if !rulesEnabled || len(snap.TaintRules) == 0 {
		return patched
	}
	for i, slice := range patched {
		for _, rule := range snap.TaintRules {
			for d := range slice.Spec.Devices {
				if !ruleTaints(rule, DeviceID{slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[d].Name}, open) {
					continue
				}
				if patched[i] == slice {
					patched[i] = slice.DeepCopy()
				}
				device := &patched[i].Spec.Devices[d]
				device.Taints = append(device.Taints, rule.Spec.Taint)
			}
		}
	}
	return patched
}

// ruleTaints reports whether a rule taints a device for the scheduler. With open, a rule
// without a selector taints all devices ([OpenRuleTaintsAll]).
func ruleTaints(rule *resourceapi.DeviceTaintRule, id DeviceID, open bool) bool {
	return ruleSelects(rule, id) || open && rule.Spec.DeviceSelector == nil
}

// ruleSelects reports whether a rule selects a device, for the controller that evicts. One
// without a selector selects nothing.
func ruleSelects(rule *resourceapi.DeviceTaintRule, id DeviceID) bool {
	selector := rule.Spec.DeviceSelector
	return selector != nil &&
		ptr.Deref(selector.Driver, id.Driver) == id.Driver &&
		ptr.Deref(selector.Pool, id.Pool) == id.Pool &&
		ptr.Deref(selector.Device, id.Device) == id.Device
}
