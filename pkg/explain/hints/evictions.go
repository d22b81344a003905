// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// evictedHint warns of devices that the allocator picks because their taint is tolerated, and
// for which the pod is deleted all the same.
func (h *finder) evictedHint() {
	if h.out.Placement == nil || h.Pod == nil || len(h.out.Placement.Claims) != len(h.Claims) {
		return
	}
	for i, placed := range h.out.Placement.Claims {
		for _, d := range placed.Devices {
			r := requestNamed(&h.Claims[i], d.Request)
			if r == nil || h.PodClaims[h.Claims[i].Index].ExtendedResources {
				continue
			}
			claim := *h.Claims[i].Claim
			claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
				Results: []resourceapi.DeviceRequestAllocationResult{{Request: d.Request, Driver: d.Driver, Pool: d.Pool, Device: d.Device, Tolerations: r.Tolerations}},
			}}
			evictions := h.Cluster.Taints.ClaimEvictions(&claim)
			if len(evictions) == 0 {
				continue
			}
			h.found.Warning = fmt.Sprintf("warning: the pod is deleted again because of device %s: its taint %s %s",
				cluster.DeviceID{Driver: d.Driver, Pool: d.Pool, Device: d.Device}, evictions[0].Taint, lifecycle.ToleratedText(&evictions[0]))
			return
		}
	}
}

func requestNamed(c *eligibility.Claim, name string) *cluster.Request {
	for _, alternatives := range c.Funnels {
		for _, f := range alternatives {
			if f.Request.Name == name {
				return f.Request
			}
		}
	}
	return nil
}
