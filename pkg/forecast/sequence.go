// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Sequence places copies one after another, each on the first node where it fits, until
// none fits anywhere or there are most of them. A node where one did not fit is tried
// again only once others were placed elsewhere. It fails only if ctx is done.
func sequence(ctx context.Context, q *eligibility.Question, s *cluster.Cluster, nodes []*corev1.Node, most int) (*filled, error) {
	f := &filled{State: s, Copies: make([]int, len(nodes)), Undecided: make([]error, len(nodes))}
	placer := &placer{q: q}
	again := depends(q.Pod)
	for total, placed := 0, true; placed; {
		placed = false
		for i, node := range nodes {
			for {
				if total == most {
					f.Undecided[i] = errEnough
					return f, nil
				}
				r, err := placer.place(ctx, f.State, placer.next(), node)
				if ctx.Err() != nil {
					return nil, fmt.Errorf("count copies: %w", ctx.Err())
				}
				f.Undecided[i] = err
				if r == nil {
					break
				}
				f.State = f.State.Amended(whatif.Reserve(f.State.Snapshot, *r))
				f.Copies[i]++
				total++
				placed = again
			}
		}
	}
	return f, nil
}

// depends reports whether pods placed elsewhere can make a node suitable for a pod.
func depends(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			return c.WhenUnsatisfiable == corev1.DoNotSchedule
		})
}
