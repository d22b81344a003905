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
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// fitsOn says whether claims fit on a node of a cluster that exists in thought
// only. Counting may say that they do not; that they do is for the allocator to
// say, which may also fail, unless it takes too long. Where neither knows, it is
// an error.
func fitsOn(ctx context.Context, alloc *allocator.Allocator, snap *snapshot.Snapshot, node *corev1.Node, claims []*resourceapi.ResourceClaim) (bool, error) {
	counted, known := countedFit(ctx, alloc, snap, node, claims)
	if known && !counted {
		return false, nil
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch verdict := alloc.Check(limited, node, claims); verdict.Outcome {
	case allocator.Fits:
		return true, nil
	case allocator.DoesNotFit, allocator.NodeError, allocator.Failed:
		return false, nil
	default:
		if known && ctx.Err() == nil {
			return true, nil
		}
		return false, fmt.Errorf("check node %s: %w", node.Name, verdict.Err)
	}
}

// countedFit says by counting whether claims fit on a node of a cluster that
// exists in thought only. It is not known where numbers are too large, or where
// a selector fails, of which counting knows nothing.
func countedFit(ctx context.Context, alloc *allocator.Allocator, snap *snapshot.Snapshot, node *corev1.Node, claims []*resourceapi.ResourceClaim) (fits, known bool) {
	x, err := alone(ctx, alloc, snap, node, claims)
	if err != nil {
		return false, false
	}
	switch x.fast(ctx, node) {
	case decision.Feasible:
		return true, !x.mayFail(ctx, node)
	case decision.Infeasible:
		return false, true
	default:
		return false, false
	}
}

// alone is an inquiry about claims on one node of a cluster that exists in
// thought only.
func alone(ctx context.Context, alloc *allocator.Allocator, snap *snapshot.Snapshot, node *corev1.Node, claims []*resourceapi.ResourceClaim) (*inquiry, error) {
	s := &subject{target: Target{Kind: KindClaim}, only: node}
	for _, claim := range claims {
		s.claims = append(s.claims, allocator.PodClaim{Claim: claim})
	}
	x := newInquiry(alloc, snap, s)
	x.describeClaims()
	pools, err := alloc.PoolsFor(node)
	if err != nil {
		return nil, fmt.Errorf("find the pools of node %s: %w", node.Name, err)
	}
	x.site.candidates = []*corev1.Node{node}
	x.site.pools = map[string][]*allocator.NodePool{node.Name: pools}
	for i := range x.claims {
		if err := x.account(ctx, &x.claims[i]); err != nil {
			return nil, err
		}
	}
	return x, nil
}
