// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"maps"
	"math"
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// QuotaLimit is the number of equal pods, with their claims, for which a resource of a
// quota is enough.
type QuotaLimit struct {
	Quota    string
	Resource corev1.ResourceName
	Copies   int
	// Refusal is the refusal of the first copy that exceeds the quota.
	Refusal Refusal
}

// QuotaLimits lists the limits of the number of equal pods, in the order of the quotas and
// resources. Pod is nil if only claims count; claims are the usages of each pod's claims.
func QuotaLimits(quotas []*corev1.ResourceQuota, classes QuotaClasses, pod *corev1.Pod, claims ...corev1.ResourceList) []QuotaLimit {
	var limits []QuotaLimit
	for _, quota := range quotas {
		needed := corev1.ResourceList{}
		if pod != nil && inQuotaScope(quota, pod) {
			addResources(needed, PodQuotaUsage(pod))
		}
		if len(quota.Spec.Scopes) == 0 && quota.Spec.ScopeSelector == nil {
			for _, claim := range claims {
				counted := maps.Clone(claim)
				maps.DeleteFunc(counted, func(name corev1.ResourceName, _ resource.Quantity) bool { return !claimMatches(name, classes) })
				addResources(needed, counted)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
			need, found := needed[name]
			if !found || need.Sign() <= 0 {
				continue
			}
			left := quota.Status.Hard[name]
			left = left.DeepCopy()
			left.Sub(quota.Status.Used[name])
			copies := timesIn(left, need)
			full := *quota
			full.Status.Used = maps.Clone(quota.Status.Used)
			if full.Status.Used == nil {
				full.Status.Used = corev1.ResourceList{}
			}
			used := full.Status.Used[name]
			used = used.DeepCopy()
			taken := need.DeepCopy()
			taken.Mul(int64(copies))
			used.Add(taken)
			full.Status.Used[name] = used
			limit := QuotaLimit{Quota: quota.Name, Resource: name, Copies: copies}
			if refusals := exceededQuota(&full, corev1.ResourceList{name: need}, func(corev1.ResourceName) bool { return true }); len(refusals) > 0 {
				limit.Refusal = refusals[0]
			}
			limits = append(limits, limit)
		}
	}
	return limits
}

// timesIn returns how often a quantity is contained in another one.
func timesIn(whole, part resource.Quantity) int {
	return max(0, sort.Search(math.MaxInt32, func(n int) bool {
		sum := part.DeepCopy()
		return !sum.Mul(int64(n)) || sum.Cmp(whole) > 0
	})-1)
}
