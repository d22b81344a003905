// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// Count counts the devices that a node can reach.
func (f *Funnel) Count(ctx context.Context, pools []*cluster.NodePool, node *corev1.Node) *Counts {
	c := newCounts()
	for _, pool := range pools {
		if pool.Local {
			f.countPool(ctx, c, pool, node)
			continue
		}
		seen := OnNode(pool, node)
		shared, known := f.counts[seen]
		if !known {
			shared = newCounts()
			f.countPool(ctx, shared, pool, node)
			f.counts[seen] = shared
		}
		c.add(shared)
	}
	return c
}

func (f *Funnel) countPool(ctx context.Context, c *Counts, pool *cluster.NodePool, node *corev1.Node) {
	EachDevice(pool, func(d *cluster.Device, kept *Reason) {
		c.Reachable++
		if kept != nil {
			if f.OtherClass(d) {
				c.OtherClass++
			} else {
				c.record(kept)
			}
			return
		}
		r := f.Checks.Device(ctx, d, node)
		if r.Matches() {
			c.Matching++
		}
		if r != nil && (!f.Request.All() || r.Matches()) {
			c.record(r)
		}
	})
}

// NoneMatch returns the answer for a node that has nothing of the kind.
func (f *Funnel) NoneMatch(reachable, otherClass int) (api.Code, string) {
	switch {
	case reachable == 0:
		return api.NodeNotReachable, "no devices of class " + f.Request.Class
	case otherClass == reachable && f.ClassHasDevices:
		return api.NodeNotReachable, "no devices of class " + f.Request.Class
	case otherClass == reachable:
		return api.ClassSelectorFalse, "no devices of class " + f.Request.Class
	default:
		return api.RequestSelectorFalse, fmt.Sprintf("no device that matches request %s", f.Request.Name)
	}
}
