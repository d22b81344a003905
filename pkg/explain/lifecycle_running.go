// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// runningFindings tells what is wrong with the devices of a pod that runs.
func (x *inquiry) runningFindings(pod *corev1.Pod, claims []allocator.PodClaim) []finding {
	findings := x.deviceFindings(pod, claims)
	findings = append(findings, x.unhealthy(pod, claims)...)
	findings = append(findings, x.nodeFindings(pod)...)
	findings = append(findings, x.driverEvents(claims, pod)...)
	for _, status := range initializing(pod) {
		var f finding
		f.prove(whatif.PodObject(pod), fmt.Sprintf("status.initContainerStatuses[name=%s].state", status.Name), stateText(&status.State), "")
		findings = append(findings, f)
	}
	if started(pod).IsZero() {
		findings = append(findings, x.waitingContainers(pod, claims)...)
	}
	return findings
}

// deviceFindings tells what is wrong with the devices of a pod that is bound.
func (x *inquiry) deviceFindings(pod *corev1.Pod, claims []allocator.PodClaim) []finding {
	findings := x.evictions(pod)
	for i := range claims {
		claim := claims[i].Claim
		if claim == nil || claims[i].Generated {
			continue
		}
		findings = append(findings, x.holdingFindings(claim)...)
		if claim.DeletionTimestamp != nil {
			findings = append(findings, x.deletingClaim(claim))
		}
	}
	return findings
}

// holdingFindings tells what is wrong with the devices that a claim holds.
func (x *inquiry) holdingFindings(claim *resourceapi.ResourceClaim) []finding {
	if claim.Status.Allocation == nil {
		return nil
	}
	var findings []finding
	add := func(f *finding) {
		if f != nil {
			findings = append(findings, *f)
		}
	}
	add(x.vanished(claim))
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		add(x.doubled(claim, result))
		add(x.notReady(claim, result))
	}
	return findings
}

// vanished is about devices that no slice has any more. Those that their driver
// calls ready are where they should be, see movedHint.
func (x *inquiry) vanished(claim *resourceapi.ResourceClaim) *finding {
	if x.snap.Gap(snapshot.ResourceSlices) != nil {
		return nil
	}
	f := &finding{instead: true}
	var devices, drivers, pools []string
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		result := &results[i]
		if x.site.alloc.Device(deviceID(result)) != nil || allocator.DeviceReady(claim, result) {
			continue
		}
		devices = append(devices, deviceName(result))
		drivers, pools = append(drivers, result.Driver), append(pools, result.Pool)
		f.prove(whatif.ClaimObject(claim), fmt.Sprintf("status.allocation.devices.results[%d]", i), deviceName(result), "a device in a ResourceSlice of driver "+result.Driver)
	}
	if len(devices) == 0 {
		return nil
	}
	f.reason = fmt.Sprintf("device %s of claim %s is no longer in any ResourceSlice", devices[0], claim.Name)
	if len(devices) > 1 {
		f.reason = fmt.Sprintf("%d of the %s of claim %s are no longer in any ResourceSlice: %s", len(devices), english.Count(len(results), "device"), claim.Name, english.Sample(devices, 4))
	}
	slices.Sort(drivers)
	slices.Sort(pools)
	why := ""
	if called := driversOf(claim, resourceapi.SkipNodeOperationNodePrepareResources); slices.ContainsFunc(drivers, func(driver string) bool { return slices.Contains(called, driver) }) {
		why = ": the kubelet deletes the slices of a driver 30s after it disconnects"
	}
	f.step(api.ActorAdmin, "check that driver %s runs and publishes the devices of pool %s%s", english.JoinAnd(slices.Compact(drivers)), english.Sample(slices.Compact(pools), 3), why)
	return f
}

// doubled is about a device that another claim has, too.
func (x *inquiry) doubled(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) *finding {
	if result.ShareID != nil || ptr.Deref(result.AdminAccess, false) {
		return nil
	}
	for _, holder := range x.site.alloc.Holders(deviceID(result)) {
		other := holder.Claim
		if holder.Result.ShareID != nil || ptr.Deref(holder.Result.AdminAccess, false) || other.Namespace == claim.Namespace && other.Name == claim.Name {
			continue
		}
		f := &finding{instead: true, reason: fmt.Sprintf("device %s is allocated twice: to claim %s/%s and to claim %s/%s", deviceName(result), claim.Namespace, claim.Name, other.Namespace, other.Name)}
		for _, each := range []*resourceapi.ResourceClaim{claim, other} {
			f.prove(whatif.ClaimObject(each), "status.allocation.devices.results", deviceName(result), "a device in no other claim")
			f.prove(whatif.ClaimObject(each), "status.reservedFor", reservedForText(each), "")
		}
		f.step(api.ActorUser, "delete and recreate the pod of one of these claims so that it gets a new claim, with another device")
		return f
	}
	return nil
}

// notReady is about a device of which the driver says that it is not ready.
// Conditions of other types mean whatever the driver says they mean.
func (x *inquiry) notReady(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) *finding {
	status := allocator.DeviceStatus(claim, result)
	if status == nil {
		return nil
	}
	c := meta.FindStatusCondition(status.Conditions, "Ready")
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	f := &finding{instead: true, reason: fmt.Sprintf("driver %s reports that device %s of claim %s is not ready: %s", result.Driver, deviceName(result), claim.Name, conditionWords(c))}
	f.prove(whatif.ClaimObject(claim), fmt.Sprintf("status.devices[device=%s].conditions[type=Ready]", result.Device), conditionText(c), "True")
	return f
}

// evictions finds out whether a pod is due to be deleted because of a taint of
// its devices. Of several taints the first one counts.
func (x *inquiry) evictions(pod *corev1.Pod) []finding {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	all := x.site.alloc.PodEvictions(pod)
	if len(all) == 0 {
		return nil
	}
	first := all[0]
	result := &first.Claim.Status.Allocation.Devices.Results[first.Result]
	holder, path := evictor(x.site.alloc, &first)
	now := x.snap.Now()
	f := finding{instead: true}
	cause := fmt.Sprintf("device %s of claim %s has the taint %s (%s)", deviceName(result), first.Claim.Name, first.Taint, holder)
	if tolerated := first.Tolerated; tolerated > 0 {
		cause += fmt.Sprintf(", which is tolerated for only %s", duration.HumanDuration(tolerated))
	} else {
		cause += ", which is not tolerated"
	}
	if first.At.After(now) {
		f.reason = fmt.Sprintf("the pod will be deleted in %s, at %s: %s", duration.HumanDuration(first.At.Sub(now)), first.At.UTC().Format(time.RFC3339), cause)
	} else {
		f.reason = fmt.Sprintf("the pod should have been deleted %s ago: %s", x.elapsed(first.At), cause)
		if x.overdue(first.At) {
			f.step(api.ActorAdmin, "check that kube-controller-manager runs: its device taint eviction controller should have deleted the pod")
		}
	}
	f.prove(holder, path, first.Taint.String()+" since "+first.Taint.TimeAdded.UTC().Format(time.RFC3339), "no such taint")
	f.prove(whatif.ClaimObject(first.Claim), fmt.Sprintf("status.allocation.devices.results[%d].tolerations", first.Result), tolerationsText(result.Tolerations), "a toleration with effect NoExecute")
	if name, isRule := strings.CutPrefix(holder, "DeviceTaintRule/"); isRule {
		f.step(api.ActorAdmin, "delete DeviceTaintRule %s if it is no longer needed: then the pod is not deleted", name)
	}
	f.step(api.ActorUser, "for the next pod, add a toleration to the request of a new claim: an allocated claim cannot be changed")
	return []finding{f}
}

// evictor finds the object that the taint of an eviction comes from.
func evictor(alloc *allocator.Allocator, e *allocator.Eviction) (holder, path string) {
	if device := alloc.Device(e.Device); e.Rule == nil && device != nil {
		return tainter(alloc, device, e.Taint)
	}
	return whatif.Object("DeviceTaintRule", "", e.Rule.Name), "spec.taint"
}

func tolerationsText(tolerations []resourceapi.DeviceToleration) string {
	if len(tolerations) == 0 {
		return "none"
	}
	texts := make([]string, 0, len(tolerations))
	for _, t := range tolerations {
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		text += ":" + string(t.Effect)
		if t.TolerationSeconds != nil {
			text += fmt.Sprintf(" for %ds", *t.TolerationSeconds)
		}
		texts = append(texts, text)
	}
	return english.Sample(texts, 4)
}
