// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

// share is a device given to some of the items of a column.
type share struct {
	column, device, times int
}

// frontier has all useful points of a component: no point is at least as good as another
// one in all respects. It refers to devices, columns and classes by their place in the
// component, so that it is true for all components which are built the same way.
type frontier struct {
	points []point
}

// point is one way to use a component.
type point struct {
	// amounts are given to each column (devices) and then to each class (satisfied scopes).
	amounts []int
	// shares are the devices for the columns.
	shares []share
	// hosted are the scopes.
	hosted []hosted
}

// hosted is a scope with all of its devices, for each of its items.
type hosted struct {
	class   int
	devices [][]int
}
