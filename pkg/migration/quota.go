// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
)

// quotas returns the limits of extended resources in a quota.
func (cs *classes) quotas(quota *corev1.ResourceQuota) []api.MigrationQuota {
	var list []api.MigrationQuota
	for name, hard := range quota.Spec.Hard {
		resource, limited := cutRequests(string(name))
		if !limited || !cluster.IsExtendedResource(corev1.ResourceName(resource)) {
			continue
		}
		q := api.MigrationQuota{Namespace: quota.Namespace, Name: quota.Name, Resource: string(name), Hard: hard.Value()}
		class, reason := cs.classFor(resource)
		if serving := cs.serving(resource); serving != "" {
			// As addExtendedResourceQuota in pkg/quota/v1/evaluator/core/resource_claims.go of Kubernetes.
			q.Reason = fmt.Sprintf("it limits claims for class %s, too, which names the resource", serving)
		} else if q.Reason = reason; class != "" {
			q.Becomes = class + corev1.ResourceClaimsPerClass
			q.Commands = []string{quotaCommand(quota, q.Becomes, hard.String())}
		}
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b api.MigrationQuota) int { return cmp.Compare(a.Resource, b.Resource) })
	return list
}

// cutRequests returns the resource that a quota limits the requests of.
func cutRequests(name string) (resource string, limited bool) {
	return strings.CutPrefix(name, corev1.DefaultResourceRequestsPrefix)
}

// quotaCommand adds a limit to a quota.
func quotaCommand(quota *corev1.ResourceQuota, resource, hard string) string {
	// A map of strings can be encoded.
	patch, _ := json.Marshal(map[string]any{"spec": map[string]any{"hard": map[string]string{resource: hard}}})
	return "kubectl patch " + shell.KubectlObjects("resourcequota", quota.Namespace, quota.Name) + " --type=merge -p " + shell.Quote(string(patch))
}
