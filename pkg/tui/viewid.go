// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

// viewID is what a screen shows. The views up to findings have a key, which is
// their number plus one.
type viewID int

const (
	viewOverview viewID = iota
	viewNodes
	viewPools
	viewDevices
	viewClaims
	viewPending
	viewClasses
	viewTaints
	viewFindings
	// viewPods is reached from claims only.
	viewPods
)

func viewNames() []string {
	return []string{"overview", "nodes", "pools", "devices", "claims", "pending", "classes", "taints", "findings"}
}

func (id viewID) String() string {
	if id == viewPods {
		return "pods"
	}
	return viewNames()[id]
}
