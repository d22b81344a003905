// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/counting"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/nodegroup"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Case is a question to which the answer is that nothing fits, or an error.
type Case struct {
	*funnel.Question
	// Nodes are those that the question is about. Only is the only one that the pod
	// selects, empty where it selects more or fewer: it comes before all others.
	Nodes []*corev1.Node
	Only  string
	// Contents tell which nodes are equivalent, Confirmer asks about what-if
	// clusters.
	Contents  *nodegroup.Contents
	Confirmer *counting.Confirmer
	// Verdict is the answer, Code the reason of the most promising nodes.
	Verdict api.Verdict
	Code    api.Code
	// AllRemedies asks for all that are found.
	AllRemedies bool
	// Target is who asks, Workload is set if that stands for several pods, and
	// Users are the pods that use it.
	Target   api.Target
	Workload bool
	Users    []*corev1.Pod
	// Ask asks the question again, up to the point where the allocator is asked.
	// The question is nil if something else is in the way already.
	Ask func(WhatIf) (*funnel.Question, error)
}

// WhatIf is a change that a question is asked about.
type WhatIf struct {
	// Cluster has the change; it is nil where none but the claims of the question change.
	Cluster *cluster.Cluster
	// FindAgain is set if the target itself may be changed, Features if a feature
	// gate is.
	FindAgain, Features bool
	// Claims are edits of the specs of claims, by their indices in
	// [funnel.Question.PodClaims].
	Claims map[int][]api.Edit
}

// aboutFacts reports whether the answer is one that facts can explain: not if the
// allocator gives up before it looks at any devices.
func (c *Case) aboutFacts() bool {
	return c.Verdict == api.DoesNotFit ||
		slices.Contains([]api.Code{api.ClaimLimitExceeded, api.PoolIncomplete, api.PoolInvalid}, c.Code)
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
func podsOn(q *funnel.Question, node string) []*corev1.Pod {
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
func dependsOnPodsElsewhere(q *funnel.Question) bool {
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
