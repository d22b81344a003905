// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/decision"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// fitsOn reports whether claims fit on a node of a cluster that exists in thought
// only. Counting may say that they do not; that they do is for the allocator to
// say, which may also fail, unless it takes too long. Where neither knows, it is
// an error.
func (x *inquiry) fitsOn(ctx context.Context, alloc *allocator.Allocator, snap *snapshot.Snapshot, node *corev1.Node, claims []*resourceapi.ResourceClaim) (bool, error) {
	limit := patience
	counted, known := countedFit(ctx, x.Question, alloc, snap, node, claims)
	if known {
		if !counted {
			return false, nil
		}
		limit = (confirmTime / 2) >> x.unconfirmed
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch verdict := alloc.Check(limited, node, claims); verdict.Outcome {
	case allocator.Fits:
		return true, nil
	case allocator.DoesNotFit, allocator.NodeError, allocator.Failed:
		return false, nil
	default:
		if known && ctx.Err() == nil {
			x.unconfirmed++
			return true, nil
		}
		return false, fmt.Errorf("check node %s: %w", node.Name, verdict.Err)
	}
}

// countedFit says by counting whether claims fit on a node of a cluster that
// exists in thought only. It is not known where numbers are too large, or where
// a selector fails, of which counting knows nothing.
func countedFit(ctx context.Context, q *funnel.Question, alloc *allocator.Allocator, snap *snapshot.Snapshot, node *corev1.Node, claims []*resourceapi.ResourceClaim) (fits, known bool) {
	one, err := alone(ctx, q, alloc, snap, node, claims)
	if err != nil {
		return false, false
	}
	switch fast(ctx, one, node) {
	case decision.Feasible:
		return true, !mayFail(ctx, one, node)
	case decision.Infeasible:
		return false, true
	default:
		return false, false
	}
}

// alone is the question about claims on one node of a cluster that exists in
// thought only.
func alone(ctx context.Context, q *funnel.Question, alloc *allocator.Allocator, snap *snapshot.Snapshot, node *corev1.Node, claims []*resourceapi.ResourceClaim) (*funnel.Question, error) {
	one := funnel.NewQuestion(alloc, snap, q.Pod, make([]allocator.PodClaim, 0, len(claims)))
	if one.Selectors.Like(q.Selectors) {
		one.Selectors, one.Catalog = q.Selectors, q.Catalog
	}
	for i, claim := range claims {
		one.PodClaims = append(one.PodClaims, allocator.PodClaim{Claim: claim})
		if claim.Status.Allocation == nil {
			one.Claims = append(one.Claims, funnel.Claim{Claim: claim, Index: i})
		}
	}
	pools, err := alloc.PoolsFor(node)
	if err != nil {
		return nil, fmt.Errorf("find the pools of node %s: %w", node.Name, err)
	}
	one.Cluster.Candidates = []*corev1.Node{node}
	one.Cluster.Pools = map[string][]*allocator.NodePool{node.Name: pools}
	for i := range one.Claims {
		if err := one.AddFunnels(ctx, &one.Claims[i], node); err != nil {
			return nil, err
		}
	}
	return one, nil
}
