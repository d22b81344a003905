// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import "strconv"

// viewID is what a screen shows. The views up to teams have a key: the digits in the
// order of a keyboard, 0 last.
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
	viewTeams
	// viewPods is reached from claims only.
	viewPods
)

func viewNames() []string {
	return []string{"overview", "nodes", "pools", "devices", "claims", "pending", "classes", "taints", "findings", "teams"}
}

// shortViewNames fit beside each other on 80 columns, with any of them in full.
func shortViewNames() []string {
	return []string{"over", "node", "pool", "dev", "claim", "pend", "class", "taint", "find", "team"}
}

// key is the digit that shows a view.
func (id viewID) key() string { return strconv.Itoa((int(id) + 1) % 10) }

// viewOf is the view of a digit; false for what is none.
func viewOf(key string) (id viewID, ok bool) {
	number, err := strconv.Atoi(key)
	if err != nil || len(key) != 1 {
		return 0, false
	}
	return viewID((number + 9) % 10), true
}

func (id viewID) String() string {
	if id == viewPods {
		return "pods"
	}
	return viewNames()[id]
}
