// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/decision"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// countedFit says by counting whether claims fit on a node of a cluster that
// exists in thought only. It is not known where numbers are too large, or where
// a selector fails, of which counting knows nothing.
func countedFit(ctx context.Context, alloc *allocator.Allocator, snap *snapshot.Snapshot, node *corev1.Node, claims []*resourceapi.ResourceClaim) (fits, known bool) {
	s := &subject{target: Target{Kind: KindClaim}}
	for _, claim := range claims {
		s.claims = append(s.claims, allocator.PodClaim{Claim: claim})
	}
	x := newInquiry(alloc, snap, s)
	x.describeClaims()
	pools, err := alloc.PoolsFor(node)
	if err != nil {
		return false, false
	}
	x.site.candidates = []*corev1.Node{node}
	x.site.pools = map[string][]*allocator.NodePool{node.Name: pools}
	for i := range x.claims {
		if err := x.account(ctx, &x.claims[i]); err != nil {
			return false, false
		}
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
