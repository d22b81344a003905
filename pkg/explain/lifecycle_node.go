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
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// unresolvedCDI is how the runtimes begin to say that a container wants CDI
// devices that no specification has (tags.cncf.io/container-device-interface).
const unresolvedCDI = "unresolvable CDI devices "

// prepared says whether the kubelet has had the devices of a pod prepared: it
// does so before it has the runtime create anything
// (pkg/kubelet/kuberuntime, SyncPod).
func (x *inquiry) prepared(pod *corev1.Pod) bool {
	if sandboxReady(pod) != nil || len(failingContainers(pod)) > 0 {
		return true
	}
	for _, status := range containerStatuses(pod) {
		if sandboxLost(pod) == nil && (status.State.Running != nil || status.State.Terminated != nil) {
			return true
		}
	}
	event, progress := x.kubeletEvent(pod), x.progressEvent(pod)
	if event == nil || progress != nil && event.Reason != reasonPrepare {
		return progress != nil
	}
	return afterPreparation(event)
}

// afterPreparation says whether the kubelet reports such a thing only when the
// devices are prepared: about the sandbox, a container or its image.
func afterPreparation(event *corev1.Event) bool {
	return event.Reason == reasonSandbox || event.Reason == reasonContainer && event.InvolvedObject.FieldPath != "" || len(cdiDevices(event.Message)) > 0
}

// sandboxReady returns the condition that says that a pod's sandbox is there.
func sandboxReady(pod *corev1.Pod) *corev1.PodCondition {
	if c := podCondition(pod, corev1.PodReadyToStartContainers); c != nil && c.Status == corev1.ConditionTrue {
		return c
	}
	return nil
}

// sandboxLost returns the condition that says that a pod which ran has no
// sandbox any more: the kubelet makes it another one, and has the devices
// prepared again.
func sandboxLost(pod *corev1.Pod) *corev1.PodCondition {
	c := podCondition(pod, corev1.PodReadyToStartContainers)
	if c == nil || c.Status != corev1.ConditionFalse || pod.Status.Phase != corev1.PodRunning || !started(pod).IsZero() {
		return nil
	}
	return c
}

// started is when the first of the containers was started that run, zero if
// none does.
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

// failingContainers are those that wait for anything but their turn.
func failingContainers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.DeleteFunc(containerStatuses(pod), func(status corev1.ContainerStatus) bool {
		waiting := status.State.Waiting
		return waiting == nil || waiting.Reason == "" || waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing"
	})
}

// unresolvedContainers are those that the runtime cannot create because it
// does not know their CDI devices.
func unresolvedContainers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.DeleteFunc(failingContainers(pod), func(status corev1.ContainerStatus) bool {
		return len(cdiDevices(status.State.Waiting.Message)) == 0
	})
}

// kubeletFindings tells why a pod does not start on its node.
func (x *inquiry) kubeletFindings(pod *corev1.Pod, claims []allocator.PodClaim) []finding {
	findings := x.nodeFindings(pod)
	waiting := x.waitingContainers(pod)
	findings = append(findings, waiting...)
	if event := x.kubeletEvent(pod); event != nil && len(waiting) == 0 {
		f := finding{instead: true, evidence: []Evidence{eventEvidence(event)}}
		x.readKubeletEvent(&f, pod, claims, event)
		findings = append(findings, f)
	}
	findings = append(findings, x.driverEvents(claims, pod)...)
	if len(findings) == 0 {
		findings = append(findings, x.silence(pod))
	}
	return findings
}

// waitingContainers tells why containers do not run although their devices are
// prepared.
func (x *inquiry) waitingContainers(pod *corev1.Pod) []finding {
	var findings []finding
	for _, status := range failingContainers(pod) {
		waiting := status.State.Waiting
		f := finding{instead: true}
		f.prove(podObject(pod), fmt.Sprintf("status.containerStatuses[name=%s].state.waiting", status.Name),
			strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": "), "a running container")
		if devices := cdiDevices(waiting.Message); len(devices) > 0 {
			x.blameCDI(&f, pod, devices)
		} else {
			f.reason = strings.TrimSuffix(fmt.Sprintf("the devices are prepared, but container %s waits: %s: %s", status.Name, waiting.Reason, saidOnce(waiting.Message)), ": ")
		}
		findings = append(findings, f)
	}
	return findings
}

// silence is about a pod that has not started, and nothing tells why.
func (x *inquiry) silence(pod *corev1.Pod) finding {
	var f finding
	if event := x.progressEvent(pod); event != nil {
		f.instead = true
		f.reason = fmt.Sprintf("the devices are prepared; the last thing that the kubelet reports is %s: %s%s", event.Reason, event.Message, x.often(event))
		f.evidence = append(f.evidence, eventEvidence(event))
		return f
	}
	since := pod.CreationTimestamp
	if c := podCondition(pod, corev1.PodScheduled); c != nil {
		since = c.LastTransitionTime
	}
	if c := sandboxLost(pod); c != nil {
		since = c.LastTransitionTime
	}
	if sandboxReady(pod) != nil {
		f.prove(podObject(pod), "status.phase", string(pod.Status.Phase), string(corev1.PodRunning))
	} else {
		ready := "missing"
		if c := podCondition(pod, corev1.PodReadyToStartContainers); c != nil {
			ready = string(c.Status)
		}
		f.prove(podObject(pod), "status.conditions[type=PodReadyToStartContainers].status", ready, string(corev1.ConditionTrue))
	}
	if x.overdue(since.Time) {
		f.step(ActorAdmin, "no event says why pod %s has not started: check the log of the kubelet on node %s", pod.Name, pod.Spec.NodeName)
	}
	return f
}

// readKubeletEvent puts a warning of the kubelet into words. The messages are
// those of pkg/kubelet/cm/dra (1.30 to 1.37).
func (x *inquiry) readKubeletEvent(f *finding, pod *corev1.Pod, claims []allocator.PodClaim, event *corev1.Event) {
	node := pod.Spec.NodeName
	message := saidOnce(event.Message)
	if devices := cdiDevices(message); len(devices) > 0 {
		x.blameCDI(f, pod, devices)
		return
	}
	if event.Reason != reasonPrepare {
		before := ""
		if afterPreparation(event) {
			before = "the devices are prepared, but "
		}
		f.reason = fmt.Sprintf("%sthe last warning about the pod is %s: %s%s", before, event.Reason, message, x.often(event))
		return
	}
	message = unwrapped(message)
	if driver, ok := unregisteredDriver(message); ok {
		f.reason = fmt.Sprintf("DRA driver %s is not registered with the kubelet of node %s%s", driver, node, x.often(event))
		x.blameDriver(f, driver, node)
		return
	}
	if claim, words, ok := prepareFailure(message); ok {
		f.reason = fmt.Sprintf("%s cannot prepare claim %s on node %s: %s%s", driverOf(claims, claim), claim, node, words, x.often(event))
		f.step(ActorAdmin, "check the log of %s on node %s; the kubelet retries", driverOf(claims, claim), node)
		return
	}
	if name, ok := between(message, "old ResourceClaim with same name ", " and different UID "); ok {
		f.reason = fmt.Sprintf("the kubelet of node %s still has an earlier claim %s, of a pod that was deleted by force%s", node, name, x.often(event))
		if uid, ok := between(message, " and different UID ", " still exists"); ok {
			if claim := x.snap.Claim(pod.Namespace, name); claim != nil {
				f.prove(claimObject(claim), "metadata.uid", string(claim.UID), uid+", which the kubelet still has")
			}
		}
		f.step(ActorAdmin, "the kubelet forgets it after the driver has unprepared its devices: check that %s runs on node %s", driverOf(claims, name), node)
		return
	}
	f.reason = fmt.Sprintf("the kubelet of node %s cannot prepare the devices: %s%s", node, message, x.often(event))
	f.step(ActorAdmin, "check the log of the kubelet on node %s; it retries", node)
}

// unwrapped is what a message about preparation says after its first words.
func unwrapped(message string) string {
	for _, wrapping := range []string{"Failed to prepare dynamic resources: ", "prepare dynamic resources: ", "prepare DRA plugin: "} {
		message = strings.TrimPrefix(message, wrapping)
	}
	return message
}

// unregisteredDriver is the driver that the kubelet does not know.
func unregisteredDriver(message string) (string, bool) {
	for _, form := range [][2]string{
		{"DRA driver ", " is not registered"},
		{"plugin name ", " not found in the list of registered DRA plugins"},
		{"plugin ", " not found in the list of registered DRA plugins"},
	} {
		if driver, ok := between(message, form[0], form[1]); ok {
			return driver, true
		}
	}
	return "", false
}

// prepareFailure is which claim a driver failed to prepare, and what it said.
func prepareFailure(message string) (claim, words string, ok bool) {
	for _, before := range []string{"NodePrepareResources failed for ResourceClaim ", "NodePrepareResources failed for claim "} {
		if _, rest, found := strings.Cut(message, before); found {
			claim, words, ok = strings.Cut(rest, ": ")
			_, name, qualified := strings.Cut(claim, "/")
			if qualified {
				claim = name
			}
			return claim, words, ok
		}
	}
	return "", "", false
}

// driversOf lists the drivers of an allocated claim that the kubelet calls for
// an operation (computeDriverStates of pkg/kubelet/cm/dra), or all of them for
// none.
func driversOf(claim *resourceapi.ResourceClaim, operation resourceapi.SkipNodeOperation) []string {
	var drivers []string
	if claim.Status.Allocation == nil {
		return nil
	}
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		skips := operation != "" && (slices.Contains(result.SkipNodeOperations, operation) || slices.Contains(result.SkipNodeOperations, resourceapi.SkipNodeOperationAll))
		if !skips && !slices.Contains(drivers, result.Driver) {
			drivers = append(drivers, result.Driver)
		}
	}
	return drivers
}

// allStarted is when the first of some pods was started, if all were. Those
// that are finished do not count.
func allStarted(pods []*corev1.Pod) time.Time {
	var first time.Time
	for _, pod := range pods {
		since := started(pod)
		switch {
		case finished(pod):
			continue
		case since.IsZero():
			return time.Time{}
		case first.IsZero(), since.Before(first):
			first = since
		}
	}
	return first
}

// driverOf names the driver of a claim, if it has only one.
func driverOf(claims []allocator.PodClaim, name string) string {
	driver := ""
	for i := range claims {
		claim := claims[i].Claim
		if claim == nil || claim.Name != name || claim.Status.Allocation == nil {
			continue
		}
		for j := range claim.Status.Allocation.Devices.Results {
			next := claim.Status.Allocation.Devices.Results[j].Driver
			if driver != "" && next != driver {
				return "the driver"
			}
			driver = next
		}
	}
	if driver == "" {
		return "the driver"
	}
	return "driver " + driver
}

// proveAbsent adds to a finding that a driver publishes nothing for a node, and
// tells whether that is so.
func (x *inquiry) proveAbsent(f *finding, driver, node string) bool {
	serves := func(s *resourceapi.ResourceSlice) bool {
		return s.Spec.Driver == driver && (s.Spec.NodeName == nil || *s.Spec.NodeName == node)
	}
	if x.snap.Gap(snapshot.ResourceSlices) != nil || slices.ContainsFunc(x.snap.Slices, serves) {
		return false
	}
	f.prove("ResourceSlice", "spec.nodeName", fmt.Sprintf("none of driver %s for node %s", driver, node), "what the driver publishes where it runs")
	return true
}

// blameDriver says what to do about a driver that is not registered.
func (x *inquiry) blameDriver(f *finding, driver, node string) {
	f.step(ActorAdmin, "check that the pod of driver %s runs on node %s; it registers when it starts, with a socket in the directory plugins_registry of the kubelet", driver, node)
	x.proveAbsent(f, driver, node)
	object, found := x.idleKubelet(node)
	if found == "" {
		return
	}
	f.prove(object, "status.nodeInfo.kubeletVersion", found, "v1.34.2 or newer")
	f.step(ActorAdmin, "kubelet %s loses a driver that it has not called for 30 minutes: restart the kubelet of node %s, and upgrade it to v1.34.2 or newer", found, node)
}

// idleKubelet returns the version of a kubelet that loses idle connections
// to drivers (1.34.0 and 1.34.1, kubernetes/kubernetes#133926), or nothing.
func (x *inquiry) idleKubelet(name string) (evidence, found string) {
	node := x.snap.Node(name)
	if node == nil {
		return "", ""
	}
	v, err := version.ParseGeneric(node.Status.NodeInfo.KubeletVersion)
	if err != nil || v.Major() != 1 || v.Minor() != 34 || v.Patch() > 1 {
		return "", ""
	}
	return object("Node", "", name), node.Status.NodeInfo.KubeletVersion
}

// cdiDevices are the devices that a runtime says it does not know.
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

// blameCDI says where to look for CDI devices that the runtime does not know.
func (x *inquiry) blameCDI(f *finding, pod *corev1.Pod, devices []string) {
	node := pod.Spec.NodeName
	noun := "device"
	if len(devices) > 1 {
		noun = "devices"
	}
	f.reason = fmt.Sprintf("the devices are prepared, but the container runtime of node %s knows no CDI %s %s", node, noun, sample(devices, 4))
	f.step(ActorAdmin, "see on node %s that a file in a CDI directory of the runtime (/etc/cdi and /var/run/cdi, unless it is configured otherwise) has %s, and that the driver writes into one of them", node, sample(devices, 4))
	f.step(ActorAdmin, "if node %s was restarted since the pod came there, the driver may answer from its checkpoint and not write the file again: restart the driver", node)
	f.step(ActorUser, "or delete and recreate the pod, so that its claims are prepared again")
}

// nodeFindings tells what is wrong with the node of a pod.
func (x *inquiry) nodeFindings(pod *corev1.Pod) []finding {
	name := pod.Spec.NodeName
	if name == "" {
		return nil
	}
	f := finding{instead: true}
	node := x.snap.Node(name)
	if node == nil {
		if x.snap.Gap(snapshot.ResourceNodes) != nil || len(x.snap.Nodes) == 0 {
			return nil
		}
		f.reason = fmt.Sprintf("node %s does not exist", name)
		f.prove(podObject(pod), "spec.nodeName", name, "a node that exists")
		f.step(ActorNobody, "the pod garbage collector of kube-controller-manager removes pods of nodes that are gone")
		return []finding{f}
	}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if c.Type != corev1.NodeReady || c.Status == corev1.ConditionTrue {
			continue
		}
		since := ""
		if !c.LastTransitionTime.IsZero() {
			since = " for " + x.elapsed(c.LastTransitionTime.Time)
		}
		said := ""
		if c.Message != "" {
			said = ": " + c.Message
		}
		f.reason = fmt.Sprintf("node %s is not ready%s%s", name, since, said)
		f.prove(object("Node", "", name), "status.conditions[type=Ready].status", string(c.Status), string(corev1.ConditionTrue))
		f.step(ActorAdmin, "make node %s ready again: its kubelet starts and stops pods and has their devices prepared and unprepared", name)
		return []finding{f}
	}
	return nil
}
