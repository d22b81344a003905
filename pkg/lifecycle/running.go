// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// runningFindings reports problems with the devices of a running pod.
func runningFindings(facts *cluster.Cluster, pod *corev1.Pod, claims []cluster.PodClaim) []Finding {
	findings := deviceFindings(facts, pod, claims)
	findings = append(findings, Unhealthy(facts, pod, claims)...)
	findings = append(findings, nodeFindings(facts.Snapshot, pod)...)
	findings = append(findings, driverEvents(facts.Snapshot, claims, pod)...)
	for _, status := range initializing(pod) {
		var f Finding
		f.AddEvidence(api.RefTo(api.KindPod, pod), fmt.Sprintf("status.initContainerStatuses[name=%s].state", status.Name), stateText(&status.State), "")
		findings = append(findings, f)
	}
	if started(pod).IsZero() {
		findings = append(findings, waitingContainers(pod, claims)...)
	}
	return findings
}

// deviceFindings reports problems with the devices of a bound pod.
func deviceFindings(facts *cluster.Cluster, pod *corev1.Pod, claims []cluster.PodClaim) []Finding {
	findings := evictions(facts, pod)
	for i := range claims {
		claim := claims[i].Claim
		if claim == nil || claims[i].Generated {
			continue
		}
		findings = append(findings, holdingFindings(facts, claim)...)
		if claim.DeletionTimestamp != nil {
			findings = append(findings, DeletingClaim(facts.Snapshot, claim))
		}
	}
	return findings
}

// VanishedDevices reports devices of a claim that are in no slice any more, although their
// driver still publishes the pool; nil if there are none.
func VanishedDevices(facts *cluster.Cluster, claim *resourceapi.ResourceClaim) *Finding {
	if claim.Status.Allocation == nil {
		return nil
	}
	_, gone := vanished(facts, claim)
	return gone
}

// holdingFindings reports problems with the devices of an allocated claim.
func holdingFindings(facts *cluster.Cluster, claim *resourceapi.ResourceClaim) []Finding {
	if claim.Status.Allocation == nil {
		return nil
	}
	findings, gone := vanished(facts, claim)
	add := func(f *Finding) {
		if f != nil {
			findings = append(findings, *f)
		}
	}
	add(gone)
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		add(Doubled(facts, claim, result))
		add(DeviceNotReady(claim, result))
	}
	return findings
}

// vanished reports devices that are in no slice any more: devices of absent drivers, and of
// pools that are still published. Devices that their driver calls ready are not missing,
// see movedHint.
func vanished(facts *cluster.Cluster, claim *resourceapi.ResourceClaim) (away []Finding, gone *Finding) {
	if facts.Snapshot.Gap(snapshot.ResourceSlices) != nil {
		return nil, nil
	}
	f := Finding{Instead: true}
	var devices []string
	results := claim.Status.Allocation.Devices.Results
	lost := facts.LostPoolsOf(claim)
	for i := range results {
		result := &results[i]
		if facts.Pools.Device(DeviceID(result)) != nil || cluster.DeviceReady(claim, result) {
			continue
		}
		f.AddEvidence(api.RefTo(api.KindClaim, claim), fmt.Sprintf("status.allocation.devices.results[%d]", i), DeviceName(result), "a device in a ResourceSlice of driver "+result.Driver)
		if !slices.ContainsFunc(lost, func(p cluster.LostPool) bool { return p.Driver == result.Driver && p.Name == result.Pool }) {
			devices = append(devices, DeviceName(result))
		}
	}
	for _, pools := range cluster.ByDriver(lost) {
		absent := AbsentDriver(facts.Snapshot, pools)
		absent.Evidence = append(absent.Evidence, f.Evidence...)
		away = append(away, absent)
	}
	if len(devices) == 0 {
		return away, nil
	}
	f.Reason = cluster.GoneText(devices[0] + " of claim " + claim.Name)
	if len(devices) > 1 {
		f.Reason = fmt.Sprintf("%d of the %s of claim %s are no longer in any ResourceSlice: %s", len(devices), english.Count(len(results), "device"), claim.Name, english.Sample(devices, 4))
	}
	f.Step(api.ActorAdmin, "the driver still publishes the pool without %s: its log may say why", english.Plural(len(devices), "the device", "these devices"))
	return away, &f
}

// Doubled reports a device that another claim has, too; nil if none has. Both claims get
// the same answer.
func Doubled(facts *cluster.Cluster, claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) *Finding {
	if result.ShareID != nil || ptr.Deref(result.AdminAccess, false) {
		return nil
	}
	for _, holder := range facts.Usage.Holders(DeviceID(result)) {
		other := holder.Claim
		if holder.Result.ShareID != nil || ptr.Deref(holder.Result.AdminAccess, false) || other.Namespace == claim.Namespace && other.Name == claim.Name {
			continue
		}
		both := []*resourceapi.ResourceClaim{claim, other}
		slices.SortFunc(both, func(a, b *resourceapi.ResourceClaim) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		f := &Finding{Instead: true, Reason: cluster.TwiceText(DeviceName(result), english.QualifiedName(both[0]), english.QualifiedName(both[1]))}
		for _, each := range both {
			f.AddEvidence(api.RefTo(api.KindClaim, each), "status.allocation.devices.results", DeviceName(result), "a device in no other claim")
			f.AddEvidence(api.RefTo(api.KindClaim, each), "status.reservedFor", reservedForText(each), "")
		}
		f.Step(api.ActorUser, "decide which of the pods keeps the device: the other one needs a new claim, which it gets when it is recreated")
		return f
	}
	return nil
}

// DeviceNotReady reports a device that its driver calls not ready; nil if it does not. The
// meaning of other conditions is up to the driver.
func DeviceNotReady(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) *Finding {
	status := cluster.DeviceStatus(claim, result)
	if status == nil {
		return nil
	}
	c := meta.FindStatusCondition(status.Conditions, "Ready")
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	f := &Finding{Instead: true, Reason: cluster.ConditionText(result.Driver, DeviceName(result)+" of claim "+claim.Name, c)}
	f.AddEvidence(api.RefTo(api.KindClaim, claim), fmt.Sprintf("status.devices[device=%s].conditions[type=Ready]", result.Device), conditionText(c), "True")
	return f
}

// evictions reports that a pod is due to be deleted because of a taint of its devices. Of
// several taints the first one counts.
func evictions(facts *cluster.Cluster, pod *corev1.Pod) []Finding {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	all := facts.Taints.PodEvictions(pod)
	if len(all) == 0 {
		return nil
	}
	first := all[0]
	result := &first.Claim.Status.Allocation.Devices.Results[first.Result]
	holder, path := cluster.EvictionSource(facts, &first)
	now := facts.Snapshot.Now()
	f := Finding{Instead: true}
	cause := fmt.Sprintf("device %s of claim %s has the taint %s (%s), which %s", DeviceName(result), first.Claim.Name, first.Taint, holder, ToleratedText(&first))
	switch {
	case first.At.After(now) && facts.Snapshot.AbsoluteTimes:
		f.Reason = fmt.Sprintf("the pod will be deleted at %s: %s", first.At.UTC().Format(time.RFC3339), cause)
	case first.At.After(now):
		f.Reason = fmt.Sprintf("the pod will be deleted in %s, at %s: %s", duration.HumanDuration(first.At.Sub(now)), first.At.UTC().Format(time.RFC3339), cause)
	default:
		f.Reason = fmt.Sprintf("the pod should have been deleted %s: %s", facts.Snapshot.Ago(first.At), cause)
		if Overdue(facts.Snapshot, first.At) {
			f.Step(api.ActorAdmin, "check that kube-controller-manager runs: its device taint eviction controller should have deleted the pod")
		}
	}
	f.AddEvidence(holder, path, first.Taint.String()+" since "+first.Taint.TimeAdded.UTC().Format(time.RFC3339), "no such taint")
	f.AddEvidence(api.RefTo(api.KindClaim, first.Claim), fmt.Sprintf("status.allocation.devices.results[%d].tolerations", first.Result), tolerationsText(result.Tolerations), "a toleration with effect NoExecute")
	if holder.Kind == "DeviceTaintRule" {
		f.Step(api.ActorAdmin, "delete DeviceTaintRule %s if it is no longer needed: then the pod is not deleted", holder.Name)
	}
	f.Step(api.ActorUser, "for the next pod, add a toleration to the request of a new claim: an allocated claim cannot be changed")
	return []Finding{f}
}

// ToleratedText says how far the taint of an eviction is tolerated, after "which".
func ToleratedText(e *cluster.Eviction) string {
	tolerations := e.Claim.Status.Allocation.Devices.Results[e.Result].Tolerations
	switch {
	case e.Tolerated > 0:
		return fmt.Sprintf("is tolerated for only %s", duration.HumanDuration(e.Tolerated))
	case slices.ContainsFunc(tolerations, func(t resourceapi.DeviceToleration) bool {
		return t.Effect == "" && resourceclaim.ToleratesTaint(t, e.Taint)
	}):
		return "is tolerated without effect: the eviction controller heeds only tolerations with the effect NoExecute"
	default:
		return "is not tolerated"
	}
}

func tolerationsText(tolerations []resourceapi.DeviceToleration) string {
	if len(tolerations) == 0 {
		return "none"
	}
	texts := make([]string, 0, len(tolerations))
	for _, t := range tolerations {
		text := cmp.Or(t.Key, "all taints")
		if t.Value != "" {
			text += "=" + t.Value
		}
		if t.Effect != "" {
			text += ":" + string(t.Effect)
		}
		if t.TolerationSeconds != nil {
			text += fmt.Sprintf(" for %ds", *t.TolerationSeconds)
		}
		texts = append(texts, text)
	}
	return english.Sample(texts, 4)
}
