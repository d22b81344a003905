// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Taints knows the taints of devices: their sources, and which pods they evict.
type Taints struct {
	snap   *snapshot.Snapshot
	gates  *Gates
	pools  *Pools
	usage  *Usage
	claims *Claims
	// behaves and varies are the functions of the cluster.
	behaves, varies func(Behavior) bool
}

// Rule returns the DeviceTaintRule of a device's taint, or nil if it is from the device's
// slice. A slice can have the taint of a rule, too; then they differ in the time when it
// was added.
func (t *Taints) Rule(d *Device, taint resourceapi.DeviceTaint) *resourceapi.DeviceTaintRule {
	if !t.gates.taintRules {
		return nil
	}
	open := t.gates.openRules
	for _, rule := range t.snap.TaintRules {
		t := rule.Spec.Taint
		if t.Key == taint.Key && t.Value == taint.Value && t.Effect == taint.Effect && t.TimeAdded.Equal(taint.TimeAdded) && ruleTaints(rule, d.ID, open) {
			return rule
		}
	}
	return nil
}

// SelectedBy lists the devices that a DeviceTaintRule taints: the devices of the newest
// generation of all pools, and allocated devices that are in no slice any more.
func (t *Taints) SelectedBy(rule *resourceapi.DeviceTaintRule) []DeviceID {
	var ids []DeviceID
	for i := range t.pools.Devices() {
		if id := t.pools.Devices()[i].ID; ruleTaints(rule, id, t.gates.openRules) {
			ids = append(ids, id)
		}
	}
	for id := range t.usage.devices() {
		if ruleSelects(rule, id) && t.pools.Device(id) == nil {
			ids = append(ids, id)
		}
	}
	slices.SortStableFunc(ids, func(a, b DeviceID) int { return strings.Compare(a.String(), b.String()) })
	return ids
}

// SelectsAll reports whether a rule selects every device, whatever its driver.
func (t *Taints) SelectsAll(rule *resourceapi.DeviceTaintRule) bool {
	return ruleSelects(rule, DeviceID{})
}

// EveryDeviceText says that a rule selects every device.
func EveryDeviceText(rule *resourceapi.DeviceTaintRule) string {
	text := fmt.Sprintf("rule %s taints every device of every driver", rule.Name)
	if rule.Spec.Taint.Effect == resourceapi.DeviceTaintEffectNoExecute {
		text += ", and evicts every pod that has one"
	}
	return text
}

// Eviction is a taint with the effect NoExecute on an allocated device that the claim does
// not tolerate forever.
type Eviction struct {
	Claim *resourceapi.ResourceClaim
	// Result is the index of the device's result in the claim's allocation.
	Result int
	Device DeviceID
	Taint  resourceapi.DeviceTaint
	// Rule is the rule with the taint, nil if it is from the device's slice.
	Rule *resourceapi.DeviceTaintRule
	// Tolerated is how long the claim tolerates the taint; zero if it does not.
	Tolerated time.Duration
	// At is when the pods that use the claim are evicted: when the taint was
	// added, and Tolerated later.
	At time.Time
}

// ClaimEvictions lists the taints for which the pods that use an allocated
// claim get evicted, the earliest first. Only the tolerations in the
// allocation count, and of these only such with the effect NoExecute spelled
// out. A taint without the time at which it was added, which the API server
// sets, evicts nobody. The rules are from kube-controller-manager's
// device-taint-eviction-controller (claimEvictionTime).
func (t *Taints) ClaimEvictions(claim *resourceapi.ResourceClaim) []Eviction {
	if claim.Status.Allocation == nil || !t.gates.Enabled(GateDeviceTaints) {
		return nil
	}
	var evictions []Eviction
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		result := &results[i]
		id := DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
		add := func(taint resourceapi.DeviceTaint, rule *resourceapi.DeviceTaintRule) {
			tolerated, forever := toleratedFor(result.Tolerations, taint)
			if taint.Effect == resourceapi.DeviceTaintEffectNoExecute && !taint.TimeAdded.IsZero() && !forever {
				evictions = append(evictions, Eviction{
					Claim: claim, Result: i, Device: id, Taint: taint, Rule: rule, Tolerated: tolerated, At: taint.TimeAdded.Add(tolerated),
				})
			}
		}
		if device := t.pools.Device(id); device != nil {
			for _, taint := range device.Taints {
				if t.Rule(device, taint) == nil {
					add(taint, nil)
				}
			}
		}
		if !t.gates.taintRules {
			continue
		}
		// Rules evict from devices, too, that no slice has any more.
		for _, rule := range t.snap.TaintRules {
			if ruleSelects(rule, id) {
				add(rule.Spec.Taint, rule)
			}
		}
	}
	slices.SortStableFunc(evictions, func(a, b Eviction) int { return a.At.Compare(b.At) })
	return evictions
}

// toleratedFor tells for how long a taint is tolerated: the shortest time of
// all tolerations that match.
func toleratedFor(tolerations []resourceapi.DeviceToleration, taint resourceapi.DeviceTaint) (limit time.Duration, forever bool) {
	found := false
	for _, t := range tolerations {
		if t.Effect != resourceapi.DeviceTaintEffectNoExecute || !resourceclaim.ToleratesTaint(t, taint) {
			continue
		}
		if t.TolerationSeconds == nil {
			return 0, true
		}
		seconds := time.Duration(max(*t.TolerationSeconds, 0)) * time.Second
		if !found || seconds < limit {
			limit = seconds
		}
		found = true
	}
	return limit, false
}

// PodEvictions lists the taints for which a pod gets evicted, the earliest
// first. A pod that is not scheduled is not evicted, nor is one because of a
// claim that is not its own or not reserved for it, nor, in some releases, of the one
// for its extended resources ([ExtendedNotEvicted]). One that has finished is,
// until its claims are released (podEvictionTime of the same controller).
func (t *Taints) PodEvictions(pod *corev1.Pod) []Eviction {
	if pod.Spec.NodeName == "" {
		return nil
	}
	var evictions []Eviction
	for name, generated := range resourceclaim.PodClaims(pod) {
		if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil && extended.ResourceClaimName == name && t.behaves(ExtendedNotEvicted) {
			continue
		}
		claim := t.snap.Claim(pod.Namespace, name)
		if claim == nil || !t.claims.Reserved(claim, pod) || generated && resourceclaim.IsForPod(pod, claim, t.claims.groupsUseClaims()) != nil {
			continue
		}
		evictions = append(evictions, t.ClaimEvictions(claim)...)
	}
	for i := range evictions {
		// Nobody is evicted before being there.
		if created := pod.CreationTimestamp.Time; evictions[i].At.Before(created) {
			evictions[i].At = created
		}
	}
	slices.SortStableFunc(evictions, func(a, b Eviction) int { return a.At.Compare(b.At) })
	return evictions
}

// TaintsAll reports whether a rule taints every device, whatever its driver, for the scheduler.
func (t *Taints) TaintsAll(rule *resourceapi.DeviceTaintRule) bool {
	return ruleTaints(rule, DeviceID{}, t.gates.openRules)
}

// OpenRuleText describes the effect of a rule without a selector in the cluster's release.
// It is empty for other rules.
func (t *Taints) OpenRuleText(rule *resourceapi.DeviceTaintRule) string {
	const bug = "before 1.37.1 kube-scheduler takes that for all devices, while no pod is evicted (kubernetes/kubernetes#141620)"
	text := "rule " + rule.Name + " has no deviceSelector: "
	switch {
	case rule.Spec.DeviceSelector != nil:
		return ""
	case t.varies(OpenRuleTaintsAll):
		return text + "it selects no device, but " + bug
	case t.gates.openRules:
		return text + bug
	default:
		return text + "it selects no device"
	}
}

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
