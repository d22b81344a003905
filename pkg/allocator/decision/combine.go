// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
)

// combine finds devices for the items in components and combines them.
func (p *placement) combine() ([][]int, bool) {
	c := &combination{p: p}
	free, classes := p.scopes()
	entries := make([]entry, len(free))
	for n, i := range free {
		entries[n] = entry{item: p.items[i], order: i}
	}
	c.columns = p.columns(entries)
	for n := range c.columns {
		// From here on, items belong to the placement.
		for k, e := range c.columns[n].items {
			c.columns[n].items[k] = free[e]
		}
		c.demand = append(c.demand, c.columns[n].demand)
	}
	c.classes = classes
	for n := range classes {
		c.demand = append(c.demand, len(classes[n].members))
	}
	components := c.components()
	if !c.bounds(components) {
		return nil, false
	}
	for _, comp := range components {
		f := p.frontierOf(comp, c.columns, c.classes)
		if p.s.stopped || len(f.points) == 0 {
			return nil, false
		}
		c.parts = append(c.parts, c.part(comp, f))
	}
	given, ok := c.pick()
	if !ok {
		return nil, false
	}
	return c.assign(given), true
}

// components finds the components of the candidate devices. Components of one device that
// can only be used once go to the bundles.
func (c *combination) components() []*component {
	p := c.p
	var devices []int
	at := make(map[int]int)
	for i := range p.items {
		for _, cand := range p.items[i].cands {
			if _, found := at[cand.Device]; !found {
				at[cand.Device] = 0
				devices = append(devices, cand.Device)
			}
		}
	}
	slices.Sort(devices)
	for i, d := range devices {
		at[d] = i
	}
	u := newUnionFind(len(devices))
	for i, d := range devices {
		for _, use := range p.s.uses[d] {
			if p.counters[use.Counter] {
				u.tie(i, tie{kind: tieCounter, a: use.Counter})
			}
		}
		for _, g := range p.s.groups[d] {
			if p.sets[g.set] {
				u.tie(i, tie{kind: tieGroups, a: g.set})
			}
		}
	}
	for i := range p.items {
		for _, cand := range p.items[i].cands {
			for _, constraint := range slices.Concat(p.matches, p.distinct) {
				for _, v := range valuesOf(cand, constraint) {
					u.tie(at[cand.Device], tie{kind: tieConstraint, a: constraint, b: v})
				}
			}
		}
	}
	users := make([][]int, len(devices))
	for n := range c.columns {
		for _, cand := range c.columns[n].cands {
			users[at[cand.Device]] = append(users[at[cand.Device]], n)
		}
	}
	for n := range c.classes {
		for _, i := range c.classes[n].members[0].items {
			for _, cand := range p.items[i].cands {
				users[at[cand.Device]] = append(users[at[cand.Device]], len(c.columns)+n)
			}
		}
	}
	var components []*component
	groups := make(map[string]int)
	for _, set := range u.sets() {
		if len(set) == 1 && c.isSimple(devices[set[0]], users[set[0]]) {
			c.addSimple(devices[set[0]], users[set[0]], groups)
			continue
		}
		comp := &component{}
		var all []int
		for _, i := range set {
			comp.devices = append(comp.devices, devices[i])
			all = append(all, users[i]...)
		}
		slices.Sort(all)
		for _, n := range slices.Compact(all) {
			if n < len(c.columns) {
				comp.columns = append(comp.columns, n)
			} else {
				comp.classes = append(comp.classes, n-len(c.columns))
			}
		}
		components = append(components, comp)
	}
	return components
}

// isSimple reports whether a device that has nothing in common with others may just be
// given to one of its users.
func (c *combination) isSimple(device int, users []int) bool {
	if c.p.s.problem.Devices[device].Shared {
		return false
	}
	for _, n := range users {
		if n >= len(c.columns) || c.columns[n].admin {
			return false
		}
	}
	return true
}

func (c *combination) addSimple(device int, users []int, groups map[string]int) {
	key := string(appendInts(nil, users))
	b, found := groups[key]
	if !found {
		b = len(c.bundles)
		groups[key] = b
		c.simple = append(c.simple, nil)
		next := bundle{}
		for _, n := range users {
			next.edges = append(next.edges, edge{column: n})
		}
		c.bundles = append(c.bundles, next)
	}
	c.simple[b] = append(c.simple[b], device)
	c.bundles[b].capacity++
	for e := range c.bundles[b].edges {
		c.bundles[b].edges[e].capacity++
	}
}

// smallSupply is the number of devices for a column up to which all are looked at, even
// when fewer are wanted: then the frontier serves for other demands, too.
const smallSupply = 8

// bounds finds how much each component can give at most and must give at least. It reports
// whether all together may be enough.
func (c *combination) bounds(components []*component) bool {
	total := make([]int, len(c.demand))
	for _, b := range c.bundles {
		for _, e := range b.edges {
			total[e.column] += e.capacity
		}
	}
	for _, comp := range components {
		in := make(map[int]bool, len(comp.devices))
		for _, d := range comp.devices {
			in[d] = true
		}
		for _, n := range comp.columns {
			supply := c.shares(c.columns[n].cands, in, len(c.columns[n].items))
			if supply > smallSupply {
				supply = min(supply, c.demand[n])
			}
			comp.supply = append(comp.supply, supply)
			total[n] += supply
		}
		for _, n := range comp.classes {
			members := len(c.classes[n].members)
			supply := members
			for _, i := range c.classes[n].members[0].items {
				it := &c.p.items[i]
				supply = min(supply, c.shares(it.cands, in, members)/it.count)
			}
			comp.supply = append(comp.supply, supply)
			total[len(c.columns)+n] += supply
		}
	}
	for n, want := range c.demand {
		if total[n] < want {
			return false
		}
	}
	for _, comp := range components {
		for k, supply := range comp.supply {
			n := comp.dimension(k, len(c.columns))
			need := max(0, c.demand[n]-(total[n]-supply))
			if need > 0 {
				comp.supply[k] = min(supply, c.demand[n])
			}
			comp.need = append(comp.need, need)
		}
	}
	return true
}

// dimension returns the place of the k-th column or class of the component among all
// columns and classes.
func (comp *component) dimension(k, columns int) int {
	if k < len(comp.columns) {
		return comp.columns[k]
	}
	return columns + comp.classes[k-len(comp.columns)]
}

// shares returns how often the devices can serve one of so many items at most.
func (c *combination) shares(cands []*Candidate, in map[int]bool, items int) int {
	n := 0
	for _, cand := range cands {
		switch {
		case !in[cand.Device]:
		case c.p.s.problem.Devices[cand.Device].Shared:
			n += items
		default:
			n++
		}
	}
	return n
}

// part converts the frontier of a component to all columns and classes.
func (c *combination) part(comp *component, f *frontier) *part {
	result := &part{component: comp, frontier: f, picked: -1}
	for i := range f.points {
		vector := make([]int, len(c.demand))
		for k, amount := range f.points[i].amounts {
			vector[comp.dimension(k, len(c.columns))] = amount
		}
		result.vectors = append(result.vectors, vector)
	}
	return result
}

// assign gives each item its devices: of the parts as picked, and of the bundles of
// simple devices as given.
func (c *combination) assign(given [][]int) [][]int {
	result := make([][]int, len(c.p.items))
	devices := make([][]int, len(c.columns))
	scopes := make([][][][]int, len(c.classes))
	for b := range c.simple {
		next := 0
		for e, count := range given[b] {
			n := c.bundles[b].edges[e].column
			devices[n] = append(devices[n], c.simple[b][next:next+count]...)
			next += count
		}
	}
	for _, pt := range c.parts {
		chosen := &pt.frontier.points[pt.picked]
		for _, sh := range chosen.shares {
			n := pt.component.columns[sh.column]
			for range sh.times {
				devices[n] = append(devices[n], pt.component.devices[sh.device])
			}
		}
		for _, h := range chosen.hosted {
			var perItem [][]int
			for _, local := range h.devices {
				var list []int
				for _, i := range local {
					list = append(list, pt.component.devices[i])
				}
				perItem = append(perItem, list)
			}
			n := pt.component.classes[h.class]
			scopes[n] = append(scopes[n], perItem)
		}
	}
	for n := range c.columns {
		counts := make([]int, len(c.columns[n].items))
		for k, i := range c.columns[n].items {
			counts[k] = c.p.items[i].count
		}
		for k, own := range apportion(devices[n], counts) {
			result[c.columns[n].items[k]] = own
		}
	}
	for n := range c.classes {
		for m, sc := range c.classes[n].members {
			for k, i := range sc.items {
				result[i] = scopes[n][m][k]
			}
		}
	}
	return result
}

// place finds devices for the items, which must be in the order of their
// requests, and reports whether there are any.
func (s *solver) place(items []item) ([][]int, bool) {
	p := &placement{s: s, items: items}
	for i := range items {
		p.admin = p.admin || items[i].admin
		if i > 0 {
			items[i].run = items[i-1].run
			if items[i].claim != items[i-1].claim || items[i].admin != items[i-1].admin {
				items[i].run++
			}
		}
		if items[i].count == 0 {
			items[i].cands = nil
		}
	}
	if !p.narrow() || !s.enough(p.items) {
		return nil, false
	}
	p.findDistinct()
	if !p.enoughValues() {
		return nil, false
	}
	p.findCounters()
	if !p.enoughCounters() {
		return nil, false
	}
	p.findSets()
	if wide := p.wideCounters(); len(wide) > 0 {
		// Much is impossible for other reasons, or fits anyway.
		assigned, ok := p.withoutCounters(wide).combine()
		if !ok || p.within(assigned, wide) {
			return assigned, ok
		}
	}
	return p.combine()
}
