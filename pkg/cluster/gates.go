// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Channels are the implementations of the structured allocator, of which the feature gates
// select one. The stable one does not sort pools and counts counter sets differently; see
// [Pools].
const (
	ChannelStable       = "stable"
	ChannelIncubating   = "incubating"
	ChannelExperimental = "experimental"
)

// Gates that affect allocation.
const (
	GateAdminAccess          = "DRAAdminAccess"
	GateBindingConditions    = "DRADeviceBindingConditions"
	GateCompatibilityGroups  = "DRADeviceCompatibilityGroups"
	GateConsumableCapacity   = "DRAConsumableCapacity"
	GateDerivedAttributes    = "DRADerivedAttributes"
	GateDeviceStatus         = "DRAResourceClaimDeviceStatus"
	GateDeviceTaintRules     = "DRADeviceTaintRules"
	GateDeviceTaints         = "DRADeviceTaints"
	GateExtendedResource     = "DRAExtendedResource"
	GateFilterTimeout        = "DRASchedulerFilterTimeout"
	GateFractionalCapacity   = "DRAFractionalCapacityRange"
	GateListTypeAttributes   = "DRAListTypeAttributes"
	GateNodeAllocatable      = "DRANodeAllocatableResources"
	GateOptionalNodeOps      = "DRAOptionalNodeOperations"
	GatePartitionableDevices = "DRAPartitionableDevices"
	GatePrioritizedList      = "DRAPrioritizedList"
	GateWorkloadClaims       = "DRAWorkloadResourceClaims"
)

// Gates are the feature gates of a cluster, and their effect on the allocator.
type Gates struct {
	// release is a copy: clusters that shared a snapshot would keep each other in memory.
	release snapshot.Release
	// known has the gates that affect allocation.
	known map[string]snapshot.Gate
	features
	// listsCompared is true if constraints compare attributes that are lists.
	listsCompared bool
	// tolerationOperators is the gate TaintTolerationComparisonOperators.
	tolerationOperators bool
	enabled             func() Features
}

// features are the features that pools and their devices depend on.
type features struct {
	channel                                      string
	compatibilityGroups, consumableCapacity      bool
	deviceBindingAndStatus, listTypeAttributes   bool
	optionalNodeOperations, partitionableDevices bool
	// taintRules is true if DeviceTaintRules count. The gate of the rules does nothing
	// without the gate of taints. openRules is true if rules without a selector taint all
	// devices.
	taintRules, openRules bool
	// countersConcernAll is true if slices with counter sets concern every node: in the
	// stable channel, and in releases with [CountersConcernAll].
	countersConcernAll bool
}

// stable reports whether the features select the stable channel.
func (f *features) stable() bool { return f.channel == ChannelStable }

func newGates(snap *snapshot.Snapshot, behaviors map[Behavior]bool) *Gates {
	g := &Gates{
		release: snap.Release,
		known:   map[string]snapshot.Gate{},
	}
	for _, name := range []string{
		GateAdminAccess, GateBindingConditions, GateCompatibilityGroups, GateConsumableCapacity,
		GateDerivedAttributes, GateDeviceStatus, GateDeviceTaintRules, GateDeviceTaints,
		GateExtendedResource, GateFilterTimeout, GateFractionalCapacity, GateListTypeAttributes,
		GateNodeAllocatable, GateOptionalNodeOps, GatePartitionableDevices, GatePrioritizedList,
		GateWorkloadClaims,
	} {
		g.known[name] = snap.Gate(name)
	}
	g.listsCompared = g.Enabled(GateListTypeAttributes) && !behaviors[ListsNotCompared]
	g.features = features{
		channel:                channelOf(g.Enabled, g.listsCompared),
		compatibilityGroups:    g.Enabled(GateCompatibilityGroups),
		consumableCapacity:     g.Enabled(GateConsumableCapacity),
		deviceBindingAndStatus: g.Enabled(GateBindingConditions) && g.Enabled(GateDeviceStatus),
		listTypeAttributes:     g.Enabled(GateListTypeAttributes),
		optionalNodeOperations: g.Enabled(GateOptionalNodeOps),
		partitionableDevices:   g.Enabled(GatePartitionableDevices),
		taintRules:             g.Enabled(GateDeviceTaintRules) && g.Enabled(GateDeviceTaints),
		openRules:              behaviors[OpenRuleTaintsAll],
	}
	g.countersConcernAll = g.stable() || behaviors[CountersConcernAll]
	g.tolerationOperators = g.Enabled("TaintTolerationComparisonOperators")
	g.enabled = sync.OnceValue(g.findFeatures)
	return g
}

// sameIn reports whether another snapshot has the same gates, which is faster than
// comparing their effects.
func (g *Gates) sameIn(snap *snapshot.Snapshot) bool {
	return snap.ServerVersion == g.release.ServerVersion && snap.BinaryVersion() == g.release.BinaryVersion() && snap.Skew == g.release.Skew && snap.OtherRelease == g.release.OtherRelease && maps.Equal(snap.Gates, g.release.Gates)
}

// channelOf returns the first channel, from stable to experimental, that supports all
// enabled features (SupportedFeatures of each in
// k8s.io/dynamic-resource-allocation/structured/internal). A test of pkg/allocator compares
// it with upstream's choice.
func channelOf(enabled func(gate string) bool, listsCompared bool) string {
	switch {
	case listsCompared, enabled(GateOptionalNodeOps), enabled(GateDerivedAttributes), enabled(GateCompatibilityGroups):
		return ChannelExperimental
	case enabled(GateBindingConditions) && enabled(GateDeviceStatus), enabled(GateConsumableCapacity), enabled(GateFractionalCapacity):
		return ChannelIncubating
	default:
		return ChannelStable
	}
}

// Features are the allocator's features and the source of each.
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

// Features returns the enabled features. All answers about the cluster share them.
func (g *Gates) Features() Features { return g.enabled() }

func (g *Gates) findFeatures() Features {
	f := Features{Library: Library, Channel: g.channel, Cluster: g.release.ServerVersion}
	weakest := -1
	order := []snapshot.GateSource{snapshot.GateFromFlag, snapshot.GateFromMetrics, snapshot.GateFromDefault}
	for name, gate := range g.known {
		if gate.Enabled && g.release.HasGate(name) {
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

// Enabled reports whether a feature gate is on, by the gate's name.
func (g *Gates) Enabled(gate string) bool {
	if known, ok := g.known[gate]; ok {
		return known.Enabled
	}
	return g.release.Gate(gate).Enabled
}

// Channel returns the implementation of the allocator that the gates select.
func (g *Gates) Channel() string { return g.channel }

// ListsCompared reports whether constraints compare attributes that are lists, as
// the gate says; selectors look at lists wherever it is on.
func (g *Gates) ListsCompared() bool { return g.listsCompared }

// BindingConditions reports whether the allocator uses devices with binding conditions,
// which needs two gates.
func (g *Gates) BindingConditions() bool { return g.deviceBindingAndStatus }

// Selectors returns an evaluator that sees devices as the allocator does. Unlike the
// allocator it is not safe for concurrent use.
func (g *Gates) Selectors() *selector.Evaluator {
	// The stable implementation does not tell selectors that a device can be
	// shared.
	return selector.New(g.CEL(), !g.stable())
}

// CEL returns the features of expressions.
func (g *Gates) CEL() cel.Features {
	return cel.Features{EnableConsumableCapacity: g.consumableCapacity, EnableListTypeAttributes: g.listTypeAttributes}
}
