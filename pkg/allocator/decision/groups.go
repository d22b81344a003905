// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/binary"
	"slices"
)

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
