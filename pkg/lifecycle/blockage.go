// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Blockage is a condition that keeps a pod from its claims, or from working with its allocated
// devices.
type Blockage struct {
	Code api.Code
	// Reason is set if no finding of the stage has one.
	Reason string
}

// findBlockage reports whether a pod is stuck whose claims are allocated, or refused, in the order of
// its stage's report. Proof is an event, a condition, or that something takes longer than
// its limit. A pod that was bound a moment ago and is being prepared is not stuck, and
// neither is a pod whose containers wait for something else, such as their image.
func findBlockage(facts *cluster.Cluster, pod *corev1.Pod, claims []cluster.PodClaim, stage api.Stage) *Blockage {
	if snapshot.Finished(pod) || pod.DeletionTimestamp != nil {
		return nil
	}
	switch stage {
	case api.StageAdmission:
		return &Blockage{Code: api.NotAdmitted}
	case api.StageBinding:
		return bindingBlockage(facts, pod, claims)
	case api.StageReservation:
		if pod.Spec.NodeName == "" {
			return nil
		}
		since := boundSince(facts.Snapshot, pod)
		if since.IsZero() {
			since = pod.CreationTimestamp.Time
		}
		if Overdue(facts.Snapshot, since) {
			return &Blockage{Code: api.ClaimNotReady}
		}
	case api.StagePreparation, api.StageInjection:
		if found := startBlockage(facts.Snapshot, pod); found != nil {
			return found
		}
		return deviceBlockage(facts, pod, claims, stage)
	case api.StageRunning:
		if found := deviceBlockage(facts, pod, claims, stage); found != nil {
			return found
		}
		if len(nodeFindings(facts.Snapshot, pod)) > 0 {
			return &Blockage{Code: api.NodeNotReady}
		}
	case api.StageClaimGeneration:
		if snapshot.Waits(pod) && slices.ContainsFunc(claims, func(pc cluster.PodClaim) bool { return refusedClaim(facts.Snapshot, pod, &pc) != nil }) {
			return &Blockage{Code: api.ClaimNotReady}
		}
	case api.StageQueueing, api.StageNodeFit, api.StageAllocation, api.StageCleanup:
		// The verdict is enough.
	}
	return nil
}

// bindingBlockage reports binding conditions that the scheduler waits for: failed
// conditions, and conditions that take more than a minute.
func bindingBlockage(facts *cluster.Cluster, pod *corev1.Pod, claims []cluster.PodClaim) *Blockage {
	for i := range claims {
		claim := claims[i].Claim
		if claim == nil || claim.Status.Allocation == nil {
			continue
		}
		since := pod.CreationTimestamp
		if at := claim.Status.Allocation.AllocationTimestamp; !at.IsZero() {
			since = *at
		}
		for _, awaited := range facts.Claims.Awaited(claim) {
			if awaited.Failed || Overdue(facts.Snapshot, since.Time) {
				return &Blockage{Code: api.BindingPending}
			}
		}
	}
	return nil
}

// startBlockage reports why a pod on its node has not started.
func startBlockage(snap *snapshot.Snapshot, pod *corev1.Pod) *Blockage {
	if len(nodeFindings(snap, pod)) > 0 {
		return &Blockage{Code: api.NodeNotReady}
	}
	if len(unresolvedContainers(pod)) > 0 {
		return &Blockage{Code: api.InjectionFailed}
	}
	if len(failingContainers(pod)) > 0 {
		return nil
	}
	if event := kubeletEvent(snap, pod); event != nil {
		switch {
		case len(cdiDevices(event.Message)) > 0:
			return &Blockage{Code: api.InjectionFailed}
		case event.Reason == reasonPrepare:
			return &Blockage{Code: api.PreparationFailed}
		case event.Reason == reasonSandbox:
			return &Blockage{Code: api.PodNotStarted}
		default:
			return nil
		}
	}
	since := boundSince(snap, pod)
	if sandboxReady(pod) != nil || progressEvent(snap, pod) != nil || !Overdue(snap, since) {
		return nil
	}
	why := "no event is known that says why"
	if Hides(snap, snapshot.ResourceEvents, pod.Namespace) {
		why = "its events could not be read"
	}
	return &Blockage{Code: api.PodNotStarted, Reason: fmt.Sprintf(
		"the pod was bound to node %s %s and has not started, which takes less than %s as a rule; %s",
		pod.Spec.NodeName, snap.Ago(since), duration.HumanDuration(overdueAfter), why)}
}

// deviceBlockage reports problems with the devices of a pod on its node.
func deviceBlockage(facts *cluster.Cluster, pod *corev1.Pod, claims []cluster.PodClaim, stage api.Stage) *Blockage {
	if len(evictions(facts, pod)) > 0 {
		return &Blockage{Code: api.EvictionDue}
	}
	for i := range claims {
		claim := claims[i].Claim
		if claim == nil || claims[i].Generated || claim.Status.Allocation == nil {
			continue
		}
		// A running pod keeps the devices of an absent driver.
		if away, gone := vanished(facts, claim); gone != nil || len(away) > 0 && stage != api.StageRunning {
			return &Blockage{Code: api.DeviceMissing}
		}
		for j := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[j]
			if Doubled(facts, claim, result) != nil {
				return &Blockage{Code: api.DeviceAllocatedTwice}
			}
			if DeviceNotReady(claim, result) != nil {
				return &Blockage{Code: api.DeviceUnhealthy}
			}
		}
	}
	if len(Unhealthy(facts, pod, claims)) > 0 {
		return &Blockage{Code: api.DeviceUnhealthy}
	}
	return nil
}
