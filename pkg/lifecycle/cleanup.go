// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// cleanupFindings says why a pod that is finished or being deleted, or its claims, still
// exist.
func cleanupFindings(facts *cluster.Cluster, pod *corev1.Pod, claims []cluster.PodClaim) []Finding {
	if pod.DeletionTimestamp != nil {
		return terminating(facts, pod, claims)
	}
	var findings []Finding
	for i := range claims {
		claim := claims[i].Claim
		if claim == nil || claims[i].Generated || !reservedForPod(claim, pod) {
			continue
		}
		f := Finding{Instead: true, Reason: fmt.Sprintf("the pod is finished (%s%s), but claim %s is still reserved for it", pod.Status.Phase, finishedSince(facts.Snapshot, pod), claim.Name)}
		f.AddEvidence(api.RefTo(api.KindPod, pod), "status.phase", string(pod.Status.Phase), "")
		f.AddEvidence(api.RefTo(api.KindClaim, claim), "status.reservedFor", reservedForText(claim), "no finished pod")
		blameController(facts.Snapshot, &f, lastEnd(pod))
		findings = append(findings, f)
	}
	return findings
}

// reservedForPod reports whether a claim lists the pod itself as a consumer.
func reservedForPod(claim *resourceapi.ResourceClaim, pod *corev1.Pod) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(c resourceapi.ResourceClaimConsumerReference) bool {
		return c.Resource == "pods" && c.UID == pod.UID && pod.UID != ""
	})
}

func finishedSince(snap *snapshot.Snapshot, pod *corev1.Pod) string {
	end := lastEnd(pod)
	if end.IsZero() {
		return ""
	}
	return " " + snap.Lasting("for", end)
}

// terminating says why a pod that is being deleted still exists.
func terminating(facts *cluster.Cluster, pod *corev1.Pod, claims []cluster.PodClaim) []Finding {
	grace := time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
	// The deletion timestamp is the end of the grace period.
	due := pod.DeletionTimestamp.Time
	f := Finding{Instead: true}
	f.Reason = fmt.Sprintf("the pod has been terminating %s (grace period %s)", facts.Snapshot.Lasting("for", due.Add(-grace)), duration.HumanDuration(grace))
	f.AddEvidence(api.RefTo(api.KindPod, pod), "metadata.deletionTimestamp", due.UTC().Format(time.RFC3339), "")
	if c := PodCondition(pod, corev1.DisruptionTarget); c != nil && c.Reason == "DeletionByDeviceTaintManager" {
		f.Reason += ", because of a device taint"
		f.AddEvidence(api.RefTo(api.KindPod, pod), "status.conditions[type=DisruptionTarget]", c.Reason+": "+c.Message, "")
	}
	findings := []Finding{f}
	if len(pod.Finalizers) > 0 {
		waits := Finding{Reason: fmt.Sprintf("it waits for the owner of the finalizer %s to remove it", english.JoinAnd(pod.Finalizers))}
		waits.AddEvidence(api.RefTo(api.KindPod, pod), "metadata.finalizers", english.JoinAnd(pod.Finalizers), "none")
		findings = append(findings, waits)
	}
	if pod.Spec.NodeName == "" {
		return findings
	}
	findings = append(findings, nodeFindings(facts.Snapshot, pod)...)
	killing := newestEvent(podEvents(facts.Snapshot, pod), func(e *corev1.Event) bool { return e.Reason == reasonKillPod })
	switch {
	case killing != nil:
		event := Finding{Reason: fmt.Sprintf("the last warning about the pod is %s: %s%s", killing.Reason, saidOnce(killing.Message), often(facts.Snapshot, killing))}
		event.Evidence = append(event.Evidence, eventEvidence(killing))
		findings = append(findings, event)
	case len(findings) > 1:
		return findings
	}
	return append(findings, unprepared(facts, pod, claims)...)
}

// unprepared reports the drivers that have to unprepare the devices of a pod that is being
// deleted. The kubelet calls them when the containers have ended, and only then sets the
// last phase of the pod (SyncTerminatingPod of pkg/kubelet): until then, a pod without
// containers is still Running. The answer of a driver is in the kubelet's log alone.
func unprepared(facts *cluster.Cluster, pod *corev1.Pod, claims []cluster.PodClaim) []Finding {
	node := pod.Spec.NodeName
	var f Finding
	drivers, called := Unpreparers(facts, pod, claims)
	for _, claim := range called {
		f.AddEvidence(api.RefTo(api.KindClaim, claim), "status.reservedFor", reservedForText(claim), "no longer this pod")
	}
	if len(drivers) == 0 || snapshot.Finished(pod) {
		return nil
	}
	who, running := "driver "+english.JoinAnd(drivers), runningContainers(pod)
	overdue := Overdue(facts.Snapshot, pod.DeletionTimestamp.Time)
	switch {
	case allEnded(pod):
		f.Reason = fmt.Sprintf("its containers have ended, and %s has not unprepared the devices yet, as far as the status of the pod says", who)
		f.AddEvidence(api.RefTo(api.KindPod, pod), "status.phase", string(pod.Status.Phase), "Succeeded or Failed, once the devices are unprepared")
	case len(running) > 0 && overdue:
		f.Reason = fmt.Sprintf("container %s still runs, as far as the kubelet reports; %s unprepares the devices after that", english.JoinAnd(running), who)
	case overdue:
		f.Reason = fmt.Sprintf("whether its containers have ended is not known; %s unprepares the devices after that", who)
	default:
		return []Finding{{Steps: []api.NextStep{{Actor: api.ActorNobody, Text: fmt.Sprintf("when the containers have ended, the kubelet has %s unprepare the devices, and then removes the pod", who)}}}}
	}
	var absent []string
	for _, driver := range drivers {
		if addAbsence(facts.Snapshot, &f, driver, node) {
			absent = append(absent, driver)
		}
	}
	if len(absent) > 0 {
		f.Reason = fmt.Sprintf("driver %s no longer has a ResourceSlice for node %s, and without the driver the kubelet cannot unprepare the devices", english.JoinAnd(absent), node)
	}
	if !overdue && len(absent) == 0 {
		f.Step(api.ActorNobody, "the kubelet calls %s until it succeeds; if the pod stays, its log and that of the driver on node %s say why", who, node)
		return []Finding{f}
	}
	f.Step(api.ActorAdmin, "check that %s runs on node %s: the kubelet removes the pod after the driver has unprepared the devices, and logs what fails", who, node)
	return []Finding{f}
}

// Unpreparers returns the drivers that have to unprepare devices before a pod can end, and
// the claims with these devices.
func Unpreparers(facts *cluster.Cluster, pod *corev1.Pod, of []cluster.PodClaim) (drivers []string, claims []*resourceapi.ResourceClaim) {
	for i := range of {
		claim := of[i].Claim
		if claim == nil || claim.Status.Allocation == nil || !facts.Claims.Reserved(claim, pod) {
			continue
		}
		if called := driversOf(claim, resourceapi.SkipNodeOperationNodeUnprepareResources); len(called) > 0 {
			drivers, claims = append(drivers, called...), append(claims, claim)
		}
	}
	slices.Sort(drivers)
	return slices.Compact(drivers), claims
}

// allEnded reports whether the kubelet has reported that every container has ended.
func allEnded(pod *corev1.Pod) bool {
	statuses := containerStatuses(pod)
	return len(statuses) > 0 && !slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return s.State.Terminated == nil })
}

// runningContainers returns the containers that the kubelet has not reported as ended.
func runningContainers(pod *corev1.Pod) []string {
	var names []string
	for _, status := range containerStatuses(pod) {
		if status.State.Running != nil {
			names = append(names, status.Name)
		}
	}
	return names
}

// ClaimFindings reports problems with a claim, whichever pods use it.
func ClaimFindings(facts *cluster.Cluster, users []*corev1.Pod, claim *resourceapi.ResourceClaim) []Finding {
	if claim == nil {
		return nil
	}
	var findings []Finding
	if claim.DeletionTimestamp != nil {
		findings = append(findings, DeletingClaim(facts.Snapshot, claim))
	} else if f := staleReservations(facts.Snapshot, claim); f != nil {
		findings = append(findings, *f)
	}
	findings = append(findings, holdingFindings(facts, claim)...)
	return append(findings, driverEvents(facts.Snapshot, []cluster.PodClaim{{Claim: claim}}, users...)...)
}

// JustStale reports whether a claim is reserved only for its users and for pods that ended
// a moment ago: the resourceclaim controller removes them soon.
func JustStale(snap *snapshot.Snapshot, claim *resourceapi.ResourceClaim) bool {
	just := false
	for i := range claim.Status.ReservedFor {
		c := &claim.Status.ReservedFor[i]
		if !consumer(snap, claim.Namespace, c).stale() {
			continue
		}
		if end := consumerEnd(snap, claim.Namespace, c); end.IsZero() || Overdue(snap, end) {
			return false
		}
		just = true
	}
	return just
}

// staleReservations reports consumers of a claim that no longer exist.
func staleReservations(snap *snapshot.Snapshot, claim *resourceapi.ResourceClaim) *Finding {
	var stale []string
	// The oldest stale reservation shows whether the controller works.
	var since time.Time
	for i := range claim.Status.ReservedFor {
		c := &claim.Status.ReservedFor[i]
		if consumer(snap, claim.Namespace, c).stale() {
			stale = append(stale, consumerText(snap, claim.Namespace, c))
			since = earlier(since, consumerEnd(snap, claim.Namespace, c))
		}
	}
	if len(stale) == 0 {
		return nil
	}
	f := &Finding{Instead: true, Reason: fmt.Sprintf("claim %s is still reserved for %s", claim.Name, english.Sample(stale, 3))}
	f.AddEvidence(api.RefTo(api.KindClaim, claim), "status.reservedFor", reservedForText(claim), "consumers that exist")
	blameController(snap, f, since)
	return f
}
