// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// SelectorFails reports whether a selector fails on a device of a pool that the allocator may
// look at for a node. It evaluates selectors before it looks which node a device of a slice
// is for.
func (q *Question) SelectorFails(ctx context.Context, pool *cluster.NodePool, node *corev1.Node) bool {
	if !pool.Usable() {
		return false
	}
	for _, slice := range pool.Slices {
		for i := range slice.Spec.Devices {
			d := cluster.DeviceIn(pool.Pool, slice, i)
			fails := func(f *Funnel) bool { return f.Checks.SelectorFails(ctx, &d, node) }
			if slices.ContainsFunc(q.Claims, func(c Claim) bool {
				return slices.ContainsFunc(c.Funnels, func(alternatives []*Funnel) bool { return slices.ContainsFunc(alternatives, fails) })
			}) {
				return true
			}
		}
	}
	return false
}
