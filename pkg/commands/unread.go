// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import "github.com/kubectl-dra/kubectl-dra/pkg/snapshot"

// What the verbs do not look at, of the objects that a large cluster has most
// of. TestListingsNeedNoMore holds them against the whole objects.

// unreadBySlices are the fields that do not matter to ResourceSlices and the
// state of their devices.
func unreadBySlices() map[string][]snapshot.Field {
	return map[string][]snapshot.Field{
		snapshot.ResourceSlices: snapshot.Fields("metadata.annotations", "metadata.ownerReferences", "spec.devices.attributes", "spec.devices.capacity"),
		snapshot.ResourceNodes: snapshot.Fields("metadata.annotations", "spec",
			"status.capacity", "status.allocatable", "status.addresses", "status.nodeInfo", "status.daemonEndpoints", "status.config",
			"status.conditions.lastHeartbeatTime", "status.conditions.lastTransitionTime", "status.conditions.reason", "status.conditions.message"),
		snapshot.ResourceClaims: snapshot.Fields("metadata.labels", "metadata.annotations", "metadata.ownerReferences", "spec",
			"status.reservedFor", "status.devices", "status.allocation.nodeSelector", "status.allocation.devices.config"),
	}
}

// unreadByPools are those that do not matter to pools.
func unreadByPools() map[string][]snapshot.Field {
	return map[string][]snapshot.Field{
		snapshot.ResourceSlices: append(snapshot.Fields("metadata.annotations", "metadata.ownerReferences"),
			// The type of a partition is an attribute.
			snapshot.Field{Path: "spec.devices.attributes", Unless: "spec.partitionTypeAttribute"},
			snapshot.Field{Path: "spec.devices.capacity", Unless: "spec.devices.allowMultipleAllocations"}),
		snapshot.ResourceNodes: unreadNodes(),
		snapshot.ResourcePods:  unreadPods(),
		snapshot.ResourceClaims: snapshot.Fields("metadata.labels", "status.devices",
			"status.allocation.nodeSelector", "status.allocation.devices.config"),
	}
}

// unreadByDevices are those that do not matter to devices, if nobody asks for
// their attributes.
func unreadByDevices() map[string][]snapshot.Field {
	return map[string][]snapshot.Field{
		snapshot.ResourceSlices: snapshot.Fields("metadata.annotations", "metadata.ownerReferences", "spec.devices.attributes"),
		snapshot.ResourceNodes:  unreadNodes(),
		snapshot.ResourcePods:   unreadPods(),
		snapshot.ResourceClaims: snapshot.Fields("metadata.labels", "status.allocation.nodeSelector", "status.allocation.devices.config"),
	}
}

// unreadByClaims are those that do not matter to claims, if nobody asks why they
// are pending.
func unreadByClaims() map[string][]snapshot.Field {
	return map[string][]snapshot.Field{
		snapshot.ResourceSlices: snapshot.Fields("metadata.annotations", "metadata.ownerReferences", "spec.devices.attributes", "spec.devices.capacity"),
		snapshot.ResourceNodes:  append(unreadNodes(), snapshot.Fields("spec", "status.capacity", "status.allocatable")...),
		snapshot.ResourcePods:   unreadPods(),
	}
}

// unreadNodes are the fields of nodes that no list depends on.
func unreadNodes() []snapshot.Field {
	return snapshot.Fields("metadata.annotations", "status.addresses", "status.nodeInfo", "status.daemonEndpoints", "status.config",
		"status.conditions.lastHeartbeatTime", "status.conditions.lastTransitionTime", "status.conditions.reason", "status.conditions.message")
}

// unreadPods are the fields of pods that tell neither which claims they have nor
// how the devices are.
func unreadPods() []snapshot.Field {
	return snapshot.Fields("metadata.labels", "metadata.annotations", "metadata.ownerReferences",
		"spec.volumes", "spec.affinity", "spec.tolerations", "spec.nodeSelector", "spec.topologySpreadConstraints", "status.conditions")
}
