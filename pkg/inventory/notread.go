// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
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

func notReadIn(alloc *allocator.Allocator, snap *snapshot.Snapshot) notRead {
	return notRead{
		claims: snap.Gap(snapshot.ResourceClaims) != nil,
		rules:  snap.Gap(snapshot.ResourceTaintRules) != nil && alloc.Facts.Gates.Enabled("DRADeviceTaints") && alloc.Facts.Gates.Enabled("DRADeviceTaintRules"),
		pods:   snap.Gap(snapshot.ResourcePods) != nil,
		slices: snap.Gap(snapshot.ResourceSlices) != nil,
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
	case api.DeviceStateAllocated, api.DeviceStateShared, api.DeviceStateBlocked, api.DeviceStateUnpublished:
		// Whoever has it was seen; and a device that is blocked by some can be had
		// by no others, as long as nobody hands out more than there is.
		return false
	}
	return false
}

// CountDevices counts devices by state. What may be otherwise in truth gets a
// bound, by what it is that could not be seen.
func (v *Inventory) CountDevices(devices []*api.Device) api.DeviceCounts {
	var c api.DeviceCounts
	for _, d := range devices {
		c.Total++
		*countOf(&c, d.State)++
		if d.Health == string(corev1.ResourceHealthStatusUnhealthy) {
			c.Unhealthy++
		} else if v.notRead.claims || v.notRead.pods {
			setBound(&c, "unhealthy", api.BoundAtLeast)
		}
		if !d.Uncertain {
			continue
		}
		setBound(&c, strings.ToLower(string(d.State)), api.BoundAtMost)
		if v.notRead.rules && d.State == api.DeviceStateFree {
			setBound(&c, "tainted", api.BoundAtLeast)
		}
		if !v.notRead.claims {
			continue
		}
		setBound(&c, "allocated", api.BoundAtLeast)
		if d.Shareable {
			setBound(&c, "shared", api.BoundAtLeast)
		}
		if len(d.Counters) > 0 {
			setBound(&c, "blocked", api.BoundAtLeast)
		}
	}
	_, c.FreeIsUpperBound = c.Bounds["free"]
	return c
}

// NotRead says, a sentence each, how far counts and states can be wrong because
// of what could not be seen. It is empty if all was seen.
func (v *Inventory) NotRead() []string {
	var said []string
	if v.notRead.claims {
		said = append(said, "claims that were not seen may have devices: counts with ≤ or ≥ are bounds, and a device in a state with ? may be allocated, shared or blocked")
	}
	if v.notRead.rules {
		said = append(said, "DeviceTaintRules that were not seen may taint devices that count as free")
	}
	return said
}
