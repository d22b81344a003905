// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// Eviction is a taint with the effect NoExecute on an allocated device that the
// claim does not tolerate for ever.
type Eviction struct {
	Claim *resourceapi.ResourceClaim
	// Result is the index of the one in the claim's allocation that is about
	// the device.
	Result int
	Device DeviceID
	Taint  resourceapi.DeviceTaint
	// Rule is where the taint comes from, nil if that is the device's slice.
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
// sets, evicts nobody. The rules are those of kube-controller-manager's
// device-taint-eviction-controller (claimEvictionTime).
func (a *Allocator) ClaimEvictions(claim *resourceapi.ResourceClaim) []Eviction {
	if claim.Status.Allocation == nil || !a.FeatureEnabled(gateDeviceTaints) {
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
		if device := a.Device(id); device != nil {
			for _, taint := range device.Taints {
				if a.TaintRule(device, taint) == nil {
					add(taint, nil)
				}
			}
		}
		if !a.taintRulesEnabled() {
			continue
		}
		// Rules evict from devices, too, that no slice has any more.
		for _, rule := range a.snap.TaintRules {
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
// claim that is not its own or not reserved for it, or of the one for its
// extended resources. One that has finished is, until its claims are released
// (podEvictionTime of the same controller).
func (a *Allocator) PodEvictions(pod *corev1.Pod) []Eviction {
	if pod.Spec.NodeName == "" {
		return nil
	}
	var evictions []Eviction
	for i := range pod.Spec.ResourceClaims {
		name, generated, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		claim := a.snap.Claim(pod.Namespace, *name)
		if claim == nil || !a.Reserved(claim, pod) || generated && resourceclaim.IsForPod(pod, claim, a.groupsUseClaims()) != nil {
			continue
		}
		evictions = append(evictions, a.ClaimEvictions(claim)...)
	}
	slices.SortStableFunc(evictions, func(a, b Eviction) int { return a.At.Compare(b.At) })
	return evictions
}
