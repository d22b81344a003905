// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// fullyReserved reports whether a claim has as many consumers as it can have.
func fullyReserved(claim *resourceapi.ResourceClaim) bool {
	return len(claim.Status.ReservedFor) >= resourceapi.ResourceClaimReservedForMaxSize
}

// FullForPod reports whether the scheduler rejects the pod because nobody more can use a
// claim (PreFilter of its dynamicresources plugin).
func FullForPod(facts *cluster.Cluster, pod *corev1.Pod, claim *resourceapi.ResourceClaim) bool {
	return pod != nil && claim != nil && claim.Status.Allocation != nil &&
		fullyReserved(claim) && !facts.Claims.Reserved(claim, pod)
}

// reservationFindings says why a pod may not use its claims yet.
func reservationFindings(facts *cluster.Cluster, pod *corev1.Pod, claims []cluster.PodClaim) []Finding {
	var findings []Finding
	for i := range claims {
		pc := &claims[i]
		claim := pc.Claim
		switch {
		case pod.Spec.NodeName != "" && errors.Is(pc.Problem, cluster.ErrClaimNotOwned):
			findings = append(findings, foreignClaim(pod, pc))
		case pod.Spec.NodeName != "" && errors.Is(pc.Problem, cluster.ErrClaimMissing):
			findings = append(findings, boundWithout(pod, pc))
		case claim == nil || facts.Claims.Reserved(claim, pod):
			continue
		case claim.Status.Allocation == nil && pod.Spec.NodeName == "":
			continue
		case claim.Status.Allocation == nil:
			findings = append(findings, boundUnallocated(facts.Snapshot, pod, pc))
			if claim.DeletionTimestamp != nil {
				findings = append(findings, DeletingClaim(facts.Snapshot, claim))
			}
		default:
			findings = append(findings, unreserved(facts.Snapshot, pod, claim))
		}
	}
	return append(findings, kubeletReports(facts.Snapshot, pod)...)
}

// boundWithout reports a pod on its node whose claim does not exist.
func boundWithout(pod *corev1.Pod, pc *cluster.PodClaim) Finding {
	f := Finding{Instead: true, Reason: fmt.Sprintf("the pod is bound to node %s, but %s", pod.Spec.NodeName, pc.Problem)}
	if name := claimNameOf(pod, pc.Entry); name != "" {
		f.AddEvidence(api.RefTo(api.KindPod, pod), entryPath(pc.Entry)+".resourceClaimName", name, "a ResourceClaim of the namespace")
	} else {
		f.AddEvidence(api.RefTo(api.KindPod, pod), fmt.Sprintf("status.resourceClaimStatuses[name=%s].resourceClaimName", pc.Entry), "a claim that no longer exists", "a ResourceClaim of the namespace")
	}
	f.Step(api.ActorUser, anewWithClaims)
	return f
}

// anewWithClaims is the advice for a pod on a node whose claims nobody allocates.
const anewWithClaims = "delete and recreate the pod so that it gets a new claim: the scheduler allocates claims only before it binds a pod"

// boundUnallocated reports a pod that is on a node without devices: only the scheduler
// allocates, and only before it binds.
func boundUnallocated(snap *snapshot.Snapshot, pod *corev1.Pod, pc *cluster.PodClaim) Finding {
	name := pc.Entry
	if !pc.Generated {
		name = pc.Claim.Name
	}
	f := Finding{Instead: true, Reason: fmt.Sprintf("the pod is bound to node %s, but claim %s is not allocated; the scheduler allocates claims only before it binds a pod", pod.Spec.NodeName, name)}
	if bound := boundSince(snap, pod); !pc.Generated && !bound.IsZero() && pc.Claim.CreationTimestamp.After(bound) {
		f.Reason += ", and the claim was created after that"
		f.AddEvidence(api.RefTo(api.KindClaim, pc.Claim), "metadata.creationTimestamp", pc.Claim.CreationTimestamp.UTC().Format(time.RFC3339), "before "+bound.UTC().Format(time.RFC3339)+", when the pod was bound")
		f.Step(api.ActorUser, anewWithClaims)
		return f
	}
	if pc.Claim.DeletionTimestamp != nil {
		f.Step(api.ActorUser, anewWithClaims)
		return f
	}
	f.Reason += "; the pod may have been bound without the scheduler"
	f.AddEvidence(api.RefTo(api.KindPod, pod), "spec.nodeName", pod.Spec.NodeName, "empty until the scheduler binds the pod")
	if !pc.Generated {
		f.AddEvidence(api.RefTo(api.KindClaim, pc.Claim), "status.allocation", "missing", "devices for node "+pod.Spec.NodeName)
	}
	f.Step(api.ActorUser, "delete and recreate the pod without spec.nodeName, so that the scheduler allocates its claims; to place it on that node, use spec.nodeSelector with kubernetes.io/hostname")
	return f
}

// boundSince returns when a pod was bound to its node, zero if unknown.
func boundSince(snap *snapshot.Snapshot, pod *corev1.Pod) time.Time {
	if c := PodCondition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	if event := newestEvent(podEvents(snap, pod), func(e *corev1.Event) bool { return e.Reason == "Scheduled" }); event != nil {
		return EventTime(event).Time
	}
	return time.Time{}
}

// unreserved reports an allocated claim that is not reserved for the pod.
func unreserved(snap *snapshot.Snapshot, pod *corev1.Pod, claim *resourceapi.ResourceClaim) Finding {
	f := Finding{Instead: pod.Spec.NodeName != ""}
	f.AddEvidence(api.RefTo(api.KindClaim, claim), "status.reservedFor", reservedForText(claim), fmt.Sprintf("pod/%s (UID %s)", pod.Name, pod.UID))
	var earlier bool
	for i := range claim.Status.ReservedFor {
		c := &claim.Status.ReservedFor[i]
		earlier = earlier || c.Resource == "pods" && c.Name == pod.Name
	}
	switch {
	case fullyReserved(claim):
		f.Instead = true
		f.Reason = fmt.Sprintf("claim %s has reached the limit of %d consumers (status.reservedFor)", claim.Name, len(claim.Status.ReservedFor))
		f.Step(api.ActorUser, "let some pods use a claim of their own: one claim can have at most %d consumers", resourceapi.ResourceClaimReservedForMaxSize)
		f.Step(api.ActorNobody, "a pod that uses claim %s ends", claim.Name)
	case pod.Spec.NodeName == "":
		// The scheduler reserves it when it binds the pod.
		f.Reason = ""
	case earlier:
		f.Reason = fmt.Sprintf("the pod is bound to node %s, but claim %s is reserved for an earlier pod of the same name", pod.Spec.NodeName, claim.Name)
		f.Step(api.ActorNobody, "the resourceclaim controller removes the reservation of the pod that is gone, and reserves the claim for this one")
	default:
		f.Reason = fmt.Sprintf("the pod is bound to node %s, but claim %s is not reserved for it, so the kubelet does not prepare its devices", pod.Spec.NodeName, claim.Name)
		f.Step(api.ActorNobody, "the resourceclaim controller reserves allocated claims for pods that were bound without it")
	}
	if pod.Spec.NodeName != "" && Overdue(snap, pod.CreationTimestamp.Time) {
		f.Step(api.ActorAdmin, "check that kube-controller-manager runs, with its resourceclaim controller")
	}
	return f
}

// entryPath returns the path of an entry of a pod's claims.
func entryPath(entry string) string { return fmt.Sprintf("spec.resourceClaims[name=%s]", entry) }

// foreignClaim reports a claim in the pod's status that was made for another pod, mostly
// for an earlier pod of the same name.
func foreignClaim(pod *corev1.Pod, pc *cluster.PodClaim) Finding {
	f := Finding{Instead: true}
	owner := metav1.GetControllerOfNoCopy(pc.Claim)
	whose, found := "nobody", "no controller"
	if owner != nil {
		whose = fmt.Sprintf("%s %s", strings.ToLower(owner.Kind), owner.Name)
		found = string(owner.UID)
		if owner.Name == pod.Name && owner.Kind == api.KindPod {
			whose = "an earlier pod of the same name"
		}
	}
	f.Reason = fmt.Sprintf("claim %s still exists and belongs to %s, not to this pod", pc.Claim.Name, whose)
	f.AddEvidence(api.RefTo(api.KindClaim, pc.Claim), "metadata.ownerReferences[controller=true].uid", found, string(pod.UID))
	if owner != nil && owner.Kind != api.KindPod {
		return f
	}
	f.Step(api.ActorNobody, "the garbage collector deletes the claim whose owner is gone, and the resourceclaim controller creates another one for this pod")
	return f
}

// DeletedClaim returns the step that brings back a deleted claim that was made from a
// template. The resourceclaim controller may look at the pod while it still remembers the
// claim, and then does not look again before the pod or its template changes (claimExists
// in pkg/controller/resourceclaim/controller.go). Any change of the pod is enough; a claim
// made by hand would not be the pod's.
func DeletedClaim(pod *corev1.Pod, pc *cluster.PodClaim) api.NextStep {
	name := pc.Entry
	for _, status := range pod.Status.ResourceClaimStatuses {
		if status.Name == pc.Entry && status.ResourceClaimName != nil {
			name = *status.ResourceClaimName
		}
	}
	return api.NextStep{
		Actor: api.ActorUser,
		Text: fmt.Sprintf("claim %s, which was created from template %s, has been deleted: the resourceclaim controller creates another one when pod %s changes in any way, or is recreated",
			name, pc.Template, pod.Name),
		Commands: []string{fmt.Sprintf("kubectl annotate %s --overwrite %s", shell.KubectlObjects("pod", pod.Namespace, pod.Name), shell.Quote("dra.kubectl.dev/deleted-claim="+name))},
	}
}

// claimNameOf returns the name of the claim that an entry of a pod refers to.
func claimNameOf(pod *corev1.Pod, entry string) string {
	for _, c := range pod.Spec.ResourceClaims {
		if c.Name == entry && c.ResourceClaimName != nil {
			return *c.ResourceClaimName
		}
	}
	return ""
}
