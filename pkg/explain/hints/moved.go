// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// movedHint notes allocated devices that no ResourceSlice has and that are ready
// all the same: a driver of networks moves an interface into the pod and no
// longer sees it on the node (KEP-4817). Nothing has to be done about them.
func (h *finder) movedHint() {
	if h.Cluster.Snapshot.Gap(snapshot.ResourceSlices) != nil {
		return
	}
	for i := range h.PodClaims {
		claim := h.PodClaims[i].Claim
		if claim == nil || claim.Status.Allocation == nil {
			continue
		}
		results := claim.Status.Allocation.Devices.Results
		var moved []string
		var first api.Evidence
		driver, where := "", ""
		for j := range results {
			result := &results[j]
			if h.Cluster.Pools.Device(lifecycle.DeviceID(result)) != nil || !cluster.DeviceReady(claim, result) {
				continue
			}
			if moved = append(moved, lifecycle.DeviceName(result)); len(moved) > 1 {
				continue
			}
			driver = result.Driver
			first = api.Evidence{
				Object: api.RefTo(api.KindClaim, claim), Path: fmt.Sprintf("status.devices[device=%s].conditions[type=Ready].status", result.Device), Found: "True",
			}
			if data := cluster.DeviceStatus(claim, result).NetworkData; data != nil && data.InterfaceName != "" {
				where = fmt.Sprintf(" (interface %s of the pod)", data.InterfaceName)
			}
		}
		if len(moved) == 0 {
			continue
		}
		noun, verb := "device", "is"
		if len(moved) > 1 {
			noun, verb, where = "devices", "are", ""
		}
		h.hint(fmt.Sprintf("%s %s of claim %s %s in use and healthy%s: driver %s no longer publishes %s in a ResourceSlice, and the status of the claim says Ready",
			noun, english.Sample(moved, maxNamed), claim.Name, verb, where, driver, map[bool]string{true: "it", false: "them"}[len(moved) == 1]), first)
	}
}
