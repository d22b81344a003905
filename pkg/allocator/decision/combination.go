// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/binary"
)

// combination combines the possible uses of the components.
type combination struct {
	p       *placement
	columns []column
	classes []class
	// demand has the numbers that the columns and then the classes need.
	demand []int
	// simple has the devices that share nothing with others, in groups of equal ones, each
	// with its bundle.
	simple  [][]int
	bundles []bundle
	// parts are the other components.
	parts []*part
}

// part is a component with its possible uses, in terms of all columns and classes.
type part struct {
	component *component
	frontier  *frontier
	vectors   [][]int
	// picked is the chosen vector.
	picked int
}

// stateKey returns the key of a place in the search and the remaining demand.
func stateKey(place int, wanted []int) string {
	key := binary.AppendVarint(nil, int64(place))
	for _, w := range wanted {
		key = binary.AppendVarint(key, int64(w))
	}
	return string(key)
}

// component is a set of devices that share limits with each other and with no
// other device, and the columns and classes that have candidates there.
type component struct {
	devices []int
	columns []int
	classes []int
	// supply is an upper bound of how much it can give to each column and then to each
	// class, need how much it must give because no others can.
	supply, need []int
}

// column is a group of items that can use the same devices in the same way, so that it does
// not matter which of them gets which.
type column struct {
	// items are indices in the list that the column was made from.
	items []int
	// demand is how many devices they want together, and need how many of them can only be
	// found here.
	demand, need int
	// order is the position of the first of them among all requests.
	order int
	claim int
	admin bool
	cands []*Candidate
}
