// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// sandboxReady returns the condition that a pod has a sandbox.
func sandboxReady(pod *corev1.Pod) *corev1.PodCondition {
	if c := PodCondition(pod, corev1.PodReadyToStartContainers); c != nil && c.Status == corev1.ConditionTrue {
		return c
	}
	return nil
}

// sandboxLost returns the condition that a pod which ran lost its sandbox: the kubelet
// makes another one, after preparing the devices again.
func sandboxLost(pod *corev1.Pod) *corev1.PodCondition {
	c := PodCondition(pod, corev1.PodReadyToStartContainers)
	if c == nil || c.Status != corev1.ConditionFalse || pod.Status.Phase != corev1.PodRunning || !started(pod).IsZero() {
		return nil
	}
	return c
}

// started returns the start of the first running container, zero if none runs.
func started(pod *corev1.Pod) time.Time {
	var first time.Time
	for _, status := range containerStatuses(pod) {
		if r := status.State.Running; r != nil && (first.IsZero() || r.StartedAt.Time.Before(first)) {
			first = r.StartedAt.Time
		}
	}
	return first
}

func containerStatuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// failingContainers returns the containers that wait for anything but their turn.
func failingContainers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.DeleteFunc(containerStatuses(pod), func(status corev1.ContainerStatus) bool {
		waiting := status.State.Waiting
		return waiting == nil || waiting.Reason == "" || waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing"
	})
}

// unresolvedContainers returns the containers that the runtime cannot create because it
// does not know their CDI devices.
func unresolvedContainers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.DeleteFunc(failingContainers(pod), func(status corev1.ContainerStatus) bool {
		return len(cdiDevices(status.State.Waiting.Message)) == 0
	})
}

// allStarted returns the first start among some pods, if all were started. Finished pods do
// not count.
func allStarted(pods []*corev1.Pod) time.Time {
	var first time.Time
	for _, pod := range pods {
		since := started(pod)
		switch {
		case snapshot.Finished(pod):
			continue
		case since.IsZero():
			return time.Time{}
		case first.IsZero(), since.Before(first):
			first = since
		}
	}
	return first
}

// initializing returns the init containers that show that the devices of a pod work before
// its phase is Running: started containers with devices. There are none if the next
// container of the pod, which may have devices, too, is not started yet: the kubelet and
// the runtime are at work then.
func initializing(pod *corev1.Pod) []corev1.ContainerStatus {
	if pod.Status.Phase != corev1.PodPending || len(failingContainers(pod)) > 0 {
		return nil
	}
	if c := PodCondition(pod, corev1.PodReadyToStartContainers); c != nil && c.Status == corev1.ConditionFalse {
		return nil
	}
	var with []corev1.ContainerStatus
	runs := false
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		at := slices.IndexFunc(pod.Status.InitContainerStatuses, func(status corev1.ContainerStatus) bool { return status.Name == container.Name })
		if at < 0 {
			continue
		}
		status := pod.Status.InitContainerStatuses[at]
		sidecar := ptr.Deref(container.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
		runs = runs || status.State.Running != nil && !sidecar
		if hasDevices(pod, container) && wasStarted(&status.State) {
			with = append(with, status)
		}
	}
	if !runs {
		return nil
	}
	return with
}

// hasDevices reports whether a container has devices of the pod's claims.
func hasDevices(pod *corev1.Pod, container *corev1.Container) bool {
	if len(container.Resources.Claims) > 0 {
		return true
	}
	extended := pod.Status.ExtendedResourceClaimStatus
	return extended != nil && slices.ContainsFunc(extended.RequestMappings, func(m corev1.ContainerExtendedResourceRequest) bool {
		return m.ContainerName == container.Name
	})
}

// wasStarted reports whether a container runs or has run. A container that the runtime
// could not start has terminated, too, with the beginning of Unix time as its start.
func wasStarted(state *corev1.ContainerState) bool {
	return state.Running != nil || state.Terminated != nil && state.Terminated.StartedAt.Unix() > 0
}

// stateText describes the state of a started container.
func stateText(state *corev1.ContainerState) string {
	if state.Running != nil {
		return "running since " + state.Running.StartedAt.UTC().Format(time.RFC3339)
	}
	return "terminated at " + state.Terminated.FinishedAt.UTC().Format(time.RFC3339)
}

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
