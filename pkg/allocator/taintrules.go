// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

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
func patchedSlices(snap *snapshot.Snapshot, rulesEnabled bool) []*resourceapi.ResourceSlice {
	patched := slices.Clone(snap.Slices)
	slices.SortStableFunc(patched, func(a, b *resourceapi.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	if !rulesEnabled || len(snap.TaintRules) == 0 {
		return patched
	}
	for i, slice := range patched {
		for _, rule := range snap.TaintRules {
			for d := range slice.Spec.Devices {
				if !ruleSelects(rule, DeviceID{slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[d].Name}) {
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

// ruleSelects reports whether a rule is about a device. One without a selector
// selects nothing.
func ruleSelects(rule *resourceapi.DeviceTaintRule, id DeviceID) bool {
	selector := rule.Spec.DeviceSelector
	return selector != nil &&
		ptr.Deref(selector.Driver, id.Driver) == id.Driver &&
		ptr.Deref(selector.Pool, id.Pool) == id.Pool &&
		ptr.Deref(selector.Device, id.Device) == id.Device
}

// TaintRule returns the DeviceTaintRule that a taint of a device comes from,
// or nil if it comes from the device's slice. A slice can have the taint of a
// rule, too; then they differ in when it was added.
func (a *Allocator) TaintRule(d *Device, taint resourceapi.DeviceTaint) *resourceapi.DeviceTaintRule {
	if !a.taintRulesEnabled() {
		return nil
	}
	for _, rule := range a.snap.TaintRules {
		t := rule.Spec.Taint
		if t.Key == taint.Key && t.Value == taint.Value && t.Effect == taint.Effect && t.TimeAdded.Equal(taint.TimeAdded) && ruleSelects(rule, d.ID) {
			return rule
		}
	}
	return nil
}

// Tainted lists the devices that a DeviceTaintRule selects: those of the newest
// generation of all pools, and those that claims have although no slice has
// them any more.
func (a *Allocator) Tainted(rule *resourceapi.DeviceTaintRule) []DeviceID {
	var ids []DeviceID
	for i := range a.devices().list {
		if id := a.devices().list[i].ID; ruleSelects(rule, id) {
			ids = append(ids, id)
		}
	}
	for id := range a.state.holders {
		if ruleSelects(rule, id) && a.Device(id) == nil {
			ids = append(ids, id)
		}
	}
	slices.SortStableFunc(ids, func(a, b DeviceID) int { return strings.Compare(a.String(), b.String()) })
	return ids
}
