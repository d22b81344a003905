// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// What the lists do not depend on, of the objects that a large cluster has most
// of. TestListingsNeedNoMore of pkg/commands holds them against whole objects.

// StateReads returns the resources that tell which devices there are and in what state, and
// more.
func StateReads(more ...string) []string {
	return append([]string{snapshot.ResourceSlices, snapshot.ResourceClaims, snapshot.ResourceTaintRules, snapshot.ResourceMetrics}, more...)
}

// UnusedBySlices returns the fields that do not matter to ResourceSlices and the state of
// their devices.
func UnusedBySlices() map[string][]kinds.Field {
	return map[string][]kinds.Field{
		snapshot.ResourceSlices: kinds.ReadFields("metadata.annotations", "metadata.ownerReferences", "spec.devices.attributes", "spec.devices.capacity"),
		snapshot.ResourceNodes: kinds.ReadFields("metadata.annotations", "spec",
			"status.capacity", "status.allocatable", "status.addresses", "status.nodeInfo", "status.daemonEndpoints", "status.config",
			"status.conditions.lastHeartbeatTime", "status.conditions.lastTransitionTime", "status.conditions.reason", "status.conditions.message"),
		snapshot.ResourceClaims: kinds.ReadFields("metadata.labels", "metadata.annotations", "metadata.ownerReferences", "spec",
			"status.reservedFor", "status.devices", "status.allocation.nodeSelector", "status.allocation.devices.config"),
	}
}

// UnusedByPools returns the fields that do not matter to pools.
func UnusedByPools() map[string][]kinds.Field {
	return map[string][]kinds.Field{
		snapshot.ResourceSlices: append(kinds.ReadFields("metadata.annotations", "metadata.ownerReferences"),
			// The type of a partition is an attribute.
			kinds.Field{Path: "spec.devices.attributes", Unless: "spec.partitionTypeAttribute"},
			kinds.Field{Path: "spec.devices.capacity", Unless: "spec.devices.allowMultipleAllocations"}),
		snapshot.ResourceNodes: unusedOfNodes(),
		snapshot.ResourcePods:  unusedOfPods(),
		// Where a device is that no slice has any more, and whether it was moved into a pod,
		// only its claim says.
		snapshot.ResourceClaims: kinds.ReadFields("metadata.labels", "status.devices.data", "status.devices.networkData", "status.allocation.devices.config"),
	}
}

// UnusedByDevices returns the fields that do not matter to devices, if nobody asks for
// their attributes.
func UnusedByDevices() map[string][]kinds.Field {
	return map[string][]kinds.Field{
		snapshot.ResourceSlices: kinds.ReadFields("metadata.annotations", "metadata.ownerReferences", "spec.devices.attributes"),
		snapshot.ResourceNodes:  unusedOfNodes(),
		snapshot.ResourcePods:   unusedOfPods(),
		snapshot.ResourceClaims: kinds.ReadFields("metadata.labels", "status.allocation.devices.config"),
	}
}

// UnusedByClaims returns the fields that do not matter to claims, if nobody asks why they
// are pending.
func UnusedByClaims() map[string][]kinds.Field {
	return map[string][]kinds.Field{
		snapshot.ResourceSlices: kinds.ReadFields("metadata.annotations", "metadata.ownerReferences", "spec.devices.attributes", "spec.devices.capacity"),
		snapshot.ResourceNodes:  append(unusedOfNodes(), kinds.ReadFields("spec", "status.capacity", "status.allocatable")...),
		snapshot.ResourcePods:   unusedOfPods(),
	}
}

// UnusedByNodes returns the fields that do not matter to nodes with their devices.
func UnusedByNodes() map[string][]kinds.Field {
	return map[string][]kinds.Field{
		snapshot.ResourceSlices: kinds.ReadFields("metadata.annotations", "metadata.ownerReferences"),
		snapshot.ResourceNodes:  unusedOfNodes(),
		// A driver is known by the owners of its pods, and ready by their conditions.
		snapshot.ResourcePods:   kinds.ReadFields("metadata.annotations", "spec.volumes"),
		snapshot.ResourceClaims: kinds.ReadFields("metadata.labels", "status.devices.data", "status.devices.networkData", "status.allocation.devices.config"),
	}
}

// UnusedByUsage returns the fields that do not matter to who uses devices.
func UnusedByUsage() map[string][]kinds.Field {
	return map[string][]kinds.Field{
		snapshot.ResourceNodes: append(unusedOfNodes(), kinds.ReadFields("metadata.labels", "spec", "status.conditions")...),
		snapshot.ResourcePods: kinds.ReadFields("metadata.annotations",
			"spec.volumes", "spec.affinity", "spec.tolerations", "spec.nodeSelector", "spec.topologySpreadConstraints", "status.conditions"),
		snapshot.ResourceClaims: kinds.ReadFields("metadata.annotations", "status.devices", "status.allocation.nodeSelector", "status.allocation.devices.config"),
	}
}

// unusedOfNodes returns the fields of nodes that no list depends on.
func unusedOfNodes() []kinds.Field {
	return kinds.ReadFields("metadata.annotations", "status.addresses", "status.nodeInfo", "status.daemonEndpoints", "status.config",
		"status.conditions.lastHeartbeatTime", "status.conditions.lastTransitionTime", "status.conditions.reason", "status.conditions.message")
}

// unusedOfPods returns the fields of pods that tell neither which claims they have nor how
// the devices are.
func unusedOfPods() []kinds.Field {
	return kinds.ReadFields("metadata.labels", "metadata.annotations", "metadata.ownerReferences",
		"spec.volumes", "spec.affinity", "spec.tolerations", "spec.nodeSelector", "spec.topologySpreadConstraints", "status.conditions")
}

// Assumptions lists what a preview assumes, and what could not be read, what matters most
// first.
func Assumptions(s *snapshot.Snapshot) []string {
	order := []string{
		snapshot.ResourceClaims, snapshot.ResourceSlices, snapshot.ResourcePods, snapshot.ResourceClasses, snapshot.ResourceNodes, snapshot.ResourceTaintRules,
	}
	place := func(gap snapshot.Gap) int {
		if at := slices.Index(order, gap.Resource); at >= 0 {
			return at
		}
		return len(order)
	}
	sorted := slices.Clone(s.Gaps)
	slices.SortStableFunc(sorted, func(a, b snapshot.Gap) int { return cmp.Compare(place(a), place(b)) })
	reasons := snapshot.PreviewAssumptions(s)
	for i := range sorted {
		reasons = append(reasons, sorted[i].Reason)
	}
	return reasons
}

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
