// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/binary"
	"slices"
	"strconv"
)

// partition splits the requests into parts which have nothing in common, so
// that each can be solved without the others.
func (s *solver) partition(demands []demand) [][]demand {
	u := newUnionFind(len(demands))
	tight := s.tightClaims(demands)
	for i := range demands {
		if tight[demands[i].claim] {
			u.tie(i, tie{kind: tieClaim, a: demands[i].claim})
		}
		for o := range demands[i].options {
			for _, c := range demands[i].options[o].cands {
				u.tie(i, tie{kind: tieDevice, a: c.Device})
				for _, use := range s.uses[c.Device] {
					u.tie(i, tie{kind: tieCounter, a: use.Counter})
				}
				for _, g := range s.groups[c.Device] {
					u.tie(i, tie{kind: tieGroups, a: g.set})
				}
				for constraint := range c.Values {
					if c.Values[constraint] != nil {
						u.tie(i, tie{kind: tieConstraint, a: constraint})
					}
				}
			}
		}
	}
	var parts [][]demand
	for _, set := range u.sets() {
		var part []demand
		for _, i := range set {
			part = append(part, demands[i])
		}
		parts = append(parts, part)
	}
	return parts
}

// tightClaims returns the claims for which some choice of alternatives is over the limit of
// devices.
func (s *solver) tightClaims(demands []demand) map[int]bool {
	tight := make(map[int]bool)
	if s.problem.ClaimLimit <= 0 {
		return tight
	}
	most := make(map[int]int)
	for i := range demands {
		counts := 0
		for o := range demands[i].options {
			counts = max(counts, demands[i].options[o].count)
		}
		most[demands[i].claim] += counts
	}
	for claim, n := range most {
		tight[claim] = n > s.problem.ClaimLimit
	}
	return tight
}

// chooser goes through the combinations of alternatives of a part.
type chooser struct {
	s       *solver
	demands []demand
	// order has the indices of the demands, those with the fewest options
	// first.
	order []int
	// equalBefore has for each demand an equal demand that is chosen before, or -1: of two
	// combinations that differ only in who takes which, one is enough.
	equalBefore []int
	// pick has the option of each demand chosen so far.
	pick []int
}

// solvePart finds alternatives and devices for requests that are independent of all others,
// and enters them. It reports whether it found some.
func (s *solver) solvePart(demands []demand, chosen []Choice) bool {
	c := &chooser{s: s, demands: demands, equalBefore: make([]int, len(demands)), pick: make([]int, len(demands))}
	for i := range demands {
		c.order = append(c.order, i)
		if !c.dropImpossible(&demands[i]) {
			return false
		}
	}
	keys := c.keys()
	slices.SortStableFunc(c.order, func(a, b int) int { return len(demands[a].options) - len(demands[b].options) })
	for k, i := range c.order {
		c.equalBefore[i] = -1
		for _, j := range c.order[:k] {
			if len(demands[i].options) > 1 && keys[i] == keys[j] {
				c.equalBefore[i] = j
			}
		}
	}
	items, devices, ok := c.choose(0)
	if !ok {
		return false
	}
	for i := range items {
		d := &demands[i]
		slices.Sort(devices[i])
		chosen[d.request] = Choice{Alternative: d.options[c.pick[i]].alternative, Devices: devices[i]}
	}
	return true
}

// keys returns for the demands with several options keys that are equal for demands which
// could change places. Their identity matters only with admin access and near the limit of
// the claim, and constraints that bind nobody else go by their order.
func (c *chooser) keys() []string {
	tight := c.s.tightClaims(c.demands)
	admin := false
	users := make(map[int]int)
	for i := range c.demands {
		admin = admin || c.demands[i].admin
		for constraint := range c.s.problem.Constraints {
			if slices.ContainsFunc(c.demands[i].options, func(o option) bool { return bound(o.cands, constraint) }) {
				users[constraint]++
			}
		}
	}
	keys := make([]string, len(c.demands))
	for i := range c.demands {
		d := &c.demands[i]
		if len(d.options) == 1 {
			continue
		}
		var key []byte
		if tight[d.claim] || admin {
			key = binary.AppendVarint(key, int64(d.claim))
			key = strconv.AppendBool(key, d.admin)
		}
		own := make(map[int]int64)
		for constraint, n := range users {
			if n > 1 {
				own[constraint] = int64(constraint)
			}
		}
		for o := range d.options {
			key = binary.AppendVarint(key, int64(d.options[o].count))
			key = appendInts(key, []int{len(d.options[o].cands)})
			for _, cand := range d.options[o].cands {
				key = c.appendCandidate(key, cand, own)
			}
		}
		keys[i] = string(key)
	}
	return keys
}

// appendCandidate appends the properties that distinguish the candidate from others.
// Constraints without a name get the next one.
func (c *chooser) appendCandidate(key []byte, cand *Candidate, names map[int]int64) []byte {
	key = binary.AppendVarint(key, int64(cand.Device))
	for i := range c.s.problem.Devices[cand.Device].Capacity {
		key = binary.AppendVarint(key, take(cand, i))
	}
	for constraint := range c.s.problem.Constraints {
		values := valuesOf(cand, constraint)
		if values == nil {
			continue
		}
		if _, found := names[constraint]; !found {
			names[constraint] = -int64(len(names)) - 2
		}
		key = binary.AppendVarint(key, names[constraint])
		key = strconv.AppendBool(key, c.s.isDistinct(constraint))
		key = appendInts(key, values)
	}
	return binary.AppendVarint(key, -1)
}

// dropImpossible drops the options that are impossible even when there is no
// other request, and reports whether any is left.
func (c *chooser) dropImpossible(d *demand) bool {
	if len(d.options) == 1 {
		return true
	}
	var left []option
	for o := range d.options {
		if _, ok := c.s.place([]item{newItem(d, &d.options[o])}); ok {
			left = append(left, d.options[o])
		}
	}
	d.options = left
	return len(left) > 0
}

// choose picks an option for the k-th demand and all after it.
func (c *chooser) choose(k int) ([]item, [][]int, bool) {
	if !c.s.step() || !c.mayFit(k) {
		return nil, nil, false
	}
	if k == len(c.order) {
		items := c.items(k, false)
		devices, ok := c.s.place(items)
		return items, devices, ok
	}
	if c.worthProbing(k) {
		if _, ok := c.s.place(c.items(k, false)); !ok {
			return nil, nil, false
		}
	}
	i := c.order[k]
	first := 0
	if c.equalBefore[i] >= 0 {
		first = c.pick[c.equalBefore[i]]
	}
	for o := first; o < len(c.demands[i].options); o++ {
		c.pick[i] = o
		if items, devices, ok := c.choose(k + 1); ok {
			return items, devices, true
		}
	}
	return nil, nil, false
}

// worthProbing reports whether to solve the choices so far before going on: the last choice
// was between several, and many more follow.
func (c *chooser) worthProbing(k int) bool {
	if k == 0 || len(c.demands[c.order[k]].options) == 1 {
		return false
	}
	rest := 1
	for _, i := range c.order[k:] {
		if rest *= len(c.demands[i].options); rest > 4 {
			return true
		}
	}
	return false
}

// mayFit reports whether the claims stay in their limits and whether there are enough
// devices when each device is only counted, with the easiest of everything for the
// remaining demands.
func (c *chooser) mayFit(k int) bool {
	items := c.items(k, true)
	if limit := c.s.problem.ClaimLimit; limit > 0 {
		counts := make(map[int]int)
		for i := range items {
			counts[items[i].claim] += items[i].count
			if counts[items[i].claim] > limit {
				return false
			}
		}
	}
	return c.s.enough(items)
}

// items returns the first k demands in the order of choice with their picks, all in the
// order of the requests. With relaxed, the others follow with their least count and all of
// their candidates.
func (c *chooser) items(k int, relaxed bool) []item {
	picked := make([]bool, len(c.demands))
	for _, i := range c.order[:k] {
		picked[i] = true
	}
	items := make([]item, 0, len(c.demands))
	for i := range c.demands {
		d := &c.demands[i]
		switch {
		case picked[i]:
			items = append(items, newItem(d, &d.options[c.pick[i]]))
		case relaxed:
			items = append(items, easiest(d))
		}
	}
	return items
}

// easiest returns a demand with the least count of its options and all of their candidates.
func easiest(d *demand) item {
	result := newItem(d, &d.options[0])
	if len(d.options) == 1 {
		return result
	}
	result.cands = nil
	seen := make(map[int]bool)
	for o := range d.options {
		result.count = min(result.count, d.options[o].count)
		for _, c := range d.options[o].cands {
			if !seen[c.Device] {
				seen[c.Device] = true
				result.cands = append(result.cands, c)
			}
		}
	}
	return result
}
