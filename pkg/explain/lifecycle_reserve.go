// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// consumerState is what became of somebody that a claim is reserved for.
type consumerState int

const (
	consumerUnknown consumerState = iota
	// consumerUses is a consumer that exists and has not ended.
	consumerUses
	// consumerFinished is a pod that will not run any more.
	consumerFinished
	// consumerReplaced is one whose name another object has now.
	consumerReplaced
	consumerGone
)

// stale reports whether the resourceclaim controller should remove the consumer.
func (s consumerState) stale() bool { return s >= consumerFinished }

// consumerName is how people name a consumer: "pod/train-0".
func consumerName(c *resourceapi.ResourceClaimConsumerReference) string {
	return strings.TrimSuffix(c.Resource, "s") + "/" + c.Name
}

// consumer finds out what became of a consumer of a claim, as syncClaim of the
// resourceclaim controller does.
func (x *inquiry) consumer(namespace string, c *resourceapi.ResourceClaimConsumerReference) consumerState {
	switch {
	case c.APIGroup == "" && c.Resource == "pods":
		pod := x.snap.Pod(namespace, c.Name)
		switch {
		case pod == nil && x.hides(snapshot.ResourcePods, namespace):
			return consumerUnknown
		case pod == nil:
			return consumerGone
		case pod.UID != c.UID:
			return consumerReplaced
		case finished(pod), pod.DeletionTimestamp != nil && pod.Spec.NodeName == "":
			return consumerFinished
		}
		return consumerUses
	case c.APIGroup == schedulingapi.GroupName && c.Resource == "podgroups":
		group := x.snap.PodGroup(namespace, c.Name)
		switch {
		case group == nil && x.hides(snapshot.ResourcePodGroups, namespace), len(x.snap.PodGroups) == 0:
			// A server that does not serve the groups leaves no gap.
			return consumerUnknown
		case group == nil:
			return consumerGone
		case group.UID != c.UID:
			return consumerReplaced
		}
		return consumerUses
	default:
		return consumerUnknown
	}
}

// consumerText says who a consumer is and what became of it.
func (x *inquiry) consumerText(namespace string, c *resourceapi.ResourceClaimConsumerReference) string {
	name := consumerName(c)
	switch x.consumer(namespace, c) {
	case consumerUses:
		if pod := x.snap.Pod(namespace, c.Name); c.Resource == "pods" && pod != nil && pod.DeletionTimestamp != nil {
			return name + ", which is being deleted"
		}
		return name + ", which uses it"
	case consumerFinished:
		return name + ", which is finished"
	case consumerReplaced:
		return name + " of an earlier UID, which no longer exists"
	case consumerGone:
		return name + ", which no longer exists"
	default:
		return name
	}
}

// reservedForText lists consumers with their UIDs, for evidence.
func reservedForText(claim *resourceapi.ResourceClaim) string {
	if len(claim.Status.ReservedFor) == 0 {
		return "nobody"
	}
	list := make([]string, 0, len(claim.Status.ReservedFor))
	for i := range claim.Status.ReservedFor {
		c := &claim.Status.ReservedFor[i]
		list = append(list, fmt.Sprintf("%s (UID %s)", consumerName(c), c.UID))
	}
	return english.Sample(list, 3)
}

// fullyReserved reports whether a claim has as many consumers as it can have.
func fullyReserved(claim *resourceapi.ResourceClaim) bool {
	return len(claim.Status.ReservedFor) >= resourceapi.ResourceClaimReservedForMaxSize
}

// fullForPod reports whether the scheduler turns the pod down because nobody more
// can use a claim (PreFilter of its dynamicresources plugin).
func (x *inquiry) fullForPod(claim *resourceapi.ResourceClaim) bool {
	return x.subject.pod != nil && claim != nil && claim.Status.Allocation != nil &&
		fullyReserved(claim) && !x.site.alloc.Reserved(claim, x.subject.pod)
}

// reservationFindings tells why a pod may not use its claims yet.
func (x *inquiry) reservationFindings(pod *corev1.Pod, claims []allocator.PodClaim) []finding {
	var findings []finding
	for i := range claims {
		pc := &claims[i]
		claim := pc.Claim
		switch {
		case pod.Spec.NodeName != "" && errors.Is(pc.Problem, allocator.ErrClaimNotOwned):
			findings = append(findings, x.foreignClaim(pod, pc))
		case pod.Spec.NodeName != "" && errors.Is(pc.Problem, allocator.ErrClaimMissing):
			findings = append(findings, x.boundWithout(pod, pc))
		case claim == nil || x.site.alloc.Reserved(claim, pod):
			continue
		case claim.Status.Allocation == nil && pod.Spec.NodeName == "":
			continue
		case claim.Status.Allocation == nil:
			findings = append(findings, x.boundUnallocated(pod, pc))
			if claim.DeletionTimestamp != nil {
				findings = append(findings, x.deletingClaim(claim))
			}
		default:
			findings = append(findings, x.unreserved(pod, claim))
		}
	}
	return append(findings, x.toldByKubelet(pod)...)
}

// boundWithout is about a pod on its node whose claim does not exist.
func (x *inquiry) boundWithout(pod *corev1.Pod, pc *allocator.PodClaim) finding {
	f := finding{instead: true, reason: fmt.Sprintf("the pod is bound to node %s, but %s", pod.Spec.NodeName, pc.Problem)}
	if name := claimNameOf(pod, pc.Entry); name != "" {
		f.prove(whatif.PodObject(pod), entryPath(pc.Entry)+".resourceClaimName", name, "a ResourceClaim of the namespace")
	} else {
		f.prove(whatif.PodObject(pod), fmt.Sprintf("status.resourceClaimStatuses[name=%s].resourceClaimName", pc.Entry), "a claim that no longer exists", "a ResourceClaim of the namespace")
	}
	f.step(api.ActorUser, anewWithClaims)
	return f
}

// anewWithClaims is what helps a pod on a node that nobody allocates for.
const anewWithClaims = "delete and recreate the pod so that it gets a new claim: the scheduler allocates claims only before it binds a pod"

// boundUnallocated is about a pod that is on a node although it has no devices:
// only the scheduler allocates, and only before it binds.
func (x *inquiry) boundUnallocated(pod *corev1.Pod, pc *allocator.PodClaim) finding {
	name := pc.Entry
	if !pc.Generated {
		name = pc.Claim.Name
	}
	f := finding{instead: true, reason: fmt.Sprintf("the pod is bound to node %s, but claim %s is not allocated; the scheduler allocates claims only before it binds a pod", pod.Spec.NodeName, name)}
	if bound := x.boundSince(pod); !pc.Generated && !bound.IsZero() && pc.Claim.CreationTimestamp.After(bound) {
		f.reason += ", and the claim was created after that"
		f.prove(whatif.ClaimObject(pc.Claim), "metadata.creationTimestamp", pc.Claim.CreationTimestamp.UTC().Format(time.RFC3339), "before "+bound.UTC().Format(time.RFC3339)+", when the pod was bound")
		f.step(api.ActorUser, anewWithClaims)
		return f
	}
	if pc.Claim.DeletionTimestamp != nil {
		f.step(api.ActorUser, anewWithClaims)
		return f
	}
	f.reason += "; the pod may have been bound without the scheduler"
	f.prove(whatif.PodObject(pod), "spec.nodeName", pod.Spec.NodeName, "empty until the scheduler binds the pod")
	if !pc.Generated {
		f.prove(whatif.ClaimObject(pc.Claim), "status.allocation", "missing", "devices for node "+pod.Spec.NodeName)
	}
	f.step(api.ActorUser, "delete and recreate the pod without spec.nodeName, so that the scheduler allocates its claims; to place it on that node, use spec.nodeSelector with kubernetes.io/hostname")
	return f
}

// boundSince is when a pod was bound to its node, zero if that is not known.
func (x *inquiry) boundSince(pod *corev1.Pod) time.Time {
	if c := podCondition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	if event := newestEvent(x.podEvents(pod), func(e *corev1.Event) bool { return e.Reason == "Scheduled" }); event != nil {
		return eventTime(event).Time
	}
	return time.Time{}
}

// unreserved is about a claim with devices that a pod may not use.
func (x *inquiry) unreserved(pod *corev1.Pod, claim *resourceapi.ResourceClaim) finding {
	f := finding{instead: pod.Spec.NodeName != ""}
	f.prove(whatif.ClaimObject(claim), "status.reservedFor", reservedForText(claim), fmt.Sprintf("pod/%s (UID %s)", pod.Name, pod.UID))
	var earlier bool
	for i := range claim.Status.ReservedFor {
		c := &claim.Status.ReservedFor[i]
		earlier = earlier || c.Resource == "pods" && c.Name == pod.Name
	}
	switch {
	case fullyReserved(claim):
		f.instead = true
		f.reason = fmt.Sprintf("claim %s has reached the limit of %d consumers (status.reservedFor)", claim.Name, len(claim.Status.ReservedFor))
		f.step(api.ActorUser, "let some pods use a claim of their own: one claim can have at most %d consumers", resourceapi.ResourceClaimReservedForMaxSize)
		f.step(api.ActorNobody, "a pod that uses claim %s ends", claim.Name)
	case pod.Spec.NodeName == "":
		// The scheduler reserves it when it binds the pod.
		f.reason = ""
	case earlier:
		f.reason = fmt.Sprintf("the pod is bound to node %s, but claim %s is reserved for an earlier pod of the same name", pod.Spec.NodeName, claim.Name)
		f.step(api.ActorNobody, "the resourceclaim controller removes the reservation of the pod that is gone, and reserves the claim for this one")
	default:
		f.reason = fmt.Sprintf("the pod is bound to node %s, but claim %s is not reserved for it, so the kubelet does not prepare its devices", pod.Spec.NodeName, claim.Name)
		f.step(api.ActorNobody, "the resourceclaim controller reserves allocated claims for pods that were bound without it")
	}
	if pod.Spec.NodeName != "" && x.overdue(pod.CreationTimestamp.Time) {
		f.step(api.ActorAdmin, "check that kube-controller-manager runs, with its resourceclaim controller")
	}
	return f
}
