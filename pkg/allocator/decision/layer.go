// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// layer is the set of states after one step of a distribution. A state is a fixed
// number of slots; all states lie one after the other.
type layer struct {
	width int
	slots []int64
	links []link
	table []int32
}

// link is the origin of a state: the state of the layer before, and how often the device
// was given to the column of the step.
type link struct {
	parent int32
	times  int32
}

// state returns the slots of a state.
func (l *layer) state(i int) []int64 { return l.slots[i*l.width : (i+1)*l.width] }

func (l *layer) len() int { return len(l.links) }

// add adds a copy of the state unless it is there already.
func (l *layer) add(state []int64, from link) {
	if 2*(l.len()+1) > len(l.table) {
		l.grow()
	}
	at := l.slot(state)
	if l.table[at] != 0 {
		return
	}
	l.slots = append(l.slots, state...)
	l.links = append(l.links, from)
	l.table[at] = int32(l.len())
}

// slot finds where in the table the state is or belongs.
func (l *layer) slot(state []int64) int {
	h := uint64(14695981039346656037)
	for _, v := range state {
		h = (h ^ uint64(v)) * 1099511628211
		h ^= h >> 29
	}
	mask := len(l.table) - 1
	at := int(h>>1) & mask
	for l.table[at] != 0 && !slices.Equal(l.state(int(l.table[at])-1), state) {
		at = (at + 1) & mask
	}
	return at
}

func (l *layer) grow() {
	l.table = make([]int32, max(16, 2*len(l.table)))
	for i := range l.links {
		l.table[l.slot(l.state(i))] = int32(i) + 1
	}
}

// mostCompared limits how many better states a state is compared with. More would be slower
// than to continue with a few superfluous states.
const mostCompared = 256

// prune drops states that are no better than another one: the first amounts
// slots of which more is better, while all others must be equal.
func (l *layer) prune(progress, amounts int) {
	if l.len() < 2 {
		return
	}
	sums := make([]int64, l.len())
	order := make([]int, l.len())
	for i := range order {
		order[i] = i
		for _, v := range l.state(i)[:progress] {
			sums[i] += v
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		if c := cmp.Compare(sums[b], sums[a]); c != 0 {
			return c
		}
		return slices.Compare(l.state(b)[:amounts], l.state(a)[:amounts])
	})
	kept := &layer{width: l.width}
	better := make(map[string][]int)
	var key []byte
	for _, i := range order {
		state := l.state(i)
		key = key[:0]
		for _, v := range state[amounts:] {
			key = binary.AppendVarint(key, v)
		}
		rivals := better[string(key)]
		if slices.ContainsFunc(rivals, func(r int) bool { return atLeast(l.state(r)[:amounts], state[:amounts]) }) {
			continue
		}
		if len(rivals) < mostCompared {
			better[string(key)] = append(rivals, i)
		}
		kept.slots = append(kept.slots, state...)
		kept.links = append(kept.links, l.links[i])
	}
	*l = *kept
}

// atLeast reports whether no number of a is less than the number in b.
func atLeast[T cmp.Ordered](a, b []T) bool {
	for i := range a {
		if a[i] < b[i] {
			return false
		}
	}
	return true
}
