// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

const (
	// OldestMinor is the oldest supported 1.x release: older ones are answered as it.
	OldestMinor = 35
	// NewestMinor is the newest 1.x release that the tables of this program cover.
	NewestMinor = 37
	// MaxSkew is how many minor releases a kubelet may be older than the API server
	// (kubernetes.io/releases/version-skew-policy). It is never newer.
	MaxSkew = 3
)

// Release is the Kubernetes release of a cluster, with its feature gates.
type Release struct {
	// ServerVersion is the gitVersion of the API server ("v1.37.1"), empty if
	// unknown. An API server that emulates an older release tells that one.
	ServerVersion string
	// Emulator is the gitVersion of an API server that emulates an older release,
	// else empty. Gates and API belong to ServerVersion, the code to Emulator.
	Emulator string
	// OtherRelease is true if the release is supposed to be another one than that whose
	// components wrote what the objects say.
	OtherRelease bool
	// Skew is the skew that the kubelets allow for an API server whose version is not
	// known.
	Skew Skew
	// Gates has the feature gates that are known from the cluster, from the
	// command line or from a saved snapshot, by name. See [Release.Gate] for
	// the answer that includes the defaults of the server's version.
	Gates map[string]Gate
}

// Skew has the minor releases that an API server can have, judging by its kubelets: From to
// To. It is zero if no kubelet is known.
type Skew struct{ From, To int }

// ParseVersion reads a Kubernetes version as people write it: "1.36",
// "v1.36.2", "1.36.2-gke.100". It returns the form that
// [Release.ServerVersion] has.
func ParseVersion(text string) (string, error) {
	text = strings.TrimSpace(text)
	parsed, err := version.ParseGeneric(text)
	if err != nil || parsed.Major() != 1 {
		return "", fmt.Errorf("parse Kubernetes version %q: not a version like 1.36 or v1.36.2", text)
	}
	text = "v" + strings.TrimPrefix(text, "v")
	if strings.Count(text, ".") == 1 {
		text = fmt.Sprintf("v1.%d.0", parsed.Minor())
	}
	return text, nil
}

// UnknownReleaseError means that this program does not know a release.
type UnknownReleaseError struct{ Version string }

// Error says which releases are known.
func (e *UnknownReleaseError) Error() string {
	return fmt.Sprintf("what Kubernetes %s does is not known: known are 1.%d to 1.%d", e.Version, OldestMinor, NewestMinor)
}

// CheckKnown fails with an [*UnknownReleaseError] for a release that is older or newer than
// all that are known.
func CheckKnown(release string) error {
	if minor, ok := MinorVersion(release); ok && OldestMinor <= minor && minor <= NewestMinor {
		return nil
	}
	return &UnknownReleaseError{release}
}

// BinaryVersion returns the release whose code the cluster runs, as far as the API server
// knows; empty if unknown.
func (r *Release) BinaryVersion() string { return cmp.Or(r.Emulator, r.ServerVersion) }

// Newer reports whether the release of the cluster is newer than all that this program knows.
func (r *Release) Newer() bool {
	minor, known := MinorVersion(r.BinaryVersion())
	return known && minor > NewestMinor
}

// SkewOf returns the releases that the kubelets of nodes leave to the API server. Where
// they are further apart than is supported, To is less than From.
func SkewOf(nodes []*corev1.Node) Skew {
	var skew Skew
	for _, node := range nodes {
		if kubelet, ok := MinorVersion(node.Status.NodeInfo.KubeletVersion); ok {
			if skew.From = max(skew.From, kubelet); skew.To == 0 || kubelet+MaxSkew < skew.To {
				skew.To = kubelet + MaxSkew
			}
		}
	}
	return skew
}

// String says what the kubelets leave to the API server.
func (s Skew) String() string {
	if s.To < s.From {
		return fmt.Sprintf("its kubelets, up to 1.%d, are further apart than Kubernetes supports", s.From)
	}
	return fmt.Sprintf("kubelets are never newer than the API server and at most %d releases older, so it has 1.%d to 1.%d", MaxSkew, s.From, s.To)
}

// VersionNote says that a release is answered as another one; empty if it is not.
func (r *Release) VersionNote() string {
	if minor, known := MinorVersion(r.BinaryVersion()); known && minor < OldestMinor {
		return fmt.Sprintf("Kubernetes 1.%d is not supported: answered as 1.%d", minor, OldestMinor)
	}
	return ""
}

// MinorVersion returns 36 for "v1.36.3-gke.100".
func MinorVersion(gitVersion string) (minor int, ok bool) {
	parsed, err := version.ParseGeneric(gitVersion)
	if err != nil || parsed.Major() != 1 {
		return 0, false
	}
	return int(parsed.Minor()), true
}

// GateSource tells how a feature gate became known, in decreasing authority.
type GateSource string

const (
	// GateFromFlag is a gate given with --feature-gates.
	GateFromFlag GateSource = "flag"
	// GateFromMetrics is kubernetes_feature_enabled of the API server.
	GateFromMetrics GateSource = "metrics"
	// GateFromDefault is the default of the release, see [GateSpecs].
	GateFromDefault GateSource = "default"
)

// Gate is the setting of one feature gate.
type Gate struct {
	Enabled bool       `json:"enabled"`
	Source  GateSource `json:"source"`
}

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
