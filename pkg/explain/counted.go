// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/counting"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// fitsOn reports whether claims fit on a node of a what-if cluster. Counting may say that they do not; that they do is for the allocator to
// say, which may also fail, unless it takes too long. Where neither knows, it is
// an error.
func (x *inquiry) fitsOn(ctx context.Context, alloc *allocator.Allocator, snap *snapshot.Snapshot, node *corev1.Node, claims []*resourceapi.ResourceClaim) (bool, error) {
	limit := searchTime
	counted, known := counting.Fits(ctx, x.Question, alloc, snap, node, claims)
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
