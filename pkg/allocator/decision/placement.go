// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/binary"
	"slices"
)

// item is a request with one of its alternatives chosen: so many different
// devices out of these.
type item struct {
	claim int
	admin bool
	count int
	cands []*Candidate
	// run is the same for requests that follow each other in the same claim with the same
	// access, which decide their right to a device.
	run int
}

func newItem(d *demand, o *option) item {
	return item{claim: d.claim, admin: d.admin, count: o.count, cands: o.cands}
}

// placement is the state of the work on one choice of alternatives.
type placement struct {
	s     *solver
	items []item
	admin bool
	// Limits that matter for these items.
	counters map[int]bool
	sets     map[int]bool
	matches  []int
	distinct []int
}

// scope is a set of items that match constraints bind together. All of their
// devices lie in the same component, and once the values are chosen the
// constraints only say which candidates are left.
type scope struct {
	items   []int
	matches []int
}

// class is a group of equal scopes, so that only their number
// matters.
type class struct {
	members []scope
}

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

// entry is an item with its place among all items.
type entry struct {
	item
	order int
}

// columns merges equal entries, in the order of their first ones.
func (p *placement) columns(entries []entry) []column {
	var result []column
	known := make(map[string]int)
	for i := range entries {
		key := p.columnKey(&entries[i].item)
		at, found := known[key]
		if !found {
			at = len(result)
			known[key] = at
			result = append(result, column{order: entries[i].order, claim: entries[i].claim, admin: entries[i].admin, cands: entries[i].cands})
		}
		result[at].items = append(result[at].items, i)
		result[at].demand += entries[i].count
	}
	return result
}

// columnKey returns a key that is equal for items that may be merged. Their devices can be
// dealt out to them when no device is shared, or when all want the same number.
func (p *placement) columnKey(it *item) string {
	var key []byte
	if p.admin {
		key = binary.AppendVarint(key, int64(it.run))
	}
	count := -1
	for _, c := range it.cands {
		if p.s.problem.Devices[c.Device].Shared {
			count = it.count
		}
	}
	key = binary.AppendVarint(key, int64(count))
	for _, c := range it.cands {
		key = binary.AppendVarint(key, int64(c.Device))
		key = p.appendTakes(key, c)
		for _, constraint := range p.distinct {
			if values := valuesOf(c, constraint); values != nil {
				key = binary.AppendVarint(key, int64(constraint))
				key = appendInts(key, values)
			}
		}
		key = binary.AppendVarint(key, -1)
	}
	return string(key)
}

// appendTakes appends the capacity that a candidate takes of a shared device.
func (p *placement) appendTakes(key []byte, c *Candidate) []byte {
	device := &p.s.problem.Devices[c.Device]
	if !device.Shared {
		return key
	}
	for i := range device.Capacity {
		key = binary.AppendVarint(key, take(c, i))
	}
	return key
}

// appendInts appends a list and its length.
func appendInts(key []byte, list []int) []byte {
	key = binary.AppendVarint(key, int64(len(list)))
	for _, i := range list {
		key = binary.AppendVarint(key, int64(i))
	}
	return key
}

// apportion distributes the devices of a column to items that want these counts. Devices may be
// left over. No item gets the same device twice: either no device is listed
// twice, or all want the same number and take turns.
func apportion(devices, counts []int) [][]int {
	assigned := make([][]int, len(counts))
	equal := !slices.ContainsFunc(counts, func(c int) bool { return c != counts[0] })
	total := 0
	for _, count := range counts {
		total += count
	}
	turn := 0
	for _, device := range devices[:total] {
		for len(assigned[turn]) == counts[turn] {
			turn = (turn + 1) % len(counts)
		}
		assigned[turn] = append(assigned[turn], device)
		if equal {
			turn = (turn + 1) % len(counts)
		}
	}
	return assigned
}
