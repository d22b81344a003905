// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"context"
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
