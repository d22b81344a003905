// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// unresolvedCDI begins the runtimes' message that a container wants CDI devices without a
// specification (tags.cncf.io/container-device-interface).
const unresolvedCDI = "unresolvable CDI devices "

// cdiDevices returns the devices that a runtime reports as unknown.
func cdiDevices(message string) []string {
	_, rest, found := strings.Cut(message, unresolvedCDI)
	if !found {
		return nil
	}
	var devices []string
	for word := range strings.FieldsSeq(rest) {
		device := strings.Trim(word, `,.:;"'`)
		if !strings.Contains(device, "=") {
			break
		}
		devices = append(devices, device)
		if !strings.HasSuffix(word, ",") {
			break
		}
	}
	return devices
}

// cdiClaim finds the claim and the device that a CDI device was made for, nil if they are
// not known. Drivers choose the names; drivers on the upstream helper use
// VENDOR/CLASS=CLAIM_UID-DEVICE, and the UID of a claim is in no other name. A CDI device
// that all claims of a driver share has no device in its name.
func cdiClaim(id string, claims []cluster.PodClaim) (*resourceapi.ResourceClaim, *resourceapi.DeviceRequestAllocationResult) {
	kind, name, _ := strings.Cut(id, "=")
	vendor, _, _ := strings.Cut(kind, "/")
	var owner *resourceapi.ResourceClaim
	var found *resourceapi.DeviceRequestAllocationResult
	ambiguous := false
	for i := range claims {
		claim := claims[i].Claim
		if claim == nil || claim.Status.Allocation == nil {
			continue
		}
		rest, ofClaim := name, false
		if claim.UID != "" {
			before, after, has := strings.Cut(name, string(claim.UID))
			if ofClaim = has; has {
				rest = before + after
			}
		}
		results := claim.Status.Allocation.Devices.Results
		for j := range results {
			result := &results[j]
			if !ofClaim && vendor != result.Driver && !strings.HasSuffix(vendor, "."+result.Driver) {
				continue
			}
			if !endsWithName(rest, result.Device) || found != nil && len(found.Device) > len(result.Device) {
				continue
			}
			// The longer name is better: gpu-1 and not 1.
			ambiguous = found != nil && found.Device == result.Device && (found.Pool != result.Pool || owner != claim)
			owner, found = claim, result
		}
		if ofClaim && found == nil {
			owner = claim
		}
	}
	if ambiguous {
		return nil, nil
	}
	return owner, found
}

// endsWithName reports whether a text is a name, or ends with it after a separator:
// "x-gpu-1" ends with gpu-1, "xgpu-1" does not.
func endsWithName(text, name string) bool {
	before, found := strings.CutSuffix(text, name)
	return found && (before == "" || strings.ContainsAny(before[len(before)-1:], "-_/:."))
}

// cdiNames returns the devices of the pod's claims behind CDI devices. Unknown ones keep
// the runtime's name.
func cdiNames(ids []string, claims []cluster.PodClaim) []string {
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		switch claim, result := cdiClaim(id, claims); {
		case result != nil:
			names = append(names, fmt.Sprintf("%s (claim %s)", DeviceName(result), claim.Name))
		case claim != nil:
			names = append(names, "claim "+claim.Name)
		default:
			names = append(names, id)
		}
	}
	return names
}

// blameCDI says where to look for CDI devices that the runtime does not know.
func blameCDI(f *Finding, pod *corev1.Pod, claims []cluster.PodClaim, ids []string) {
	node := pod.Spec.NodeName
	noun := "device"
	if len(ids) > 1 {
		noun = "devices"
	}
	names := english.Sample(cdiNames(ids, claims), 4)
	f.Reason = fmt.Sprintf("the devices are prepared, but the container runtime of node %s cannot find the CDI %s for %s", node, noun, names)
	f.Step(api.ActorAdmin, "check on node %s whether a file in a CDI directory of the runtime (/etc/cdi and /var/run/cdi, unless it is configured otherwise) has the CDI %s. If one has, the runtime no longer watches the directory, which was removed and created again, or has no watch left: restart the runtime (systemctl restart containerd); containers that run stay", node, noun)
	f.Step(api.ActorAdmin, "if none has: the driver has to write into one of these directories; after a restart of node %s it may answer from its checkpoint and not write the file again: restart the driver", node)
	f.Step(api.ActorUser, "or delete and recreate the pod, so that its claims are prepared again")
}
