// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import "github.com/kubectl-dra/kubectl-dra/pkg/cluster"

// New takes the inventory of a cluster.
func New(c *cluster.Cluster) *Inventory {
	counter := newDeviceCounter(c)
	return &Inventory{cluster: c, eligible: counter.eligible, notRead: counter.notRead, counter: counter}
}
