// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"path"
	"strings"
)

// uidLength is the length of a claim's UID.
const uidLength = 36

// claimUID says after which claim a device is named. Drivers do it in these
// ways:
//
//   - <UID>-<device> of class claim, in a file that ends in _<UID>: the NVIDIA
//     driver (CreateClaimSpecFile, cmd/gpu-kubelet-plugin/cdi.go), and those
//     made from dra-example-driver;
//   - <UID>_<request> of class metadata, in a file with _<UID>_: the upstream
//     helper (writeCDISpec, kubeletplugin/metadata.go).
//
// The name of a device may also be a UUID of its own, as for a mediated
// device is. So the class or the file must say too that it is about a claim.
func claimUID(file, class, name string) string {
	if len(name) < uidLength || !isUID(name[:uidLength]) {
		return ""
	}
	uid, rest := name[:uidLength], name[uidLength:]
	if rest != "" && rest[0] != '-' && rest[0] != '_' {
		return ""
	}
	file = strings.TrimSuffix(path.Base(file), path.Ext(file))
	switch {
	case class == "claim", class == "metadata", strings.HasSuffix(file, "_"+uid), strings.Contains(file, "_"+uid+"_"):
		return uid
	default:
		return ""
	}
}

// isUID reports whether text is a UUID in lower case.
func isUID(text string) bool {
	if len(text) != uidLength {
		return false
	}
	for i := range len(text) {
		c := text[i]
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// byClaim reports whether the driver itself gives devices of this vendor and class to a
// claim; other devices are metadata that the helper adds.
func byClaim(class string) bool { return class != "metadata" }

// driverOf returns the driver of a vendor: its own name, or the name with k8s. in front.
func driverOf(vendor string) string { return strings.TrimPrefix(vendor, "k8s.") }
