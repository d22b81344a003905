// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Life is the stage of a pod and its findings, the most important first.
type Life struct {
	Stage    api.Stage
	Findings []Finding
	// Blocked is set if the pod has its devices and cannot work with them, or if its claims
	// are refused.
	Blocked *Blockage
}

// HasReason reports whether any finding has a reason.
func (l *Life) HasReason() bool {
	return slices.ContainsFunc(l.Findings, func(f Finding) bool { return f.Reason != "" })
}

// After returns the life of a pod whose workload lacks others: the reason why the workload
// does not create them comes first, unless the pod itself is blocked.
func (l *Life) After(creation Life) Life {
	switch {
	case creation.Blocked == nil:
		return *l
	case l.Blocked != nil:
		return Life{Stage: l.Stage, Findings: slices.Concat(l.Findings, creation.Findings), Blocked: l.Blocked}
	}
	return Life{Stage: cmp.Or(l.Stage, creation.Stage), Findings: slices.Concat(creation.Findings, l.Findings), Blocked: creation.Blocked}
}

// Of returns the stage of a pod and its findings.
func Of(facts *cluster.Cluster, pod *corev1.Pod, claims []cluster.PodClaim) Life {
	l := Life{Stage: StageOf(facts, pod, claims)}
	switch l.Stage {
	case api.StageAdmission:
		l.Findings = slices.Concat(admissionFindings(facts.Snapshot, pod), generationFindings(facts.Snapshot, pod, claims), GateFindings(pod))
	case api.StageClaimGeneration:
		l.Findings = slices.Concat(generationFindings(facts.Snapshot, pod, claims), GateFindings(pod), kubeletReports(facts.Snapshot, pod))
	case api.StageQueueing:
		l.Findings = queueingFindings(facts.Snapshot, pod, claims)
	case api.StageBinding:
		l.Findings = bindingFindings(facts, claims)
	case api.StageReservation:
		l.Findings = reservationFindings(facts, pod, claims)
	case api.StagePreparation, api.StageInjection:
		l.Findings = slices.Concat(kubeletFindings(facts.Snapshot, pod, claims), deviceFindings(facts, pod, claims))
	case api.StageRunning:
		l.Findings = runningFindings(facts, pod, claims)
	case api.StageCleanup:
		l.Findings = cleanupFindings(facts, pod, claims)
	case api.StageNodeFit, api.StageAllocation:
		// The funnel and the nodes tell more.
	}
	if l.Blocked = findBlockage(facts, pod, claims, l.Stage); l.Blocked != nil && l.Blocked.Reason != "" {
		l.Findings = append([]Finding{{Instead: true, Reason: l.Blocked.Reason}}, l.Findings...)
	}
	return l
}

// StageOf returns the first unfinished stage of a pod.
func StageOf(facts *cluster.Cluster, pod *corev1.Pod, claims []cluster.PodClaim) api.Stage {
	switch {
	case pod.DeletionTimestamp != nil, snapshot.Finished(pod):
		return api.StageCleanup
	case pod.Status.Phase == corev1.PodRunning && len(unresolvedContainers(pod)) > 0:
		return api.StageInjection
	case pod.Status.Phase == corev1.PodRunning && sandboxLost(pod) == nil:
		return api.StageRunning
	case len(initializing(pod)) > 0:
		return api.StageRunning
	case Held(facts.Snapshot, pod):
		return api.StageAdmission
	}
	bound := pod.Spec.NodeName != ""
	allocated, reserved, bindable := true, true, true
	for i := range claims {
		pc := &claims[i]
		switch {
		case bound && errors.Is(pc.Problem, cluster.ErrClaimUnreadable):
			// The kubelet's events may tell.
		case bound && pc.Claim != nil && pc.Claim.Status.Allocation != nil && !errors.Is(pc.Problem, cluster.ErrClaimNotOwned):
			reserved = reserved && facts.Claims.Reserved(pc.Claim, pod)
		case errors.Is(pc.Problem, cluster.ErrClaimNotCreated), errors.Is(pc.Problem, cluster.ErrTemplateMissing):
			return api.StageClaimGeneration
		case bound && pc.Problem != nil:
			reserved = false
		case pc.Problem != nil:
			return api.StageQueueing
		case pc.Claim == nil || pc.Claim.Status.Allocation == nil:
			allocated = false
		default:
			reserved = reserved && facts.Claims.Reserved(pc.Claim, pod)
			bindable = bindable && len(facts.Claims.Awaited(pc.Claim)) == 0
		}
	}
	switch {
	case bound && (!allocated || !reserved):
		return api.StageReservation
	case bound && isPrepared(facts.Snapshot, pod):
		return api.StageInjection
	case bound:
		return api.StagePreparation
	case len(pod.Spec.SchedulingGates) > 0, awaitsOther(facts.Snapshot, pod):
		return api.StageQueueing
	case !allocated:
		return api.StageAllocation
	case !bindable:
		return api.StageBinding
	case !reserved:
		return api.StageReservation
	default:
		return api.StageNodeFit
	}
}
