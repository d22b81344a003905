// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
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

// Stages has the stages of claims, cheaply enough for all claims of a cluster: the
// allocator is not asked. The stages are the same as in [explain.Explain], except that NodeFit is not
// distinguished from Allocation, for which all nodes would have to be looked at.
type Stages struct {
	cluster *cluster.Cluster

	// events are by the pod, claimEvents are the events of all claims.
	events      map[types.NamespacedName][]*corev1.Event
	claimEvents []*corev1.Event
	// quiet is the cluster without the events of any pod.
	quiet *cluster.Cluster
}

// NewStages collects the events of pods and claims.
func NewStages(facts *cluster.Cluster) *Stages {
	s := &Stages{cluster: facts, events: map[types.NamespacedName][]*corev1.Event{}}
	for _, event := range facts.Snapshot.Events {
		if about := &event.InvolvedObject; about.Kind == api.KindPod {
			key := types.NamespacedName{Namespace: about.Namespace, Name: about.Name}
			s.events[key] = append(s.events[key], event)
		} else if about.Kind == api.KindClaim {
			s.claimEvents = append(s.claimEvents, event)
		}
	}
	s.quiet = facts.WithEvents(s.claimEvents)
	return s
}

// stageOrder returns the stages in the order of a pod's life.
func stageOrder() []api.Stage {
	return []api.Stage{
		api.StageAdmission, api.StageClaimGeneration, api.StageQueueing, api.StageNodeFit, api.StageAllocation, api.StageBinding,
		api.StageReservation, api.StagePreparation, api.StageInjection, api.StageRunning, api.StageCleanup,
	}
}

// OfClaim returns the stage of the pod that uses the claim, of several the least advanced
// one. It is empty if no pod is known to.
func (s *Stages) OfClaim(claim *resourceapi.ResourceClaim) api.Stage {
	order := stageOrder()
	first := api.Stage("")
	for _, pod := range s.cluster.Claims.Users(claim.Namespace, claim.Name) {
		if stage := s.ofPod(pod); first == "" || slices.Index(order, stage) < slices.Index(order, first) {
			first = stage
		}
	}
	return first
}

func (s *Stages) ofPod(pod *corev1.Pod) api.Stage {
	return StageOf(s.about(pod), pod, s.cluster.Claims.OfPod(pod))
}

// about returns the cluster without the events of other pods.
func (s *Stages) about(pod *corev1.Pod) *cluster.Cluster {
	own := s.events[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
	if len(own) == 0 {
		return s.quiet
	}
	return s.cluster.WithEvents(slices.Concat(own, s.claimEvents))
}

// BlockedPod is a pod with allocated devices that cannot work with them.
type BlockedPod struct {
	Namespace, Name string
	// Owner is the workload of the pod, empty for a bare pod.
	Owner api.ObjectRef
	Code  api.Code
	Stage api.Stage
	// Summary is one sentence, Actor can act, Steps are the next steps.
	Summary, Actor string
	Steps          []api.NextStep
	// Unregistered is the driver that the kubelet of Node does not know, if that blocks the
	// pod, and Proof the event for it.
	Unregistered, Node string
	Proof              *api.Evidence
}

// BlockedPods lists the pods of the cluster that have their devices allocated and cannot
// work with them, by namespace and name. The allocator is not asked. The explanation of
// each pod has the same facts.
func (s *Stages) BlockedPods() []BlockedPod {
	var found []BlockedPod
	for _, pod := range s.cluster.Snapshot.Pods {
		if pod.DeletionTimestamp != nil || snapshot.Finished(pod) {
			continue
		}
		claims := s.cluster.Claims.OfPod(pod)
		if len(claims) == 0 {
			continue
		}
		about := s.about(pod)
		stage := StageOf(about, pod, claims)
		if stage != api.StageBinding && pod.Spec.NodeName == "" || findBlockage(about, pod, claims, stage) == nil {
			continue
		}
		own := Of(about, pod, claims)
		var steps []api.NextStep
		for i := range own.Findings {
			steps = append(steps, own.Findings[i].Steps...)
		}
		blocked := BlockedPod{
			Namespace: pod.Namespace, Name: pod.Name, Owner: whatif.Owner(pod), Code: own.Blocked.Code, Stage: stage, Summary: english.Sentence(Summarize(own.Findings, "")),
			Actor: Actor(steps), Steps: steps, Node: pod.Spec.NodeName,
		}
		if own.Blocked.Code == api.PreparationFailed {
			event := kubeletEvent(about.Snapshot, pod)
			if driver, ok := unregisteredDriver(unwrapped(event.Message)); ok {
				blocked.Unregistered, blocked.Proof = driver, new(eventEvidence(event))
			}
		}
		found = append(found, blocked)
	}
	return found
}
