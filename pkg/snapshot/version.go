// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
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

// Notes say which release is answered as another one, and which objects are left out since
// no supported release has them.
func (s *Snapshot) Notes() []string {
	var notes []string
	if note := s.VersionNote(); note != "" {
		notes = append(notes, note)
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Skipped)) {
		if version, name, found := strings.Cut(kind, ", Kind="); found && strings.HasPrefix(version, "resource.k8s.io/v1alpha") {
			notes = append(notes, fmt.Sprintf("left out: %d × %s of %s, which Kubernetes 1.32 removed", s.Skipped[kind], name, version))
		}
	}
	return notes
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
