// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/binary"
	"slices"
)

// mode is a choice of one value for each match constraint of a scope: the remaining
// candidates of its items.
type mode struct {
	cands [][]*Candidate
}

// scopes splits the items into free ones and scopes.
func (p *placement) scopes() (free []int, classes []class) {
	u := newUnionFind(len(p.items))
	of := make([][]int, len(p.items))
	for _, c := range p.matches {
		items, _ := p.scope(c)
		for _, i := range items {
			of[i] = append(of[i], c)
			u.tie(i, tie{kind: tieConstraint, a: c})
		}
	}
	known := make(map[string]int)
	for _, set := range u.sets() {
		if len(of[set[0]]) == 0 {
			free = append(free, set...)
			continue
		}
		sc := scope{items: set}
		for _, i := range set {
			for _, c := range of[i] {
				if !slices.Contains(sc.matches, c) {
					sc.matches = append(sc.matches, c)
				}
			}
		}
		key := p.scopeKey(&sc)
		at, found := known[key]
		if !found {
			at = len(classes)
			known[key] = at
			classes = append(classes, class{})
		}
		classes[at].members = append(classes[at].members, sc)
	}
	return free, classes
}

// scopeKey returns a key that is equal for scopes that could change places.
func (p *placement) scopeKey(sc *scope) string {
	var key []byte
	if p.admin {
		// Their right to a device depends on where they stand.
		key = appendInts(key, sc.items)
	}
	var inside []int
	for _, i := range sc.items {
		key = binary.AppendVarint(key, int64(p.items[i].count))
		for _, c := range p.items[i].cands {
			key = binary.AppendVarint(key, int64(c.Device))
			key = p.appendTakes(key, c)
			for n, constraint := range sc.matches {
				if values := valuesOf(c, constraint); values != nil {
					key = binary.AppendVarint(key, int64(n))
					key = appendInts(key, values)
				}
			}
			for _, constraint := range p.distinct {
				values := valuesOf(c, constraint)
				if values == nil {
					continue
				}
				key = binary.AppendVarint(key, -2)
				key = binary.AppendVarint(key, p.constraintName(sc, constraint, &inside))
				key = appendInts(key, values)
			}
			key = binary.AppendVarint(key, -1)
		}
		key = binary.AppendVarint(key, -3)
	}
	return string(key)
}

// constraintName gives a distinct constraint a number which is the same for equal scopes,
// when it binds nobody outside of the scope, and its own otherwise.
func (p *placement) constraintName(sc *scope, constraint int, inside *[]int) int64 {
	if n := slices.Index(*inside, constraint); n >= 0 {
		return -int64(n) - 1
	}
	items, _ := p.scope(constraint)
	for _, i := range items {
		if !slices.Contains(sc.items, i) {
			return int64(constraint)
		}
	}
	*inside = append(*inside, constraint)
	return -int64(len(*inside))
}

// modes returns the modes of a scope with devices of a component only, without those that
// leave no more than another one.
func (p *placement) modes(sc *scope, in map[int]int) []mode {
	start := mode{}
	for _, i := range sc.items {
		var cands []*Candidate
		for _, c := range p.items[i].cands {
			if _, found := in[c.Device]; found {
				cands = append(cands, c)
			}
		}
		start.cands = append(start.cands, cands)
	}
	modes := []mode{start}
	for _, constraint := range sc.matches {
		var next []mode
		for _, m := range modes {
			for _, v := range m.values(p, sc, constraint) {
				if !p.s.step() {
					return nil
				}
				if narrowed, ok := m.with(p, sc, constraint, v); ok {
					next = append(next, narrowed)
				}
			}
		}
		modes = p.s.withoutLesser(next)
	}
	return modes
}

// values returns the values of a constraint among the candidates of the first item that it
// applies to.
func (m *mode) values(p *placement, sc *scope, constraint int) []int {
	var values []int
	seen := make(map[int]bool)
	for n, i := range sc.items {
		if !bound(p.items[i].cands, constraint) {
			continue
		}
		for _, c := range m.cands[n] {
			for _, v := range valuesOf(c, constraint) {
				if !seen[v] {
					seen[v] = true
					values = append(values, v)
				}
			}
		}
		break
	}
	return values
}

// with narrows the mode to a value and reports whether enough candidates are
// left.
func (m *mode) with(p *placement, sc *scope, constraint, v int) (mode, bool) {
	narrowed := mode{cands: slices.Clone(m.cands)}
	for n, i := range sc.items {
		if !bound(p.items[i].cands, constraint) {
			continue
		}
		narrowed.cands[n] = having(m.cands[n], constraint, map[int]bool{v: true})
		if len(narrowed.cands[n]) < p.items[i].count {
			return mode{}, false
		}
	}
	return narrowed, true
}

// withoutLesser drops the modes whose candidates are all left by another one.
func (s *solver) withoutLesser(modes []mode) []mode {
	var kept []mode
	for i := range modes {
		if !s.work(len(modes) / comparesPerStep) {
			return nil
		}
		lesser := false
		for j := range modes {
			if i != j && modes[j].covers(&modes[i]) && (j < i || !modes[i].covers(&modes[j])) {
				lesser = true
				break
			}
		}
		if !lesser {
			kept = append(kept, modes[i])
		}
	}
	return kept
}

// covers reports whether all candidates of the other mode are in this one.
// Both have them in the same order.
func (m *mode) covers(other *mode) bool {
	for n := range m.cands {
		at := 0
		for _, c := range other.cands[n] {
			for at < len(m.cands[n]) && m.cands[n][at] != c {
				at++
			}
			if at == len(m.cands[n]) {
				return false
			}
		}
	}
	return true
}
