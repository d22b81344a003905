// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// blockage is what keeps a pod with allocated devices from working with them.
type blockage struct {
	code api.Code
	// reason is set if no finding of the stage has one.
	reason string
}

// blockage finds out whether a pod whose claims are allocated is stuck, in the
// order in which the stage reports it. Proof is an event, a condition, or that
// something takes longer than its limit. A pod that was bound a moment ago and is
// being prepared is not stuck, and neither is one whose containers wait for
// something else, such as their image.
func (x *inquiry) blockage(pod *corev1.Pod, claims []allocator.PodClaim, stage api.Stage) *blockage {
	if finished(pod) || pod.DeletionTimestamp != nil {
		return nil
	}
	switch stage {
	case api.StageBinding:
		return x.bindingBlockage(pod, claims)
	case api.StageReservation:
		if pod.Spec.NodeName == "" {
			return nil
		}
		since := x.boundSince(pod)
		if since.IsZero() {
			since = pod.CreationTimestamp.Time
		}
		if x.overdue(since) {
			return &blockage{code: api.ClaimNotReady}
		}
	case api.StagePreparation, api.StageInjection:
		if found := x.startBlockage(pod); found != nil {
			return found
		}
		return x.deviceBlockage(pod, claims)
	case api.StageRunning:
		if found := x.deviceBlockage(pod, claims); found != nil {
			return found
		}
		if len(x.nodeFindings(pod)) > 0 {
			return &blockage{code: api.NodeNotReady}
		}
	case api.StageClaimGeneration, api.StageQueueing, api.StageNodeFit, api.StageAllocation, api.StageCleanup:
		// The verdict says it.
	}
	return nil
}

// bindingBlockage is about conditions that the scheduler waits for: one that ends
// the binding, or one that has not come within a minute.
func (x *inquiry) bindingBlockage(pod *corev1.Pod, claims []allocator.PodClaim) *blockage {
	for i := range claims {
		claim := claims[i].Claim
		if claim == nil || claim.Status.Allocation == nil {
			continue
		}
		since := pod.CreationTimestamp
		if at := claim.Status.Allocation.AllocationTimestamp; !at.IsZero() {
			since = *at
		}
		for _, awaited := range x.site.alloc.Awaited(claim) {
			if awaited.Failed || x.overdue(since.Time) {
				return &blockage{code: api.BindingPending}
			}
		}
	}
	return nil
}

// startBlockage is about a pod on its node that has not started.
func (x *inquiry) startBlockage(pod *corev1.Pod) *blockage {
	if len(x.nodeFindings(pod)) > 0 {
		return &blockage{code: api.NodeNotReady}
	}
	if len(unresolvedContainers(pod)) > 0 {
		return &blockage{code: api.InjectionFailed}
	}
	if len(failingContainers(pod)) > 0 {
		return nil
	}
	if event := x.kubeletEvent(pod); event != nil {
		switch {
		case len(cdiDevices(event.Message)) > 0:
			return &blockage{code: api.InjectionFailed}
		case event.Reason == reasonPrepare:
			return &blockage{code: api.PreparationFailed}
		case event.Reason == reasonSandbox:
			return &blockage{code: api.PodNotStarted}
		default:
			return nil
		}
	}
	since := x.boundSince(pod)
	if sandboxReady(pod) != nil || x.progressEvent(pod) != nil || !x.overdue(since) {
		return nil
	}
	why := "no event is known that says why"
	if x.hides(snapshot.ResourceEvents, pod.Namespace) {
		why = "its events could not be read"
	}
	return &blockage{code: api.PodNotStarted, reason: fmt.Sprintf(
		"the pod was bound to node %s %s ago and has not started, which takes less than %s as a rule; %s",
		pod.Spec.NodeName, x.elapsed(since), duration.HumanDuration(leeway), why)}
}

// deviceBlockage is about the devices of a pod on its node.
func (x *inquiry) deviceBlockage(pod *corev1.Pod, claims []allocator.PodClaim) *blockage {
	if len(x.evictions(pod)) > 0 {
		return &blockage{code: api.EvictionDue}
	}
	for i := range claims {
		claim := claims[i].Claim
		if claim == nil || claims[i].Generated || claim.Status.Allocation == nil {
			continue
		}
		if x.vanished(claim) != nil && !allReady(claim) {
			return &blockage{code: api.DeviceMissing}
		}
		for j := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[j]
			if x.doubled(claim, result) != nil {
				return &blockage{code: api.DeviceAllocatedTwice}
			}
			if x.notReady(claim, result) != nil {
				return &blockage{code: api.DeviceUnhealthy}
			}
		}
	}
	if len(x.unhealthy(pod, claims)) > 0 {
		return &blockage{code: api.DeviceUnhealthy}
	}
	return nil
}

// allReady reports whether the driver says of every device of a claim that it is
// ready: a network driver that has moved an interface into a pod does not publish
// it any more.
func allReady(claim *resourceapi.ResourceClaim) bool {
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		if !allocator.DeviceReady(claim, &results[i]) {
			return false
		}
	}
	return len(results) > 0
}

// block turns the verdict into Blocked if the pod has its devices and cannot work
// with them. own is where the pod stands.
func (x *inquiry) block(own *life) {
	if own.blocked == nil {
		return
	}
	switch {
	case x.out.Verdict == api.Allocated, x.out.Verdict == api.Fits:
	case x.out.Verdict == api.DoesNotFit && own.stage == api.StageBinding:
		// Devices that cannot be bound are released and others are looked for.
	default:
		return
	}
	x.out.Verdict, x.out.Code = api.Blocked, own.blocked.code
}

// BlockedPod is a pod whose devices are allocated and that cannot work with them.
type BlockedPod struct {
	Namespace, Name string
	// Owner is "job/train", empty for a bare pod.
	Owner string
	Code  api.Code
	Stage api.Stage
	// Summary is one sentence.
	Summary string
}

// BlockedPods lists the pods of the cluster that have their devices allocated and
// cannot work with them, by namespace and name. The allocator is not asked. What
// is known of each is also in the explanation of the pod.
func (s *Stages) BlockedPods() []BlockedPod {
	var found []BlockedPod
	for _, pod := range s.snap.Pods {
		if pod.DeletionTimestamp != nil || finished(pod) {
			continue
		}
		claims := s.alloc.PodClaims(pod)
		if len(claims) == 0 {
			continue
		}
		x := s.inquiry(pod)
		x.out = &api.Explanation{}
		stage := x.stageOf(pod, claims)
		if stage != api.StageBinding && pod.Spec.NodeName == "" || x.blockage(pod, claims, stage) == nil {
			continue
		}
		x.subject.claims = claims
		own := x.life(pod, claims)
		x.report(own.findings)
		found = append(found, BlockedPod{
			Namespace: pod.Namespace, Name: pod.Name, Owner: workloadOf(pod), Code: own.blocked.code, Stage: stage, Summary: english.Sentence(x.out.Summary),
		})
	}
	return found
}

// inquiry is one about a pod that knows the events about that pod alone.
func (s *Stages) inquiry(pod *corev1.Pod) *inquiry {
	snap := *s.snap
	snap.Events = slices.Concat(s.events[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}], s.claimEvents)
	return &inquiry{snap: &snap, site: &site{alloc: s.alloc}, subject: &subject{pod: pod, target: api.Target{Kind: api.KindPod, Namespace: pod.Namespace, Name: pod.Name}}}
}

// workloadOf names the workload that a pod belongs to, as users do ("job/train"),
// empty for a bare pod. The ReplicaSet of a Deployment stands for the Deployment:
// its name ends with the hash in the pod's labels.
func workloadOf(pod *corev1.Pod) string {
	kind, name, _ := strings.Cut(ownerText(pod), "/")
	if hash := pod.Labels["pod-template-hash"]; kind == "ReplicaSet" && hash != "" {
		if deployment, ok := strings.CutSuffix(name, "-"+hash); ok {
			kind, name = "Deployment", deployment
		}
	}
	if name == "" {
		return ""
	}
	return strings.ToLower(kind) + "/" + name
}
