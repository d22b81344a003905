// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"slices"

	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// LibraryVersion is the version of k8s.io/dynamic-resource-allocation that
// this package is built with.
const LibraryVersion = "v0.37.2"

// The channel without sorting and with a view of its own on counter sets; see
// [poolIndex].
const (
	channelStable       = "stable"
	channelExperimental = "experimental"
)

// The gates that this package asks for by name.
const (
	gateAdminAccess          = "DRAAdminAccess"
	gateBindingConditions    = "DRADeviceBindingConditions"
	gateCompatibilityGroups  = "DRADeviceCompatibilityGroups"
	gateConsumableCapacity   = "DRAConsumableCapacity"
	gateDerivedAttributes    = "DRADerivedAttributes"
	gateDeviceStatus         = "DRAResourceClaimDeviceStatus"
	gateDeviceTaintRules     = "DRADeviceTaintRules"
	gateDeviceTaints         = "DRADeviceTaints"
	gateExtendedResource     = "DRAExtendedResource"
	gateFilterTimeout        = "DRASchedulerFilterTimeout"
	gateFractionalCapacity   = "DRAFractionalCapacityRange"
	gateListTypeAttributes   = "DRAListTypeAttributes"
	gateNodeAllocatable      = "DRANodeAllocatableResources"
	gateOptionalNodeOps      = "DRAOptionalNodeOperations"
	gatePartitionableDevices = "DRAPartitionableDevices"
	gatePrioritizedList      = "DRAPrioritizedList"
	gateWorkloadClaims       = "DRAWorkloadResourceClaims"
)

// Features tells which features the allocator works with, and how that became
// known.
type Features struct {
	// Library is the version of the embedded allocator's module.
	Library string
	// Channel is the implementation that the features select: stable,
	// incubating or experimental.
	Channel string
	// Cluster is the version of the API server, empty if unknown.
	Cluster string
	// Source is the weakest source among the gates that matter: flag, metrics
	// or default.
	Source string
	// Enabled has the names of the enabled gates that matter, sorted.
	Enabled []string
}

// Features tells what is on.
func (a *Allocator) Features() Features {
	f := Features{Library: LibraryVersion, Channel: a.channel, Cluster: a.snap.ServerVersion}
	weakest := -1
	order := []snapshot.GateSource{snapshot.GateFromFlag, snapshot.GateFromMetrics, snapshot.GateFromDefault}
	for name, gate := range a.gates {
		if gate.Enabled && a.snap.HasGate(name) {
			f.Enabled = append(f.Enabled, name)
		}
		weakest = max(weakest, slices.Index(order, gate.Source))
	}
	if weakest >= 0 {
		f.Source = string(order[weakest])
	}
	slices.Sort(f.Enabled)
	return f
}

// FeatureEnabled reports whether a feature gate is on, by the gate's name.
func (a *Allocator) FeatureEnabled(gate string) bool {
	if known, ok := a.gates[gate]; ok {
		return known.Enabled
	}
	return a.snap.Gate(gate).Enabled
}

// resolveGates looks up once each gate that has a bearing on allocation.
func resolveGates(snap *snapshot.Snapshot) map[string]snapshot.Gate {
	gates := map[string]snapshot.Gate{}
	for _, name := range []string{
		gateAdminAccess, gateBindingConditions, gateCompatibilityGroups, gateConsumableCapacity,
		gateDerivedAttributes, gateDeviceStatus, gateDeviceTaintRules, gateDeviceTaints,
		gateExtendedResource, gateFilterTimeout, gateFractionalCapacity, gateListTypeAttributes,
		gateNodeAllocatable, gateOptionalNodeOps, gatePartitionableDevices, gatePrioritizedList,
		gateWorkloadClaims,
	} {
		gates[name] = snap.Gate(name)
	}
	return gates
}

// allocatorFeatures derives what the allocator is told from the gates, as
// AllocatorFeatures of the scheduler's dynamicresources plugin does.
func allocatorFeatures(enabled func(gate string) bool) structured.Features {
	return structured.Features{
		AdminAccess:             enabled(gateAdminAccess),
		CompatibilityGroups:     enabled(gateCompatibilityGroups),
		ConsumableCapacity:      enabled(gateConsumableCapacity),
		DerivedAttributes:       enabled(gateDerivedAttributes),
		DeviceBindingAndStatus:  enabled(gateBindingConditions) && enabled(gateDeviceStatus),
		DeviceTaints:            enabled(gateDeviceTaints),
		FractionalCapacityRange: enabled(gateFractionalCapacity),
		ListTypeAttributes:      enabled(gateListTypeAttributes),
		OptionalNodeOperations:  enabled(gateOptionalNodeOps),
		PartitionableDevices:    enabled(gatePartitionableDevices),
		PrioritizedList:         enabled(gatePrioritizedList),
	}
}

// taintRulesEnabled reports whether DeviceTaintRules count. The gate of the
// rules does nothing without the one of the taints.
func (a *Allocator) taintRulesEnabled() bool {
	return a.FeatureEnabled(gateDeviceTaintRules) && a.FeatureEnabled(gateDeviceTaints)
}

// channelOf finds out which implementation upstream picks for the features.
// The choice is not part of upstream's exported API, but each implementation
// is a package of its own, named like its channel.
func channelOf(ctx context.Context, features structured.Features) (string, error) {
	probe, err := structured.NewAllocator(ctx, features, structured.AllocatedState{}, nil, nil, nil)
	if err != nil {
		return "", fmt.Errorf("pick an allocator for the cluster's features: %w", err)
	}
	return path.Base(reflect.TypeOf(probe).Elem().PkgPath()), nil
}
