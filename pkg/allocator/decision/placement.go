// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

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
