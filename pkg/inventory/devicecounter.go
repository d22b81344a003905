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

// deviceCounter counts the devices of pools, classes and nodes by state. The counts of a pool
// take in what the cluster itself reports about it.
type deviceCounter struct {
	cluster  *cluster.Cluster
	eligible *eligibility.Devices
	notRead  notRead
	plain    *plainNodes
	// statuses has what the cluster itself says about pools.
	statuses func() map[snapshot.PoolID]poolStatus
	// gone has, by pool, the devices of claims that no slice has any more.
	gone func() map[snapshot.PoolID]int
	// unpublished has the devices themselves.
	unpublished func() []api.Device
}

func newDeviceCounter(c *cluster.Cluster) *deviceCounter {
	n := &deviceCounter{cluster: c, eligible: eligibility.NewDevices(c), notRead: notReadIn(c), plain: &plainNodes{facts: c}}
	n.statuses = sync.OnceValue(func() map[snapshot.PoolID]poolStatus { return listStatuses(c.Snapshot) })
	n.gone = sync.OnceValue(func() map[snapshot.PoolID]int { return countGone(c) })
	n.unpublished = sync.OnceValue(func() []api.Device { return listUnpublished(n.eligible) })
	return n
}
