// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// prepared reports whether the kubelet has had the devices of a pod prepared: it
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

// afterPreparation reports whether the kubelet reports such a thing only when the
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
	waiting := x.waitingContainers(pod, claims)
	findings = append(findings, waiting...)
	if event := x.kubeletEvent(pod); event != nil && len(waiting) == 0 {
		f := finding{instead: true, evidence: []api.Evidence{eventEvidence(event)}}
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
func (x *inquiry) waitingContainers(pod *corev1.Pod, claims []allocator.PodClaim) []finding {
	var findings []finding
	for _, status := range failingContainers(pod) {
		waiting := status.State.Waiting
		f := finding{instead: true}
		f.prove(whatif.PodObject(pod), fmt.Sprintf("status.containerStatuses[name=%s].state.waiting", status.Name),
			strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": "), "a running container")
		if devices := cdiDevices(waiting.Message); len(devices) > 0 {
			x.blameCDI(&f, pod, claims, devices)
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
		f.prove(whatif.PodObject(pod), "status.phase", string(pod.Status.Phase), string(corev1.PodRunning))
	} else {
		ready := "missing"
		if c := podCondition(pod, corev1.PodReadyToStartContainers); c != nil {
			ready = string(c.Status)
		}
		f.prove(whatif.PodObject(pod), "status.conditions[type=PodReadyToStartContainers].status", ready, string(corev1.ConditionTrue))
	}
	if x.overdue(since.Time) {
		f.step(api.ActorAdmin, "no event says why pod %s has not started: check the log of the kubelet on node %s", pod.Name, pod.Spec.NodeName)
	}
	return f
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
		f.prove(whatif.PodObject(pod), "spec.nodeName", name, "a node that exists")
		f.step(api.ActorNobody, "the pod garbage collector of kube-controller-manager removes pods of nodes that are gone")
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
		f.prove(whatif.Object("Node", "", name), "status.conditions[type=Ready].status", string(c.Status), string(corev1.ConditionTrue))
		f.step(api.ActorAdmin, "make node %s ready again: its kubelet starts and stops pods and has their devices prepared and unprepared", name)
		return []finding{f}
	}
	return nil
}
