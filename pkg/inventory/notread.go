// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// notRead says what takes devices, or speaks of them, and could not be read
// completely.
type notRead struct {
	// claims may have devices that seem to be free. What the claims that were
	// seen have, or block, stays so.
	claims bool
	// rules may taint devices that seem to be free.
	rules bool
	// pods tell the health of the devices that they use, and get evicted.
	pods bool
	// slices have the devices.
	slices bool
}

func notReadIn(c *cluster.Cluster) notRead {
	return notRead{
		claims: c.Snapshot.Gap(snapshot.ResourceClaims) != nil,
		rules:  c.Snapshot.Gap(snapshot.ResourceTaintRules) != nil && c.Gates.Enabled("DRADeviceTaints") && c.Gates.Enabled("DRADeviceTaintRules"),
		pods:   c.Snapshot.Gap(snapshot.ResourcePods) != nil,
		slices: c.Snapshot.Gap(snapshot.ResourceSlices) != nil,
	}
}

// uncertain reports whether a device that is in a state as far as can be seen
// may be in another one.
func (u notRead) uncertain(state api.DeviceState) bool {
	switch state {
	case api.DeviceStateFree:
		return u.claims || u.rules
	case api.DeviceStateTainted, api.DeviceStateUnusable:
		return u.claims
	case api.DeviceStateAllocated, api.DeviceStateShared, api.DeviceStateBlocked, api.DeviceStateUnpublished, api.DeviceStateGone:
		// The claim that it is allocated to was read; and a device that is blocked by some can be had
		// by no others, as long as nobody hands out more than there is.
		return false
	}
	return false
}
