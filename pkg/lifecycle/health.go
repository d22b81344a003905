// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
)

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
