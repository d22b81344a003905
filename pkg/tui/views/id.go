// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import "strconv"

// ID identifies a view. The views up to teams have a key: the digits in the order of a
// keyboard, 0 last.
type ID int

// The views, in the order of their keys.
const (
	Overview ID = iota
	Nodes
	Pools
	Devices
	Claims
	Pending
	Classes
	Taints
	Causes
	Teams
	// Pods and Findings have no key: pods are reached from claims, and findings from causes.
	Pods
	Findings
)

// Names returns the names of the views that have a key.
func Names() []string {
	return []string{"overview", "nodes", "pools", "devices", "claims", "pending", "classes", "taints", "causes", "teams"}
}

// ShortNames fit beside each other on 80 columns behind their keys, with any of them in full.
func ShortNames() []string {
	return []string{"over", "node", "pool", "dev", "claim", "pending", "class", "taint", "causes", "team"}
}

// Key returns the digit that shows a view.
func (id ID) Key() string { return strconv.Itoa((int(id) + 1) % 10) }

// Namespaced reports whether the rows of a view are of namespaces.
func (id ID) Namespaced() bool {
	switch id {
	case Nodes, Pools, Devices, Classes, Taints:
		return false
	default:
		return true
	}
}

// ByKey returns the view of a digit; false for other keys.
func ByKey(key string) (id ID, ok bool) {
	number, err := strconv.Atoi(key)
	if err != nil || len(key) != 1 {
		return 0, false
	}
	return ID((number + 9) % 10), true
}

func (id ID) String() string {
	return append(Names(), "pods", "findings")[id]
}
