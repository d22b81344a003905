// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import "slices"

// frontierOf finds the frontier of a component, or remembers it.
func (p *placement) frontierOf(c *component, columns []column, classes []class) *frontier {
	key := p.signature(c, columns, classes)
	if known, found := p.s.memo[key]; found {
		return known
	}
	h := &host{p: p, component: c, local: make(map[int]int, len(c.devices))}
	for i, d := range c.devices {
		h.local[d] = i
	}
	for n, at := range c.columns {
		col := columns[at]
		// More than the possible number makes no difference.
		col.demand, col.need = c.supply[n], c.need[n]
		col.cands = slices.DeleteFunc(slices.Clone(col.cands), func(cand *Candidate) bool {
			_, found := h.local[cand.Device]
			return !found
		})
		h.columns = append(h.columns, col)
	}
	for _, at := range c.classes {
		h.classes = append(h.classes, classes[at])
		for _, m := range p.modes(&classes[at].members[0], h.local) {
			h.modes = append(h.modes, classMode{class: len(h.classes) - 1, mode: m})
		}
	}
	h.counts = make([]int, len(h.modes))
	h.hosted = make([]int, len(h.classes))
	if outcomes, columns := h.try(); len(outcomes) > 0 {
		h.extend(0, outcomes, columns)
	}
	result := &frontier{points: p.s.best(h.points)}
	if !p.s.stopped {
		p.s.memo[key] = result
	}
	return result
}

// host tries out how many scopes a component can host, in which modes, and how much is left
// for its columns then.
type host struct {
	p         *placement
	component *component
	local     map[int]int
	columns   []column
	classes   []class
	modes     []classMode
	// counts is how many scopes are hosted in each mode, hosted how many of
	// each class.
	counts []int
	hosted []int
	points []point
}

type classMode struct {
	class int
	mode  mode
}

// guests are the columns of a distribution with hosted scopes: first the columns of the
// component, then the columns of the items in entries.
type guests struct {
	own     int
	columns []column
	// entries are the items of the scopes, owner the scope of each.
	entries []entry
	owner   []int
	classOf []int
}

// extend hosts more scopes in the k-th mode and all after it. The outcomes belong to the
// scopes hosted now.
func (h *host) extend(k int, outcomes []outcome, g *guests) {
	if k == len(h.modes) {
		if h.enoughHosted() {
			h.record(outcomes, g)
		}
		return
	}
	h.extend(k+1, outcomes, g)
	class := h.modes[k].class
	before := h.counts[k]
	for h.hosted[class] < len(h.classes[class].members) {
		h.counts[k]++
		h.hosted[class]++
		more, next := h.try()
		if len(more) == 0 {
			h.counts[k]--
			h.hosted[class]--
			break
		}
		h.extend(k+1, more, next)
	}
	h.hosted[class] -= h.counts[k] - before
	h.counts[k] = before
}

// enoughHosted reports whether each class has all that it needs of this component.
func (h *host) enoughHosted() bool {
	for c := range h.classes {
		if h.hosted[c] < h.component.need[len(h.columns)+c] {
			return false
		}
	}
	return true
}

// try finds the outcomes of the component with the scopes that are hosted now.
func (h *host) try() ([]outcome, *guests) {
	g := &guests{own: len(h.columns)}
	next := make([]int, len(h.classes))
	for k, count := range h.counts {
		class := h.modes[k].class
		for range count {
			member := &h.classes[class].members[next[class]]
			next[class]++
			for n, i := range member.items {
				it := h.p.items[i]
				it.cands = h.modes[k].mode.cands[n]
				if next[class] > 1 {
					it.cands = h.p.translate(it.cands, i)
				}
				g.entries = append(g.entries, entry{item: it, order: i})
				g.owner = append(g.owner, len(g.classOf))
			}
			g.classOf = append(g.classOf, class)
		}
	}
	merged := h.p.columns(g.entries)
	for c := range merged {
		merged[c].need = merged[c].demand
	}
	g.columns = append(slices.Clone(h.columns), merged...)
	at := make([]int, len(g.columns))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int { return g.columns[a].order - g.columns[b].order })
	sorted := make([]column, len(at))
	for i, c := range at {
		sorted[i] = g.columns[c]
	}
	outcomes := newDistribution(h.p, h.component.devices, sorted).solve()
	// Back to the order of the guests.
	for o := range outcomes {
		amounts := make([]int, len(at))
		for i, c := range at {
			amounts[c] = outcomes[o].amounts[i]
		}
		outcomes[o].amounts = amounts
		for n := range outcomes[o].shares {
			outcomes[o].shares[n].column = at[outcomes[o].shares[n].column]
		}
	}
	return outcomes, g
}

// translate returns the candidates of an item for the same devices.
func (p *placement) translate(cands []*Candidate, item int) []*Candidate {
	wanted := make(map[int]bool, len(cands))
	for _, c := range cands {
		wanted[c.Device] = true
	}
	var result []*Candidate
	for _, c := range p.items[item].cands {
		if wanted[c.Device] {
			result = append(result, c)
		}
	}
	return result
}

// record makes a point of each outcome.
func (h *host) record(outcomes []outcome, g *guests) {
	for _, o := range outcomes {
		pt := point{amounts: append(slices.Clone(o.amounts[:g.own]), h.hosted...)}
		devices := make([][]int, len(g.columns))
		for _, sh := range o.shares {
			if sh.column < g.own {
				pt.shares = append(pt.shares, sh)
				continue
			}
			for range sh.times {
				devices[sh.column] = append(devices[sh.column], sh.device)
			}
		}
		for _, class := range g.classOf {
			pt.hosted = append(pt.hosted, hosted{class: class})
		}
		byEntry := make([][]int, len(g.entries))
		for c := g.own; c < len(g.columns); c++ {
			counts := make([]int, len(g.columns[c].items))
			for n, e := range g.columns[c].items {
				counts[n] = g.entries[e].count
			}
			for n, own := range apportion(devices[c], counts) {
				byEntry[g.columns[c].items[n]] = own
			}
		}
		for e, owner := range g.owner {
			pt.hosted[owner].devices = append(pt.hosted[owner].devices, byEntry[e])
		}
		h.p.s.remember(len(pt.amounts)+4*len(pt.shares), 0)
		h.points = append(h.points, pt)
	}
}

// best drops the points that are no better than another one.
func (s *solver) best(points []point) []point {
	var kept []point
	for i := range points {
		if !s.work(1 + len(points)/comparesPerStep) {
			return nil
		}
		worse := false
		for j := range points {
			if i != j && atLeast(points[j].amounts, points[i].amounts) && (j < i || !atLeast(points[i].amounts, points[j].amounts)) {
				worse = true
				break
			}
		}
		if !worse {
			kept = append(kept, points[i])
		}
	}
	return kept
}
