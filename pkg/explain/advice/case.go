// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Case is a verdict that nothing fits, or an error.
type Case struct {
	*verdict.Verdict
	// Nodes are the nodes of the question. Only is the only node that the pod selects, empty
	// if it selects more or fewer: it comes before all others.
	Nodes []*corev1.Node
	Only  string
	// NodeCode is the reason of the most promising nodes.
	NodeCode api.Code
	// Contents tell which nodes are equivalent, Confirmer asks about what-if
	// clusters.
	Contents  *verdict.NodeContents
	Confirmer *verdict.Confirmer
}

// aboutFacts reports whether facts can explain the answer: not if the allocator gives up
// before it looks at any devices.
func (c *Case) aboutFacts() bool {
	return c.Devices == api.DoesNotFit ||
		slices.Contains([]api.Code{api.ClaimLimitExceeded, api.PoolIncomplete, api.PoolInvalid}, c.NodeCode)
}

// waiting lists the claims that wait.
func (c *Case) waiting() []*resourceapi.ResourceClaim {
	claims := make([]*resourceapi.ResourceClaim, 0, len(c.Claims))
	for i := range c.Claims {
		claims = append(claims, c.Claims[i].Claim)
	}
	return claims
}

// podsOn lists the pods of a node that are not finished.
func podsOn(q *eligibility.Question, node string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range q.Cluster.Snapshot.Pods {
		if pod.Spec.NodeName == node && !snapshot.Finished(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// dependsOnPodsElsewhere reports whether pods on other nodes may decide whether
// a node is suitable for the pod.
func dependsOnPodsElsewhere(q *eligibility.Question) bool {
	pod := q.Pod
	if pod == nil {
		return false
	}
	if affinity := pod.Spec.Affinity; len(pod.Spec.TopologySpreadConstraints) > 0 || affinity != nil && (affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil) {
		return true
	}
	return slices.ContainsFunc(q.Cluster.Snapshot.Pods, func(other *corev1.Pod) bool {
		affinity := other.Spec.Affinity
		return affinity != nil && affinity.PodAntiAffinity != nil
	})
}
