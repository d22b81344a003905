// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Reservation is a pod with its future node and devices.
type Reservation struct {
	// Pod may be missing in the snapshot.
	Pod  *corev1.Pod
	Node string
	// Claims are the claims of the pod, allocated before or not.
	Claims []ClaimReservation
}

// ClaimReservation is a claim that a pod gets with its node.
type ClaimReservation struct {
	// Entry is the name in the pod's spec.resourceClaims, empty for the claim
	// for extended resources.
	Entry string
	// Claim may not exist yet.
	Claim *resourceapi.ResourceClaim
	// Group is the PodGroup whose pods share the claim, empty if it is the pod's own:
	// the claim is created and reserved for the group.
	Group string
	// Allocation is nil if the claim has its devices already.
	Allocation *resourceapi.AllocationResult
	// Mappings tell which container gets which extended resource, for the claim
	// for extended resources.
	Mappings []corev1.ContainerExtendedResourceRequest
}

// Reserve returns the snapshot after kube-scheduler has bound the pod: the pod is on its
// node, so that its CPU, memory, ports and its place among the pods of the node are taken;
// its claims exist, are allocated and reserved for it, or for its PodGroup where that
// shares them. The argument is not modified, and all other objects are shared.
func Reserve(snap *snapshot.Snapshot, r Reservation) *snapshot.Snapshot {
	return ReserveAll(snap, []Reservation{r})
}

// ReserveAll is like [Reserve], for several pods in their order. It takes little longer
// than for one.
func ReserveAll(snap *snapshot.Snapshot, all []Reservation) *snapshot.Snapshot {
	claims, groups, pods := newEdited(snap.Claims), newEdited(snap.PodGroups), newEdited(snap.Pods)
	for i := range all {
		pods.put(bound(claims, groups, &all[i]))
	}
	after := *snap
	after.Claims, after.PodGroups, after.Pods = claims.merged(), groups.merged(), pods.merged()
	return &after
}

// bound returns a pod as it is on its node, and adds its allocations to the claims.
func bound(claims *edited[*resourceapi.ResourceClaim], groups *edited[*schedulingapi.PodGroup], r *Reservation) *corev1.Pod {
	pod := *r.Pod
	pod.Spec.NodeName = r.Node
	pod.Status.NominatedNodeName = ""
	pod.Status.ResourceClaimStatuses = slices.Clone(pod.Status.ResourceClaimStatuses)
	for i := range r.Claims {
		consumer := resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID}
		group, grouped := groups.find(pod.Namespace, r.Claims[i].Group)
		if grouped {
			consumer = resourceapi.ResourceClaimConsumerReference{APIGroup: schedulingapi.GroupName, Resource: "podgroups", Name: group.Name, UID: group.UID}
		}
		claim := allocated(claims, &r.Claims[i], &pod, consumer)
		claims.put(claim)
		if group = withClaim(group, r.Claims[i].Entry, claim.Name); group != nil {
			groups.put(group)
		}
		switch entry := r.Claims[i].Entry; {
		case entry == "":
			pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
				ResourceClaimName: claim.Name, RequestMappings: r.Claims[i].Mappings,
			}
		case fromTemplate(&pod, entry):
			setClaimName(&pod, entry, claim.Name)
		}
	}
	return &pod
}

// withClaim returns a PodGroup with the name of a claim that its pods share in its status,
// nil if it is there already or is not made from a template.
func withClaim(group *schedulingapi.PodGroup, entry, name string) *schedulingapi.PodGroup {
	if group == nil || slices.ContainsFunc(group.Status.ResourceClaimStatuses, func(s schedulingapi.PodGroupResourceClaimStatus) bool { return s.Name == entry }) ||
		slices.ContainsFunc(group.Spec.ResourceClaims, func(c schedulingapi.PodGroupResourceClaim) bool {
			return c.Name == entry && c.ResourceClaimName != nil
		}) {
		return nil
	}
	after := *group
	after.Status.ResourceClaimStatuses = append(slices.Clone(group.Status.ResourceClaimStatuses),
		schedulingapi.PodGroupResourceClaimStatus{Name: entry, ResourceClaimName: ptr.To(name)})
	return &after
}

// allocated returns the claim with its devices, reserved for the consumer. A claim that
// does not exist yet gets a unique name.
func allocated(existing *edited[*resourceapi.ResourceClaim], r *ClaimReservation, pod *corev1.Pod, consumer resourceapi.ResourceClaimConsumerReference) *resourceapi.ResourceClaim {
	claim := *r.Claim
	if claim.UID == "" {
		base := claim.Name
		if r.Entry == "" {
			base = strings.TrimSuffix(cmp.Or(claim.GenerateName, pod.Name), "-")
		}
		claim.Name = base
		for i := 1; ; i++ {
			other, taken := existing.find(claim.Namespace, claim.Name)
			if !taken || other.UID == "" && sameController(other, &claim) {
				break
			}
			claim.Name = fmt.Sprintf("%s-%d", base, i)
		}
	}
	if r.Allocation != nil {
		claim.Status.Allocation = r.Allocation
	}
	if !slices.Contains(claim.Status.ReservedFor, consumer) {
		claim.Status.ReservedFor = append(slices.Clone(claim.Status.ReservedFor), consumer)
	}
	return &claim
}

// sameController reports whether two claims were made for the same pod or group, or for
// none: two references by name are one.
func sameController(a, b *resourceapi.ResourceClaim) bool {
	of, other := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	if of == nil || other == nil {
		return of == other
	}
	return of.Kind == other.Kind && of.Name == other.Name && of.UID == other.UID
}

// fromTemplate reports whether the claim of an entry is generated, so that its
// name is in the status of the pod.
func fromTemplate(pod *corev1.Pod, entry string) bool {
	return slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
		return c.Name == entry && c.ResourceClaimName == nil
	})
}

func setClaimName(pod *corev1.Pod, entry, name string) {
	for i := range pod.Status.ResourceClaimStatuses {
		if status := &pod.Status.ResourceClaimStatuses[i]; status.Name == entry {
			status.ResourceClaimName = ptr.To(name)
			return
		}
	}
	pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses,
		corev1.PodResourceClaimStatus{Name: entry, ResourceClaimName: ptr.To(name)})
}
