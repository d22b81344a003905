// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/decision"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// FitsByCounting says by counting whether claims fit on a node of a
// what-if cluster. It is not known where numbers are too large, or where
// a selector fails, of which counting knows nothing.
func FitsByCounting(ctx context.Context, q *eligibility.Question, c *cluster.Cluster, node *corev1.Node, claims []*resourceapi.ResourceClaim) (fits, known bool) {
	one, err := QuestionOnNode(ctx, q, c, node, claims)
	if err != nil {
		return false, false
	}
	switch CountingAnswer(ctx, one, node) {
	case decision.Feasible:
		return true, !MayFail(ctx, one, node)
	case decision.Infeasible:
		return false, true
	default:
		return false, false
	}
}

// QuestionOnNode returns the question about claims on one node of a what-if cluster.
func QuestionOnNode(ctx context.Context, q *eligibility.Question, c *cluster.Cluster, node *corev1.Node, claims []*resourceapi.ResourceClaim) (*eligibility.Question, error) {
	one := eligibility.NewQuestion(c, q.Pod, make([]cluster.PodClaim, 0, len(claims)))
	if one.Selectors.Like(q.Selectors) {
		one.Selectors, one.Catalog = q.Selectors, q.Catalog
	}
	for i, claim := range claims {
		one.PodClaims = append(one.PodClaims, cluster.PodClaim{Claim: claim})
		if claim.Status.Allocation == nil {
			one.Claims = append(one.Claims, eligibility.Claim{Claim: claim, Index: i})
		}
	}
	pools, err := c.Pools.For(node)
	if err != nil {
		return nil, fmt.Errorf("find the pools of node %s: %w", node.Name, err)
	}
	one.Reach.Candidates = []*corev1.Node{node}
	one.Reach.Pools = map[string][]*cluster.NodePool{node.Name: pools}
	for i := range one.Claims {
		if err := one.AddFunnels(ctx, &one.Claims[i], node); err != nil {
			return nil, err
		}
	}
	return one, nil
}

// MayFail reports whether a selector fails on a device of a node, which ends the
// attempt for all nodes if the allocator gets to see it.
func MayFail(ctx context.Context, q *eligibility.Question, node *corev1.Node) bool {
	return slices.ContainsFunc(q.Reach.Pools[node.Name], func(pool *cluster.NodePool) bool { return q.SelectorFails(ctx, pool, node) })
}
