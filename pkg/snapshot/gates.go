// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// GateStage is how mature a feature is.
type GateStage string

// The stages of a feature gate.
const (
	GateAlpha GateStage = "Alpha"
	GateBeta  GateStage = "Beta"
	GateGA    GateStage = "GA"
)

// GateRelease is the state of a feature gate from one Kubernetes release on.
type GateRelease struct {
	// Minor is the release: 34 stands for Kubernetes 1.34.
	Minor int
	Stage GateStage
	// Default is the value if nobody sets it.
	Default bool
	// Locked gates cannot be set to anything but the default.
	Locked bool
}

// GateSpec is all that is known about a feature gate before a cluster is asked.
type GateSpec struct {
	Name string
	// Releases tells when the gate changed, the oldest release first. Before
	// the first one the gate did not exist, and the feature neither. Releases
	// before [OldestMinor] are left out.
	Releases []GateRelease
	// Requires names the gates that must be on for this one to have an effect.
	Requires []string
}

// In returns what the gate is in Kubernetes 1.minor, false if it did not exist.
func (g GateSpec) In(minor int) (release GateRelease, exists bool) {
	for _, r := range g.Releases {
		if r.Minor > minor {
			break
		}
		release, exists = r, true
	}
	return release, exists
}

func alpha(minor int) GateRelease   { return GateRelease{Minor: minor, Stage: GateAlpha} }
func betaOff(minor int) GateRelease { return GateRelease{Minor: minor, Stage: GateBeta} }
func beta(minor int) GateRelease    { return GateRelease{Minor: minor, Stage: GateBeta, Default: true} }

func ga(minor int) GateRelease { return GateRelease{Minor: minor, Stage: GateGA, Default: true} }

func locked(minor int) GateRelease {
	return GateRelease{Minor: minor, Stage: GateGA, Default: true, Locked: true}
}

// GateSpecs returns the feature gates that decide about Dynamic Resource
// Allocation, sorted by name. Releases and requirements are from
// defaultVersionedKubernetesFeatureGates and
// defaultKubernetesFeatureGateDependencies in pkg/features/kube_features.go of
// Kubernetes v1.37.1.
//
// DRAFractionalCapacityRange is on in 1.37 only with a minimum compatibility
// version of 1.37. By default that is one release back, hence the gate is off
// in 1.37 and on from 1.38.
func GateSpecs() []GateSpec {
	const dra = "DynamicResourceAllocation"
	gate := func(name string, requires []string, releases ...GateRelease) GateSpec {
		return GateSpec{Name: name, Releases: releases, Requires: requires}
	}
	on := func(gates ...string) []string { return gates }
	return []GateSpec{
		gate("CompositePodGroup", on("GenericWorkload", "TopologyAwareWorkloadScheduling"), alpha(37)),
		gate("DRAAdminAccess", on(dra), beta(35), locked(36)),
		gate("DRAConsumableCapacity", on(dra), alpha(35), beta(36)),
		gate("DRADerivedAttributes", on(dra), alpha(37)),
		gate("DRADeviceBindingConditions", on(dra, "DRAResourceClaimDeviceStatus"), alpha(35), beta(36)),
		gate("DRADeviceCompatibilityGroups", on(dra, "DRAPartitionableDevices"), alpha(37)),
		gate("DRADeviceTaintRules", on("DRADeviceTaints"), alpha(35), betaOff(36), ga(37)),
		gate("DRADeviceTaints", on(dra), alpha(35), beta(36), ga(37)),
		gate("DRAExtendedResource", on(dra), alpha(35), beta(36), locked(37)),
		gate("DRAFractionalCapacityRange", on("DRAConsumableCapacity"), betaOff(37), beta(38)),
		gate("DRAListTypeAttributes", on(dra), alpha(36)),
		gate("DRANodeAllocatableResources", on(dra), alpha(36)),
		gate("DRAOptionalNodeOperations", on(dra, "NodeDeclaredFeatures"), alpha(37)),
		gate("DRAPartitionableDevices", on(dra), alpha(35), beta(36)),
		gate("DRAPartitionableDevicesType", on(dra, "DRAPartitionableDevices", "DRAResourcePoolStatus"), alpha(37)),
		gate("DRAPrioritizedList", on(dra), beta(35), ga(36), locked(37)),
		gate("DRAResourceClaimDeviceStatus", nil, beta(35), locked(37)),
		gate("DRAResourceClaimGranularStatusAuthorization", on(dra, "DRAResourceClaimDeviceStatus"), beta(36)),
		gate("DRAResourcePoolStatus", on(dra), alpha(36)),
		gate("DRASchedulerFilterTimeout", on(dra), beta(35)),
		gate("DRAWorkloadResourceClaims", on(dra, "GenericWorkload"), alpha(36), betaOff(37)),
		gate(dra, nil, locked(35)),
		gate("GenericWorkload", nil, alpha(35), betaOff(37)),
		gate("KubeletPodResourcesDynamicResources", nil, beta(35), locked(36)),
		gate("NodeDeclaredFeatures", nil, alpha(35), beta(36), locked(37)),
		gate("ResourceHealthStatus", on(dra), alpha(35), beta(36)),
		gate("ResourceHealthStatusMessage", on("ResourceHealthStatus"), beta(36)),
		gate("TopologyAwareWorkloadScheduling", on("GenericWorkload"), alpha(36)),
	}
}

// KnownGates returns the names of all gates of [GateSpecs], sorted.
func KnownGates() []string {
	specs := GateSpecs()
	names := make([]string, len(specs))
	for i, spec := range specs {
		names[i] = spec.Name
	}
	return names
}

// Gate returns the setting of a feature gate: what the command line says,
// else what the cluster's metrics say, else the default of its version. A gate
// that is on by default counts as off while a gate that it requires is off.
// Where the version is unknown, the defaults are from the newest kubelet's
// release, or of the newest release known to this program. An unknown gate is off.
func (r *Release) Gate(name string) Gate {
	return r.gate(name, r.minor(), GateSpecs())
}

// HasGate reports whether the cluster has a gate of that name. It can have the
// feature without, see [GateSpec].
func (r *Release) HasGate(name string) bool {
	if _, known := r.Gates[name]; known {
		return true
	}
	minor := r.minor()
	return slices.ContainsFunc(GateSpecs(), func(spec GateSpec) bool {
		_, exists := spec.In(minor)
		return spec.Name == name && exists
	})
}

// minor returns the release whose defaults count.
func (r *Release) minor() int {
	minor, known := MinorVersion(r.ServerVersion)
	if !known {
		minor = cmp.Or(r.Skew.From, NewestMinor)
	}
	return max(minor, OldestMinor)
}

func (r *Release) gate(name string, minor int, specs []GateSpec) Gate {
	if gate, ok := r.Gates[name]; ok {
		return gate
	}
	gate := Gate{Source: GateFromDefault}
	i := slices.IndexFunc(specs, func(spec GateSpec) bool { return spec.Name == name })
	if i < 0 {
		return gate
	}
	release, _ := specs[i].In(minor)
	gate.Enabled = release.Default && !slices.ContainsFunc(specs[i].Requires, func(required string) bool {
		return !r.gate(required, minor, specs).Enabled
	})
	return gate
}

// ParseGates reads the values of --feature-gates. Each is a list like
// "DRADeviceTaints=true,DRAPrioritizedList=false"; later ones win. Anything
// that is not one of [KnownGates] is an error which names the nearest of them.
func ParseGates(values []string) (map[string]bool, error) {
	gates := map[string]bool{}
	for _, value := range values {
		for setting := range strings.SplitSeq(value, ",") {
			setting = strings.TrimSpace(setting)
			if setting == "" {
				continue
			}
			name, state, ok := strings.Cut(setting, "=")
			name, state = strings.TrimSpace(name), strings.TrimSpace(state)
			if err := checkGateName(name); err != nil {
				return nil, err
			}
			enabled, err := strconv.ParseBool(state)
			if !ok || err != nil {
				return nil, fmt.Errorf("parse feature gate %s: %q is neither true nor false; write %s=true or %s=false", name, state, name, name)
			}
			gates[name] = enabled
		}
	}
	return gates, nil
}

// checkGateName fails for a gate that has no bearing on what this program says.
func checkGateName(name string) error {
	known := KnownGates()
	if slices.Contains(known, name) {
		return nil
	}
	near := english.DidYouMean(name, known)
	if near == "" {
		near = "; known are " + strings.Join(known, ", ")
	}
	return fmt.Errorf("parse feature gate: %q is not known%s", name, near)
}

// AssumeVersion makes the snapshot one of a cluster of another version, in
// which the gates that were detected mean nothing.
func (s *Snapshot) AssumeVersion(version string) {
	s.ServerVersion, s.Emulator = version, ""
	maps.DeleteFunc(s.Gates, func(_ string, gate Gate) bool { return gate.Source == GateFromMetrics })
	s.Gaps = slices.DeleteFunc(s.Gaps, func(gap Gap) bool { return gap.Resource == ResourceMetrics })
	if minor, ok := MinorVersion(version); ok && minor > NewestMinor {
		s.Gaps = append(s.Gaps, Gap{Resource: ResourceMetrics, Reason: fmt.Sprintf(
			"Kubernetes %s is newer than 1.%d, the newest that this program knows", version, NewestMinor)})
	}
}
