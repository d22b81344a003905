// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
)

// stepsPerCheck is how many steps are done between two looks at the context.
const stepsPerCheck = 2048

// memoryLimit is how many numbers of eight bytes the complete method may keep.
const memoryLimit = 1 << 26

// solver holds what one call of Decide needs everywhere.
type solver struct {
	ctx     context.Context
	problem *Problem
	// uses has the counter uses of each device, one for each counter and none
	// of amount zero.
	uses [][]CounterUse
	// groups has the interned compatibility groups of each device.
	groups [][]groupUse
	table  *groupTable
	// memo has the frontiers that are known, by the signature of the component.
	memo map[string]*frontier
	// steps counts the work, for tests and for looking at the context.
	steps   int
	stopped bool
	// crowded means that the work was stopped because it took too much memory.
	crowded bool
	// memory is how many numbers the work may keep, kept how many it keeps for
	// good.
	memory, kept int
}

func newSolver(ctx context.Context, p *Problem) *solver {
	s := &solver{
		ctx:     ctx,
		problem: p,
		uses:    make([][]CounterUse, len(p.Devices)),
		groups:  make([][]groupUse, len(p.Devices)),
		table:   newGroupTable(p.GroupBase),
		memo:    make(map[string]*frontier),
		memory:  memoryLimit,
	}
	for d := range p.Devices {
		s.uses[d] = mergeUses(p.Devices[d].Uses)
		for _, g := range p.Devices[d].Groups {
			s.groups[d] = append(s.groups[d], groupUse{set: g.Set, groups: s.table.intern(g.Groups)})
		}
	}
	return s
}

// mergeUses sums up the uses of the same counter and drops uses of zero.
func mergeUses(uses []CounterUse) []CounterUse {
	var merged []CounterUse
	for _, u := range uses {
		if u.Amount == 0 {
			continue
		}
		at := slices.IndexFunc(merged, func(m CounterUse) bool { return m.Counter == u.Counter })
		if at < 0 {
			merged = append(merged, u)
			continue
		}
		merged[at].Amount = addCapped(merged[at].Amount, u.Amount)
	}
	return merged
}

// remember counts numbers that the work must keep in memory, and stops it when
// they are too many.
func (s *solver) remember(kept, numbers int) {
	s.kept += kept
	if s.kept+numbers > s.memory {
		s.crowded, s.stopped = true, true
	}
}

// step counts one step of work and reports whether to go on.
func (s *solver) step() bool { return s.work(1) }

// work counts so many steps of work and reports whether to go on.
func (s *solver) work(steps int) bool {
	before := s.steps / stepsPerCheck
	s.steps += steps
	if s.steps/stepsPerCheck != before && s.ctx.Err() != nil {
		s.stopped = true
	}
	return !s.stopped
}

// addCapped adds two amounts that are not negative and stays at the greatest
// number instead of overflowing.
func addCapped(a, b int64) int64 {
	if sum := a + b; sum >= 0 {
		return sum
	}
	return math.MaxInt64
}

// comparesPerStep is how many comparisons count as one step of work.
const comparesPerStep = 32

// groupUse is a GroupUse with its groups interned.
type groupUse struct {
	set    int
	groups int
}

// Sets of compatibility groups and the states of a counter set are the same kind of number:
// the groups that the devices of the set have in common. groupsUnused is the state before
// the first device, groupsNone a device that declares no groups and the state in which only
// such devices are there.
const (
	groupsUnused = 0
	groupsNone   = 1
)

// groupTable interns sets of compatibility groups and remembers their intersections.
type groupTable struct {
	base   []int
	ids    map[string]int
	sets   [][]int
	common map[[2]int]int
}

func newGroupTable(base []GroupBase) *groupTable {
	t := &groupTable{
		ids:    make(map[string]int),
		sets:   [][]int{groupsUnused: nil, groupsNone: nil},
		common: make(map[[2]int]int),
	}
	for _, b := range base {
		state := groupsUnused
		if b.Used {
			state = t.intern(b.Groups)
		}
		t.base = append(t.base, state)
	}
	return t
}

// start returns the state of a counter set before anything is taken.
func (t *groupTable) start(set int) int {
	if set >= len(t.base) {
		return groupsUnused
	}
	return t.base[set]
}

// intern returns the number of a set of groups; groupsNone when it is empty.
func (t *groupTable) intern(groups []int) int {
	if len(groups) == 0 {
		return groupsNone
	}
	sorted := slices.Clone(groups)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	var key []byte
	for _, g := range sorted {
		key = binary.AppendVarint(key, int64(g))
	}
	id, found := t.ids[string(key)]
	if !found {
		id = len(t.sets)
		t.sets = append(t.sets, sorted)
		t.ids[string(key)] = id
	}
	return id
}

// join returns the state of a counter set after a device with these groups has joined, and
// whether it may.
func (t *groupTable) join(state, groups int) (int, bool) {
	switch {
	case state == groupsUnused || state == groups:
		return groups, true
	case state == groupsNone || groups == groupsNone:
		return state, false
	}
	key := [2]int{state, groups}
	id, found := t.common[key]
	if !found {
		var both []int
		for _, g := range t.sets[state] {
			if _, has := slices.BinarySearch(t.sets[groups], g); has {
				both = append(both, g)
			}
		}
		id = groupsNone
		if len(both) > 0 {
			id = t.intern(both)
		}
		t.common[key] = id
	}
	return id, id != groupsNone
}

// share is a device given to some of the items of a column.
type share struct {
	column, device, times int
}

// frontier has all useful points of a component: no point is at least as good as another
// one in all respects. It refers to devices, columns and classes by their place in the
// component, so that it is true for all components which are built the same way.
type frontier struct {
	points []point
}

// point is one way to use a component.
type point struct {
	// amounts are given to each column (devices) and then to each class (satisfied scopes).
	amounts []int
	// shares are the devices for the columns.
	shares []share
	// hosted are the scopes.
	hosted []hosted
}

// hosted is a scope with all of its devices, for each of its items.
type hosted struct {
	class   int
	devices [][]int
}
