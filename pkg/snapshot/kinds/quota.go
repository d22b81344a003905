// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyapi "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// redactedQuotas returns the tables for quotas. The names of counted resources stay: they name
// classes.
func redactedQuotas() []Redaction {
	return []Redaction{
		redacted[corev1.ResourceQuota](`metadata  meta ResourceQuota`),
		redacted[corev1.ResourceQuotaSpec](`hard  quantities`),
		redacted[corev1.ResourceQuotaStatus](`
			hard  quantities
			used  quantities`),
		redacted[corev1.ScopedResourceSelectorRequirement](`values  priorityClass`),
		redacted[corev1.LimitRange](`metadata  meta LimitRange`),
		redacted[policyapi.PodDisruptionBudget](`metadata  meta PodDisruptionBudget`),
		// How many it allows is in its status.
		redacted[policyapi.PodDisruptionBudgetSpec](`
			minAvailable    drop
			maxUnavailable  drop`),
		redacted[policyapi.PodDisruptionBudgetStatus](`disruptedPods  drop`),
	}
}

// quota rejects what ValidateResourceQuotaSpec rejects about numbers. isExtendedResource is
// IsExtendedResourceName of pkg/apis/core/v1/helper.
func (r *rejections) quota(spec *corev1.ResourceQuotaSpec) {
	for _, key := range slices.Sorted(maps.Keys(spec.Hard)) {
		path := fmt.Sprintf("spec.hard[%q]", key)
		hard := spec.Hard[key]
		switch {
		case hard.Sign() < 0:
			r.add(path, "expected 0 or more, found %s", hard.String())
		case strings.Contains(string(key), resourceapi.GroupName) || strings.Contains(string(key), "deviceclass."):
			if whole := resource.NewQuantity(hard.Value(), resource.DecimalSI); whole.Cmp(hard) != 0 {
				r.add(path, "expected a whole number, found %s", hard.String())
			}
		}
	}
}

func isExtendedResource(name string) bool {
	if !strings.Contains(name, "/") || strings.Contains(name, corev1.ResourceDefaultNamespacePrefix) || strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+name)) == 0
}
