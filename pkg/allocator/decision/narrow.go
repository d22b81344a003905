// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/binary"
	"slices"
)

// enough reports whether there are enough devices for all items when nothing
// but the number of devices counts.
func (s *solver) enough(items []item) bool {
	wants := make([]int, len(items))
	// Requests with admin access get devices beside all others, but only one request of a
	// claim gets the same device.
	type place struct{ device, access int }
	users := make(map[place][]int)
	var order []place
	for i := range items {
		wants[i] = items[i].count
		if len(items[i].cands) < items[i].count {
			return false
		}
		access := 0
		if items[i].admin {
			access = 1 + items[i].claim
		}
		for _, c := range items[i].cands {
			p := place{c.Device, access}
			if users[p] == nil {
				order = append(order, p)
			}
			users[p] = append(users[p], i)
		}
	}
	var bundles []bundle
	known := make(map[string]int)
	for _, p := range order {
		shared := s.problem.Devices[p.device].Shared
		key := binary.AppendVarint(nil, int64(p.access))
		for _, i := range users[p] {
			key = binary.AppendVarint(key, int64(i))
		}
		if shared {
			key = append(key, '*')
		}
		at, found := known[string(key)]
		if !found {
			at = len(bundles)
			known[string(key)] = at
			b := bundle{}
			for _, i := range users[p] {
				b.edges = append(b.edges, edge{column: i})
			}
			bundles = append(bundles, b)
		}
		bundles[at].capacity++
		if shared {
			bundles[at].capacity += len(users[p]) - 1
		}
		for e := range bundles[at].edges {
			bundles[at].edges[e].capacity++
		}
	}
	_, ok := distribute(bundles, wants)
	return ok
}

// scope returns the items to which a constraint applies and how many devices they want.
func (p *placement) scope(constraint int) (items []int, count int) {
	for i := range p.items {
		if bound(p.items[i].cands, constraint) {
			items = append(items, i)
			count += p.items[i].count
		}
	}
	return items, count
}

// narrow drops the candidates that would leave no value to a match constraint, and finds
// the match constraints that still are a choice. It reports whether all items have enough
// candidates left.
func (p *placement) narrow() bool {
	for changed := true; changed; {
		changed = false
		p.matches = p.matches[:0]
		for c := range p.s.problem.Constraints {
			if p.s.isDistinct(c) {
				continue
			}
			items, count := p.scope(c)
			if count < 2 {
				continue
			}
			values, common := p.matchValues(c, items)
			if common {
				continue
			}
			for _, i := range items {
				kept := having(p.items[i].cands, c, values)
				changed = changed || len(kept) < len(p.items[i].cands)
				p.items[i].cands = kept
			}
			p.matches = append(p.matches, c)
		}
		for i := range p.items {
			if len(p.items[i].cands) < p.items[i].count {
				return false
			}
		}
	}
	return true
}

// matchValues returns the values that enough candidates of each item have, and whether one
// of them is common to all candidates, so that the constraint is no limit.
func (p *placement) matchValues(constraint int, items []int) (values map[int]bool, common bool) {
	values = make(map[int]bool)
	feasible := make(map[int]int)
	everywhere := make(map[int]int)
	for _, i := range items {
		counts := make(map[int]int)
		for _, c := range p.items[i].cands {
			vs := valuesOf(c, constraint)
			for k, v := range vs {
				if !slices.Contains(vs[:k], v) {
					counts[v]++
				}
			}
		}
		for v, count := range counts {
			if count >= p.items[i].count {
				feasible[v]++
			}
			if count == len(p.items[i].cands) {
				everywhere[v]++
			}
		}
	}
	for v, n := range feasible {
		common = common || everywhere[v] == len(items)
		if n == len(items) {
			values[v] = true
		}
	}
	return values, common
}

// having returns the candidates that have one of the values of a constraint.
func having(cands []*Candidate, constraint int, values map[int]bool) []*Candidate {
	var kept []*Candidate
	for _, c := range cands {
		if slices.ContainsFunc(valuesOf(c, constraint), func(v int) bool { return values[v] }) {
			kept = append(kept, c)
		}
	}
	return kept
}

// findDistinct finds the distinct constraints that two candidates could
// violate.
func (p *placement) findDistinct() {
	for c := range p.s.problem.Constraints {
		if !p.s.isDistinct(c) {
			continue
		}
		items, count := p.scope(c)
		if count < 2 {
			continue
		}
		// A device that is alone with its value can't collide, unless several may take it.
		first := make(map[int]*Candidate)
		users := make(map[int]int)
		limit := false
		for _, i := range items {
			for _, cand := range p.items[i].cands {
				users[cand.Device]++
				twice := users[cand.Device] > 1 && (p.admin || p.s.problem.Devices[cand.Device].Shared)
				for _, v := range valuesOf(cand, c) {
					if first[v] == nil {
						first[v] = cand
					}
					limit = limit || twice || first[v].Device != cand.Device
				}
			}
		}
		if limit {
			p.distinct = append(p.distinct, c)
		}
	}
}

// enoughValues reports whether each distinct constraint has enough values when
// nothing else counts. Constraints with list values are not looked at.
func (p *placement) enoughValues() bool {
	for _, c := range p.distinct {
		items, _ := p.scope(c)
		wants := make([]int, len(items))
		at := make(map[int]int)
		var bundles []bundle
		scalar := true
		for n, i := range items {
			wants[n] = p.items[i].count
			for _, cand := range p.items[i].cands {
				values := valuesOf(cand, c)
				scalar = scalar && len(values) == 1
				b, found := at[values[0]]
				if !found {
					b = len(bundles)
					at[values[0]] = b
					bundles = append(bundles, bundle{capacity: 1})
				}
				if last := len(bundles[b].edges) - 1; last < 0 || bundles[b].edges[last].column != n {
					bundles[b].edges = append(bundles[b].edges, edge{column: n, capacity: 1})
				}
			}
		}
		if _, ok := distribute(bundles, wants); scalar && !ok {
			return false
		}
	}
	return true
}

// findSets finds the counter sets in which not all devices get along.
func (p *placement) findSets() {
	p.sets = make(map[int]bool)
	states := make(map[int]int)
	for i := range p.items {
		for _, c := range p.items[i].cands {
			for _, g := range p.s.groups[c.Device] {
				state, found := states[g.set]
				if !found {
					state = p.s.table.start(g.set)
				}
				state, ok := p.s.table.join(state, g.groups)
				states[g.set] = state
				if !ok {
					p.sets[g.set] = true
				}
			}
		}
	}
}
