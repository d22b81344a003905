// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/binary"
)

// combination puts together what the components can do.
type combination struct {
	p       *placement
	columns []column
	classes []class
	// demand has the numbers that the columns and then the classes need.
	demand []int
	// simple has the devices that share nothing with others, in groups of equal
	// ones, each with its bundle.
	simple  [][]int
	bundles []bundle
	// parts are the other components.
	parts []*part
}

// part is a component and what it can do, in terms of all columns and classes.
type part struct {
	component *component
	frontier  *frontier
	vectors   [][]int
	// picked is the vector that is chosen.
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
	// supply is an upper bound of what it can give to each column and then to
	// each class, need what it must give because no others can.
	supply, need []int
}

// column is a group of items that can do with the same devices in the same
// way, so that it does not matter which of them gets which.
type column struct {
	// items are indices in the list that the column was made from.
	items []int
	// demand is how many devices they want together, and need how many of them
	// can only be found where one looks for them.
	demand, need int
	// order is where the first of them stands among all requests.
	order int
	claim int
	admin bool
	cands []*Candidate
}
