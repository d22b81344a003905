// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

const (
	// oldestMinor is the first 1.x release with resource.k8s.io/v1beta1.
	oldestMinor = 32
	// newestMinor is the newest 1.x release that the table of gates covers. It
	// answers for clusters whose version is not known.
	newestMinor = 37
)

// ParseVersion reads a Kubernetes version as people write it: "1.36",
// "v1.36.2", "1.36.2-gke.100". It returns the form that
// [Snapshot.ServerVersion] has. Releases without an API of Dynamic Resource
// Allocation that this program understands are an error; newer ones than it
// knows are not.
func ParseVersion(text string) (string, error) {
	release, err := ParseRelease(text)
	if err != nil {
		return "", err
	}
	if minor, ok := MinorVersion(release); ok && minor < oldestMinor {
		return "", fmt.Errorf("parse Kubernetes version %q: before 1.%d it has no resource.k8s.io API "+
			"that this program understands; say 1.%d or later", text, oldestMinor, oldestMinor)
	}
	return release, nil
}

// ParseRelease is [ParseVersion] for any release.
func ParseRelease(text string) (string, error) {
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

// BinaryVersion is the release whose code the cluster runs, as far as the API
// server knows; empty if unknown.
func (s *Snapshot) BinaryVersion() string { return cmp.Or(s.Emulator, s.ServerVersion) }

// MinorVersion returns 36 for "v1.36.3-gke.100".
func MinorVersion(gitVersion string) (minor int, ok bool) {
	parsed, err := version.ParseGeneric(gitVersion)
	if err != nil || parsed.Major() != 1 {
		return 0, false
	}
	return int(parsed.Minor()), true
}
