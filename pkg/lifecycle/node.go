// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// kubeletFindings says why a pod does not start on its node.
func kubeletFindings(snap *snapshot.Snapshot, pod *corev1.Pod, claims []cluster.PodClaim) []Finding {
	findings := nodeFindings(snap, pod)
	waiting := waitingContainers(pod, claims)
	findings = append(findings, waiting...)
	if event := kubeletEvent(snap, pod); event != nil && len(waiting) == 0 {
		f := Finding{Instead: true, Evidence: []api.Evidence{eventEvidence(event)}}
		readKubeletEvent(snap, &f, pod, claims, event)
		findings = append(findings, f)
	}
	if len(findings) == 0 && !isPrepared(snap, pod) {
		findings = append(findings, domainFindings(snap, pod, claims)...)
	}
	findings = append(findings, driverEvents(snap, claims, pod)...)
	if len(findings) == 0 {
		findings = append(findings, silence(snap, pod))
	}
	return findings
}

// waitingContainers says why containers do not run although their devices are
// prepared.
func waitingContainers(pod *corev1.Pod, claims []cluster.PodClaim) []Finding {
	var findings []Finding
	for _, status := range failingContainers(pod) {
		waiting := status.State.Waiting
		f := Finding{Instead: true}
		f.AddEvidence(api.RefTo(api.KindPod, pod), fmt.Sprintf("status.containerStatuses[name=%s].state.waiting", status.Name),
			waiting.Reason+english.PrecededBy(": ", waiting.Message), "a running container")
		if devices := cdiDevices(waiting.Message); len(devices) > 0 {
			blameCDI(&f, pod, claims, devices)
		} else {
			f.Reason = fmt.Sprintf("the devices are prepared, but container %s waits: %s%s", status.Name, waiting.Reason, english.PrecededBy(": ", saidOnce(waiting.Message)))
		}
		findings = append(findings, f)
	}
	return findings
}

// silence reports a pod that has not started although nothing says why.
func silence(snap *snapshot.Snapshot, pod *corev1.Pod) Finding {
	var f Finding
	if event := progressEvent(snap, pod); event != nil {
		f.Instead = true
		f.Reason = fmt.Sprintf("the devices are prepared; the last thing that the kubelet reports is %s: %s%s", event.Reason, event.Message, often(snap, event))
		f.Evidence = append(f.Evidence, eventEvidence(event))
		return f
	}
	since := pod.CreationTimestamp
	if c := PodCondition(pod, corev1.PodScheduled); c != nil {
		since = c.LastTransitionTime
	}
	if c := sandboxLost(pod); c != nil {
		since = c.LastTransitionTime
	}
	if sandboxReady(pod) != nil {
		f.AddEvidence(api.RefTo(api.KindPod, pod), "status.phase", string(pod.Status.Phase), string(corev1.PodRunning))
	} else {
		ready := "missing"
		if c := PodCondition(pod, corev1.PodReadyToStartContainers); c != nil {
			ready = string(c.Status)
		}
		f.AddEvidence(api.RefTo(api.KindPod, pod), "status.conditions[type=PodReadyToStartContainers].status", ready, string(corev1.ConditionTrue))
	}
	if Overdue(snap, since.Time) {
		f.Step(api.ActorAdmin, "no event says why pod %s has not started: check the log of the kubelet on node %s", pod.Name, pod.Spec.NodeName)
	}
	return f
}

// nodeFindings reports problems with the node of a pod.
func nodeFindings(snap *snapshot.Snapshot, pod *corev1.Pod) []Finding {
	name := pod.Spec.NodeName
	if name == "" {
		return nil
	}
	f := Finding{Instead: true}
	node := snap.Node(name)
	if node == nil {
		if snap.Gap(snapshot.ResourceNodes) != nil || len(snap.Nodes) == 0 {
			return nil
		}
		f.Reason = fmt.Sprintf("node %s does not exist", name)
		f.AddEvidence(api.RefTo(api.KindPod, pod), "spec.nodeName", name, "a node that exists")
		f.Step(api.ActorNobody, "the pod garbage collector of kube-controller-manager removes pods of nodes that are gone")
		return []Finding{f}
	}
	if found := NotReady(snap, node); found != nil {
		return []Finding{*found}
	}
	return nil
}

// NotReady reports a node that is not ready, mostly because its kubelet stopped; nil if it
// is ready.
func NotReady(snap *snapshot.Snapshot, node *corev1.Node) *Finding {
	condition := cluster.NotReady(node)
	if condition == nil {
		return nil
	}
	f := &Finding{Instead: true, Reason: fmt.Sprintf("node %s: %s", node.Name, condition.Text(snap))}
	f.AddEvidence(api.Ref(api.KindNode, "", node.Name), "status.conditions[type=Ready].status", string(condition.Status), string(corev1.ConditionTrue))
	f.Step(api.ActorAdmin, condition.Repair+": its kubelet starts and stops pods and has their devices prepared and unprepared", node.Name)
	return f
}

// isPrepared reports whether the devices of a pod are prepared: the kubelet does that
// before the runtime creates anything (pkg/kubelet/kuberuntime, SyncPod).
func isPrepared(snap *snapshot.Snapshot, pod *corev1.Pod) bool {
	if sandboxReady(pod) != nil || len(failingContainers(pod)) > 0 {
		return true
	}
	for _, status := range containerStatuses(pod) {
		if sandboxLost(pod) == nil && (status.State.Running != nil || status.State.Terminated != nil) {
			return true
		}
	}
	event, progress := kubeletEvent(snap, pod), progressEvent(snap, pod)
	if event == nil || progress != nil && event.Reason != reasonPrepare {
		return progress != nil
	}
	return afterPreparation(event)
}
