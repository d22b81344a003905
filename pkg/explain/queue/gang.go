// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// CountFitting counts the pods of a gang that have a node, or get one, if they are
// decided one after another.
func CountFitting(ctx context.Context, explainer Explainer, alloc *allocator.Allocator, snap *snapshot.Snapshot, members []*corev1.Pod) (int, error) {
	q := New(explainer, alloc, snap)
	q.members = true
	fit := 0
	members = slices.SortedStableFunc(slices.Values(members), compareQueued)
	for _, pod := range members {
		switch {
		case pod.Spec.NodeName != "":
			fit++
		case lifecycle.Waits(pod):
			p := q.add(pod, pod.UID == "" && pod.CreationTimestamp.IsZero())
			if err := q.sortKind(ctx, p); err != nil {
				return 0, err
			}
			if p.kind.answer.Verdict == api.Allocated {
				fit++
				continue
			}
			if p.kind.answer.Verdict != api.Fits {
				continue
			}
			if err := q.reserve(ctx, p); err != nil {
				return 0, err
			}
			if p.reservation != nil {
				fit++
			}
		}
	}
	return fit, nil
}
