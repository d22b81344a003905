// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import "encoding/binary"

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
