// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// UsageOf chooses what counts as use, and how it is grouped.
type UsageOf struct {
	// By is "namespace", "owner" or "label=KEY".
	By string
	// Namespace is the only namespace that counts, empty for all; Labels select pods and
	// claims, nil for all.
	Namespace string
	Labels    labels.Selector
}

// usageGroups puts claims and waiting pods into groups.
type usageGroups struct {
	ofClaim func(*resourceapi.ResourceClaim) string
	ofPod   func(*corev1.Pod) string
	// has and hasPod report whether a claim, or a pod, counts.
	has    func(*resourceapi.ResourceClaim) bool
	hasPod func(*corev1.Pod) bool
}

func byNamespace() usageGroups {
	return usageGroups{
		ofClaim: func(claim *resourceapi.ResourceClaim) string { return claim.Namespace },
		ofPod:   func(pod *corev1.Pod) string { return pod.Namespace },
		has:     func(*resourceapi.ResourceClaim) bool { return true },
		hasPod:  func(*corev1.Pod) bool { return true },
	}
}

// groups returns the groups that a user chose.
func (u *usageCounter) groups(of UsageOf) usageGroups {
	groups := byNamespace()
	if key, ok := strings.CutPrefix(of.By, "label="); ok {
		groups.ofPod = func(pod *corev1.Pod) string { return u.labelsOfPod(pod)[key] }
		groups.ofClaim = func(claim *resourceapi.ResourceClaim) string { return u.labelsOfClaim(claim)[key] }
	} else if of.By == "owner" {
		groups.ofPod, groups.ofClaim = ownerName, u.ownerOfClaim
	}
	in := func(namespace string) bool { return of.Namespace == "" || of.Namespace == namespace }
	all := of.Labels == nil || of.Labels.Empty()
	groups.hasPod = func(pod *corev1.Pod) bool { return in(pod.Namespace) && (all || of.Labels.Matches(u.labelsOfPod(pod))) }
	groups.has = func(claim *resourceapi.ResourceClaim) bool {
		return in(claim.Namespace) && (all || of.Labels.Matches(u.labelsOfClaim(claim)))
	}
	return groups
}

// ownerOfClaim returns the workload whose pod uses a claim, or the claim if no pod does.
func (u *usageCounter) ownerOfClaim(claim *resourceapi.ResourceClaim) string {
	if pods := u.cluster.Claims.Users(claim.Namespace, claim.Name); len(pods) > 0 {
		return ownerName(pods[0])
	}
	return claim.Namespace + "/" + api.RefTo(api.KindClaim, claim).Argument()
}

// ownerName returns NAMESPACE/TYPE/NAME of the workload of a pod, or of a pod without one.
func ownerName(pod *corev1.Pod) string {
	owner := whatif.Owner(pod)
	if owner.Kind == "" {
		owner = api.RefTo(api.KindPod, pod)
	}
	return pod.Namespace + "/" + owner.Argument()
}

// labelsOfPod returns the labels of a pod and, where it has none of a key, of its namespace.
func (u *usageCounter) labelsOfPod(pod *corev1.Pod) labels.Set {
	if namespace := u.cluster.Snapshot.Namespace(pod.Namespace); namespace != nil {
		return labels.Merge(namespace.Labels, pod.Labels)
	}
	return pod.Labels
}

// labelsOfClaim returns the labels of the pods of a claim and, where they have none of a key,
// of the claim or of its namespace.
func (u *usageCounter) labelsOfClaim(claim *resourceapi.ResourceClaim) labels.Set {
	set := labels.Merge(nil, claim.Labels)
	if namespace := u.cluster.Snapshot.Namespace(claim.Namespace); namespace != nil {
		set = labels.Merge(namespace.Labels, set)
	}
	for _, pod := range slices.Backward(u.cluster.Claims.Users(claim.Namespace, claim.Name)) {
		set = labels.Merge(set, pod.Labels)
	}
	return set
}

// idleSeconds returns for how long no pod uses an allocated claim.
func (u *usageCounter) idleSeconds(claim *resourceapi.ResourceClaim) int64 {
	since := cmp.Or(claim.Status.Allocation.AllocationTimestamp, &claim.CreationTimestamp)
	for _, pod := range u.cluster.Claims.Users(claim.Namespace, claim.Name) {
		for i := range pod.Status.ContainerStatuses {
			if end := pod.Status.ContainerStatuses[i].State.Terminated; end != nil && since.Before(&end.FinishedAt) {
				since = &end.FinishedAt
			}
		}
	}
	_, seconds := age(u.cluster, ptr.Deref(since, metav1.Time{}))
	return seconds
}
