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

// readKubeletEvent describes a warning of the kubelet. The messages are from
// pkg/kubelet/cm/dra (1.30 to 1.37).
func readKubeletEvent(snap *snapshot.Snapshot, f *Finding, pod *corev1.Pod, claims []cluster.PodClaim, event *corev1.Event) {
	node := pod.Spec.NodeName
	message := saidOnce(event.Message)
	if devices := cdiDevices(message); len(devices) > 0 {
		blameCDI(f, pod, claims, devices)
		return
	}
	if event.Reason != reasonPrepare {
		before := ""
		if afterPreparation(event) {
			before = "the devices are prepared, but "
		}
		f.Reason = fmt.Sprintf("%sthe last warning about the pod is %s: %s%s", before, event.Reason, message, often(snap, event))
		return
	}
	message = unwrapped(message)
	if driver, ok := unregisteredDriver(message); ok {
		f.Reason = fmt.Sprintf("DRA driver %s is not registered with the kubelet of node %s%s", driver, node, often(snap, event))
		blameDriver(snap, f, driver, node)
		return
	}
	if call, ok := prepareCall(message); ok {
		noAnswer(snap, f, pod, claims, event, call)
		return
	}
	if claim, words, ok := prepareFailure(message); ok {
		if domainFailure(snap, f, pod, claims, claim, words, event) || configRejected(snap, f, pod, claims, claim, words, event) {
			return
		}
		f.Reason = fmt.Sprintf("%s cannot prepare claim %s on node %s: %s%s", driverOf(claims, claim), claim, node, words, often(snap, event))
		ownClaim(f, pod, claims, claim)
		f.Step(api.ActorAdmin, "check the log of %s on node %s; the kubelet retries", driverOf(claims, claim), node)
		driverPods(snap, f, calledFor(claims, claim), node)
		return
	}
	if name, ok := between(message, "old ResourceClaim with same name ", " and different UID "); ok {
		f.Reason = fmt.Sprintf("the kubelet of node %s still has an earlier claim %s, of a pod that was deleted by force%s", node, name, often(snap, event))
		if uid, ok := between(message, " and different UID ", " still exists"); ok {
			if claim := snap.Claim(pod.Namespace, name); claim != nil {
				f.AddEvidence(api.RefTo(api.KindClaim, claim), "metadata.uid", string(claim.UID), uid+", which the kubelet still has")
			}
		}
		f.Step(api.ActorAdmin, "the kubelet forgets it after the driver has unprepared its devices: check that %s runs on node %s", driverOf(claims, name), node)
		return
	}
	f.Reason = fmt.Sprintf("the kubelet of node %s cannot prepare the devices: %s%s", node, message, often(snap, event))
	f.Step(api.ActorAdmin, "check the log of the kubelet on node %s; it retries", node)
}

// ownClaim adds the step for a claim that a driver refuses because other pods use it, too.
func ownClaim(f *Finding, pod *corev1.Pod, claims []cluster.PodClaim, name string) {
	for i := range claims {
		pc := &claims[i]
		if pc.Claim == nil || pc.Claim.Name != name || len(pc.Claim.Status.ReservedFor) < 2 {
			continue
		}
		f.Step(api.ActorUser, "give pod %s a claim of its own, unless %s lets %d pods share one: create a ResourceClaimTemplate with the spec of claim %s, and name it with resourceClaimTemplateName in place of resourceClaimName (spec.resourceClaims, %s)",
			pod.Name, driverOf(claims, name), len(pc.Claim.Status.ReservedFor), name, pc.Entry)
		f.AddEvidence(api.RefTo(api.KindClaim, pc.Claim), "status.reservedFor", english.Count(len(pc.Claim.Status.ReservedFor), "pod"), "")
	}
}

// unregisteredDriver returns the driver that the kubelet does not know.
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

// prepareFailure returns the claim that a driver failed to prepare, and its error.
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

// driverOf names the driver of a claim, if it has only one.
func driverOf(claims []cluster.PodClaim, name string) string {
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

// blameDriver adds the steps for a driver that is not registered.
func blameDriver(snap *snapshot.Snapshot, f *Finding, driver, node string) {
	if !driverPods(snap, f, []string{driver}, node) {
		f.Step(api.ActorAdmin, "check that the pod of driver %s runs on node %s; it registers when it starts, with a socket in the directory plugins_registry of the kubelet", driver, node)
	}
	addAbsence(snap, f, driver, node)
	object, found := idleKubelet(snap, node)
	if found == "" {
		return
	}
	f.AddEvidence(object, "status.nodeInfo.kubeletVersion", found, "v1.34.2 or newer")
	f.Step(api.ActorAdmin, "kubelet %s loses a driver that it has not called for 30 minutes: restart the kubelet of node %s, and upgrade it to v1.34.2 or newer", found, node)
}

// kubeletReports quotes the last warning about a pod on its node.
func kubeletReports(snap *snapshot.Snapshot, pod *corev1.Pod) []Finding {
	event := kubeletEvent(snap, pod)
	if event == nil || pod.Spec.NodeName == "" {
		return nil
	}
	return []Finding{{
		Reason:   fmt.Sprintf("the last warning about the pod is %s: %s%s", event.Reason, unwrapped(saidOnce(event.Message)), often(snap, event)),
		Evidence: []api.Evidence{eventEvidence(event)},
	}}
}

// driverEvents quotes the events of drivers about claims. Events from before the start of
// the pods that use the claims are history.
func driverEvents(snap *snapshot.Snapshot, claims []cluster.PodClaim, users ...*corev1.Pod) []Finding {
	var findings []Finding
	since := snap.Now().Add(-time.Hour)
	if first := allStarted(users); first.After(since) {
		since = first
	}
	for i := range claims {
		claim := claims[i].Claim
		if claim == nil || claims[i].Generated {
			continue
		}
		event := newestEvent(eventsAbout(snap, api.KindClaim, claim.Namespace, claim.Name, claim.UID), func(e *corev1.Event) bool {
			return e.Type == corev1.EventTypeWarning && EventTime(e).After(since)
		})
		if event == nil {
			continue
		}
		who := cmp.Or(event.Source.Component, event.ReportingController)
		switch {
		case who == "":
			who = "an unknown component"
		case slices.Contains(driversOf(claim, ""), who):
			who = "driver " + who
		default:
			who = "component " + who
		}
		findings = append(findings, Finding{
			Instead: true, Evidence: []api.Evidence{eventEvidence(event)},
			Reason: fmt.Sprintf("%s reports about claim %s: %s: %s%s", who, claim.Name, event.Reason, saidOnce(event.Message), often(snap, event)),
		})
	}
	return findings
}
