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
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// usageGroups puts claims and waiting pods into groups.
type usageGroups struct {
	ofClaim func(*resourceapi.ResourceClaim) string
	ofPod   func(*corev1.Pod) string
	// namespace is the only namespace of the groups; empty for all.
	namespace string
}

func byNamespace() usageGroups {
	return usageGroups{
		ofClaim: func(claim *resourceapi.ResourceClaim) string { return claim.Namespace },
		ofPod:   func(pod *corev1.Pod) string { return pod.Namespace },
	}
}

// byOwner returns the groups of workloads, and of pods and claims without one.
func (v *Inventory) byOwner() usageGroups {
	return usageGroups{
		ofPod: ownerName,
		ofClaim: func(claim *resourceapi.ResourceClaim) string {
			if pods := v.pods.of(claim); len(pods) > 0 {
				return ownerName(pods[0])
			}
			return claim.Namespace + "/" + api.RefTo(api.KindClaim, claim).Argument()
		},
	}
}

// ownerName returns NAMESPACE/TYPE/NAME of the workload of a pod, or of a pod without one.
func ownerName(pod *corev1.Pod) string {
	owner := whatif.Owner(pod)
	if owner.Kind == "" {
		owner = api.RefTo(api.KindPod, pod)
	}
	return pod.Namespace + "/" + owner.Argument()
}

// byLabel returns the groups of values of a label: of the pod, or else of the claim, or else
// of the namespace.
func (v *Inventory) byLabel(key string) usageGroups {
	ofNamespace := func(name string) string {
		if namespace := v.cluster.Snapshot.Namespace(name); namespace != nil {
			return namespace.Labels[key]
		}
		return ""
	}
	return usageGroups{
		ofPod: func(pod *corev1.Pod) string { return cmp.Or(pod.Labels[key], ofNamespace(pod.Namespace)) },
		ofClaim: func(claim *resourceapi.ResourceClaim) string {
			for _, pod := range v.pods.of(claim) {
				if value := pod.Labels[key]; value != "" {
					return value
				}
			}
			return cmp.Or(claim.Labels[key], ofNamespace(claim.Namespace))
		},
	}
}

// UsageBy says what groups use and wait for, the largest use first: by "namespace", "owner"
// or "label=KEY". With a namespace, only its claims and pods count, but shares are always of
// the whole cluster.
func (v *Inventory) UsageBy(by, namespace string) []api.Usage {
	groups := byNamespace()
	if key, ok := strings.CutPrefix(by, "label="); ok {
		groups = v.byLabel(key)
	} else if by == "owner" {
		groups = v.byOwner()
	}
	groups.namespace = namespace
	return v.usage(by, groups)
}

// usage sums up the classes of each group.
func (v *Inventory) usage(by string, groups usageGroups) []api.Usage {
	var list []api.Usage
	total := 0
	for _, t := range v.Teams() {
		total += t.Used
	}
	teams := v.teamsBy(groups)
	for i := range teams {
		t := &teams[i]
		if len(list) == 0 || list[len(list)-1].Name != t.Namespace {
			list = append(list, api.Usage{TypeMeta: typeMeta("Usage"), By: by, Name: t.Namespace, UsedIsLowerBound: t.UsedIsLowerBound})
		}
		u := &list[len(list)-1]
		u.Classes = append(u.Classes, t.TeamClass)
		u.Used += t.Used
		u.Idle += t.Idle
		u.IdleSeconds = max(u.IdleSeconds, t.idleSeconds)
		u.LongestSeconds = max(u.LongestSeconds, t.LongestSeconds)
		u.PodsAreUnknown = u.PodsAreUnknown || t.PodsAreUnknown
	}
	waiting := map[string]int{}
	for _, pod := range v.cluster.Waiting() {
		if namespace := groups.namespace; namespace == "" || namespace == pod.Namespace {
			// A pod that asks for several classes is one.
			waiting[groups.ofPod(pod)]++
		}
	}
	for i := range list {
		u := &list[i]
		u.Waiting = waiting[u.Name]
		slices.SortStableFunc(u.Classes, func(a, b api.TeamClass) int { return cmp.Compare(b.Used, a.Used) })
		if !u.UsedIsLowerBound {
			u.Share = ptr.To(float64(u.Used) / float64(max(total, 1)))
		}
	}
	slices.SortStableFunc(list, func(a, b api.Usage) int { return cmp.Compare(b.Used, a.Used) })
	return list
}

// idleSeconds returns for how long no pod uses an allocated claim.
func (v *Inventory) idleSeconds(claim *resourceapi.ResourceClaim) int64 {
	since := cmp.Or(claim.Status.Allocation.AllocationTimestamp, &claim.CreationTimestamp)
	for _, pod := range v.pods.of(claim) {
		for i := range pod.Status.ContainerStatuses {
			if end := pod.Status.ContainerStatuses[i].State.Terminated; end != nil && since.Before(&end.FinishedAt) {
				since = &end.FinishedAt
			}
		}
	}
	_, seconds := age(v.cluster, ptr.Deref(since, metav1.Time{}))
	return seconds
}
