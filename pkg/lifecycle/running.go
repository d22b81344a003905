// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
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

// AbsentDriver reports a driver that has no slices left of pools with allocated devices.
// Running pods keep these devices, so it never advises to delete a pod.
func AbsentDriver(snap *snapshot.Snapshot, pools []cluster.LostPool) Finding {
	f := Finding{Instead: true}
	driver := pools[0].Driver
	var names, nodes, devices []string
	var claims []*resourceapi.ResourceClaim
	for i := range pools {
		pool := &pools[i]
		for _, id := range pool.Devices {
			devices = append(devices, id.Pool+"/"+id.Device)
		}
		for _, claim := range pool.Claims {
			if !slices.Contains(claims, claim) {
				claims = append(claims, claim)
			}
		}
		names = append(names, pool.Name)
		if pool.Node != "" && !slices.Contains(nodes, pool.Node) {
			nodes = append(nodes, pool.Node)
		}
		f.AddEvidence(api.Ref("Pool", "", driver+"/"+pool.Name), "spec.devices", fmt.Sprintf("no ResourceSlice, %s in use", english.Count(len(pool.Devices), "device")), "what the driver publishes where it runs")
	}
	where := "pool " + english.Sample(names, maxAbsent)
	if len(names) > 1 {
		where = fmt.Sprintf("%d pools (%s)", len(names), english.Sample(names, maxAbsent))
	}
	if len(nodes) > 0 {
		where = "node " + nodes[0]
		if len(nodes) > 1 {
			where = fmt.Sprintf("%d nodes (%s)", len(nodes), english.Sample(nodes, maxAbsent))
		}
	}
	what := fmt.Sprintf("%s of %s are", english.Count(len(devices), "device"), english.Count(len(claims), "claim"))
	if len(claims) == 1 {
		what = fmt.Sprintf("%s %s of claim %s %s", english.Plural(len(devices), "device", "devices"), english.Sample(devices, maxAbsent), english.QualifiedName(claims[0]), english.Plural(len(devices), "is", "are"))
	}
	f.Reason = fmt.Sprintf("driver %s publishes nothing for %s any more: %s no longer in any ResourceSlice", driver, where, what)
	for _, node := range nodes[:min(len(nodes), maxAbsent)] {
		plugin := Finding{}
		driverPods(snap, &plugin, []string{driver}, node)
		f.Reason += plugin.Reason
		f.Evidence = append(f.Evidence, plugin.Evidence...)
	}
	step := PluginStep(snap, driver, nodes...)
	step.Text += ": the kubelet deletes the slices of a driver 30s after it disconnects; leave the pods alone, because those that run keep their devices"
	f.Steps = append(f.Steps, step)
	return f
}

// PluginStep returns the step to look at the plugin of a driver on some nodes.
func PluginStep(snap *snapshot.Snapshot, driver string, nodes ...string) api.NextStep {
	step := api.NextStep{Actor: api.ActorAdmin, Text: "look at the plugin of driver " + driver + english.PrecededBy(" on ", english.Sample(nodes, maxAbsent))}
	for _, set := range DaemonSets(snap, driver) {
		if set.Selector != nil {
			step.Commands = append(step.Commands, fmt.Sprintf("kubectl get pods -n %s -l %s -o wide", shell.Quote(set.Namespace), shell.Quote(metav1.FormatLabelSelector(set.Selector))))
		}
	}
	if len(step.Commands) == 0 && len(nodes) > 0 {
		step.Commands = []string{"kubectl get pods -A -o wide --field-selector " + shell.Quote("spec.nodeName="+nodes[0])}
	}
	return step
}

// maxAbsent limits how many nodes or pools of a driver are named.
const maxAbsent = 4

// unhealthyTaint is the suggested taint for an unhealthy device.
const unhealthyTaint = "dra.kubectl.dev/unhealthy:" + string(resourceapi.DeviceTaintEffectNoSchedule)

// Unhealthy reports the devices that the kubelet reports as unhealthy (KEP-4680).
func Unhealthy(facts *cluster.Cluster, pod *corev1.Pod, claims []cluster.PodClaim) []Finding {
	var findings []Finding
	seen := map[corev1.ResourceID]bool{}
	for _, container := range containerStatuses(pod) {
		for i := range container.AllocatedResourcesStatus {
			resource := &container.AllocatedResourcesStatus[i]
			ref, isClaim := strings.CutPrefix(string(resource.Name), "claim:")
			if !isClaim {
				continue
			}
			entry, request, _ := strings.Cut(ref, "/")
			for _, health := range resource.Resources {
				if health.Health != corev1.ResourceHealthStatusUnhealthy || seen[health.ResourceID] {
					continue
				}
				seen[health.ResourceID] = true
				pc, result := reportedDevice(string(health.ResourceID), entry, request, claims)
				name := string(health.ResourceID)
				if result != nil {
					name = DeviceName(result)
				}
				f := Finding{Instead: true, Reason: fmt.Sprintf("device %s of the pod's claim %s is unhealthy", name, entry)}
				found := string(health.Health)
				if words := ptr.Deref(health.Message, ""); words != "" {
					f.Reason += ": " + words
					found += ": " + words
				}
				f.AddEvidence(api.RefTo(api.KindPod, pod), fmt.Sprintf("status.containerStatuses[name=%s].allocatedResourcesStatus[name=%s].resources[resourceID=%s].health", container.Name, resource.Name, health.ResourceID),
					found, string(corev1.ResourceHealthStatusHealthy))
				replaceDevice(facts, &f, pc, result, name)
				findings = append(findings, f)
			}
		}
	}
	return findings
}

// reportedDevice finds the claim of a pod's entry, nil if it is not known, and the device
// that the kubelet means, nil if that is not known. The kubelet uses the first CDI name
// that the driver gives a device, and DRIVER/POOL/DEVICE if there is none.
func reportedDevice(id, entry, request string, claims []cluster.PodClaim) (*cluster.PodClaim, *resourceapi.DeviceRequestAllocationResult) {
	at := slices.IndexFunc(claims, func(pc cluster.PodClaim) bool { return pc.Entry == entry })
	if at < 0 || claims[at].Claim == nil || claims[at].Claim.Status.Allocation == nil {
		return nil, nil
	}
	pc := &claims[at]
	results := pc.Claim.Status.Allocation.Devices.Results
	var among []*resourceapi.DeviceRequestAllocationResult
	for i := range results {
		result := &results[i]
		if DeviceID(result).String() == id {
			return pc, result
		}
		if request == "" || resourceclaim.BaseRequestRef(result.Request) == request {
			among = append(among, result)
		}
	}
	if len(among) == 1 {
		return pc, among[0]
	}
	_, result := cdiClaim(id, claims[at:at+1])
	return pc, result
}

// replaceDevice adds the steps by which a pod gets another device than the broken one. As
// long as the device has no taint, a new claim may get the same device.
func replaceDevice(facts *cluster.Cluster, f *Finding, pc *cluster.PodClaim, result *resourceapi.DeviceRequestAllocationResult, name string) {
	tainted := false
	if result != nil {
		device := facts.Pools.Device(DeviceID(result))
		tainted = device != nil && slices.ContainsFunc(device.Taints, func(taint resourceapi.DeviceTaint) bool {
			return taint.Effect != resourceapi.DeviceTaintEffectNone
		})
	}
	if !tainted && facts.Gates.Enabled("DRADeviceTaints") {
		step := api.NextStep{Actor: api.ActorAdmin, Text: fmt.Sprintf("taint device %s: without a taint, a new claim may get the same device; the pod keeps it", name)}
		if result != nil {
			step.Commands = []string{fmt.Sprintf("kubectl dra taints add --driver %s --pool %s --device %s %s",
				shell.Quote(result.Driver), shell.Quote(result.Pool), shell.Quote(result.Device), unhealthyTaint)}
		}
		f.Steps = append(f.Steps, step)
	}
	if pc != nil && pc.Template == "" && !pc.ExtendedResources {
		f.Step(api.ActorUser, "the devices of a running pod are never replaced: there are other ones when the pods that use claim %s, and the claim, are created again", pc.Claim.Name)
		return
	}
	f.Step(api.ActorUser, "the devices of a running pod are never replaced: there are other ones when the pod is created again, with a new claim")
}
