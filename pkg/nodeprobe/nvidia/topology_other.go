// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package nvidia

import "github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"

// topology returns nothing: only Linux has sysfs.
func topology(*node.Host, string) (root string, numa *int, gone []Missing) {
	const reason = "only Linux reports it"
	return "", nil, []Missing{{Value: "pcieRoot", Reason: reason}, {Value: "numaNode", Reason: reason}}
}
