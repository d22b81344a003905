// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/binary"
	"slices"
)

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

// signer writes down how a component is built. Counters, counter sets,
// constraints and values go by the order in which they turn up, so that
// components which differ in nothing else have the same signature.
type signer struct {
	p     *placement
	key   []byte
	names map[name]int64
	next  map[nameKind]int64
}

// name is something that is renamed: a number of some kind, within a scope
// where it belongs to one.
type name struct {
	kind  nameKind
	owner int
	a     int
}

type nameKind int

const (
	nameCounter nameKind = iota
	nameSet
	nameConstraint
	nameValue
)

// signature returns a key that is equal for components with equal frontiers.
func (p *placement) signature(c *component, columns []column, classes []class) string {
	w := &signer{p: p, names: make(map[name]int64), next: make(map[nameKind]int64)}
	local := make(map[int]int, len(c.devices))
	for i, d := range c.devices {
		local[d] = i
	}
	w.put(int64(len(c.devices)), int64(len(c.columns)), int64(len(c.classes)))
	for _, d := range c.devices {
		w.device(d)
	}
	for n, at := range c.columns {
		col := &columns[at]
		w.put(-1, int64(c.supply[n]), int64(c.need[n]), int64(len(col.items)))
		w.access(col.order, col.claim, col.admin)
		w.candidates(col.cands, local, nil)
	}
	for n, at := range c.classes {
		cl := &classes[at]
		w.put(-2, int64(len(cl.members)), int64(c.need[len(c.columns)+n]))
		sc := &cl.members[0]
		for _, i := range sc.items {
			it := &p.items[i]
			w.put(-3, int64(it.count))
			w.access(i, it.claim, it.admin)
			w.candidates(it.cands, local, sc)
		}
		for _, constraint := range p.distinct {
			if len(cl.members) > 1 && p.binds(&cl.members[0], constraint) && p.binds(&cl.members[1], constraint) {
				// One constraint for all scopes instead of one for each.
				w.put(-10, w.rename(name{kind: nameConstraint, a: constraint}))
			}
		}
		if p.admin {
			// Scopes are never merged then, but their items depend on the order.
			w.put(int64(sc.items[0]))
		}
	}
	return string(w.key)
}

func (w *signer) put(numbers ...int64) {
	for _, n := range numbers {
		w.key = binary.AppendVarint(w.key, n)
	}
}

// rename returns the number of a name, a new one when it turns up first.
func (w *signer) rename(n name) int64 {
	id, found := w.names[n]
	if !found {
		id = w.next[n.kind]
		w.next[n.kind]++
		w.names[n] = id
	}
	return id
}

// access writes down what the right to a device depends on.
func (w *signer) access(order, claim int, admin bool) {
	if !w.p.admin {
		return
	}
	w.put(int64(order), int64(claim))
	if admin {
		w.put(1)
	} else {
		w.put(0)
	}
}

func (w *signer) device(d int) {
	device := &w.p.s.problem.Devices[d]
	if device.Shared {
		w.put(-4, int64(len(device.Capacity)))
		w.put(device.Capacity...)
	}
	for _, u := range w.p.s.uses[d] {
		if w.p.counters[u.Counter] {
			w.put(-5, w.rename(name{kind: nameCounter, a: u.Counter}), w.p.s.problem.Counters[u.Counter], u.Amount)
		}
	}
	for _, g := range w.p.s.groups[d] {
		if w.p.sets[g.set] {
			w.put(-6, w.rename(name{kind: nameSet, a: g.set}), int64(w.p.s.table.start(g.set)), int64(g.groups))
		}
	}
	w.put(-7)
}

// candidates writes down the candidates that lie in the component, for an item
// of a scope or, without one, for a column.
func (w *signer) candidates(cands []*Candidate, local map[int]int, sc *scope) {
	for _, c := range cands {
		i, found := local[c.Device]
		if !found {
			continue
		}
		w.put(-8, int64(i))
		w.key = w.p.appendTakes(w.key, c)
		for _, constraint := range w.p.distinct {
			w.values(c, constraint)
		}
		if sc == nil {
			continue
		}
		for _, constraint := range sc.matches {
			w.values(c, constraint)
		}
	}
}

func (w *signer) values(c *Candidate, constraint int) {
	values := valuesOf(c, constraint)
	if values == nil {
		return
	}
	w.put(-9, w.rename(name{kind: nameConstraint, a: constraint}), int64(len(values)))
	for _, v := range values {
		w.put(w.rename(name{kind: nameValue, owner: constraint, a: v}))
	}
}

// binds reports whether a constraint applies to an item of the scope.
func (p *placement) binds(sc *scope, constraint int) bool {
	for _, i := range sc.items {
		if bound(p.items[i].cands, constraint) {
			return true
		}
	}
	return false
}
