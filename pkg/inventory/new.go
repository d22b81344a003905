// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"sync"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// New takes the inventory of a cluster.
func New(c *cluster.Cluster) *Inventory {
	v := &Inventory{cluster: c, eligible: eligibility.NewDevices(c), notRead: notReadIn(c), plain: &plainNodes{facts: c}}
	v.statuses = sync.OnceValue(func() map[snapshot.PoolID]poolStatus { return listStatuses(c.Snapshot) })
	v.gone = sync.OnceValue(func() map[snapshot.PoolID]int { return countGone(c) })
	v.unpublished = sync.OnceValue(func() []api.Device { return listUnpublished(v.eligible) })
	return v
}
