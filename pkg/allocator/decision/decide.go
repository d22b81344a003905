// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"context"
	"math"
	"slices"
)

// firstFitTries is how many candidates the search in order may try before
// the complete method takes over. Most feasible problems are solved by then,
// with the devices that the scheduler would pick.
const firstFitTries = 2000

// Decide decides whether all requests of the problem can be satisfied together.
// The answer is Unknown only when ctx is done before.
func Decide(ctx context.Context, p *Problem) Result {
	return newSolver(ctx, p).decide(firstFitTries)
}

// decide tries the first fit with that many tries and then the complete
// method.
func (s *solver) decide(tries int) Result {
	if s.ctx.Err() != nil {
		return Result{Answer: Unknown}
	}
	demands, ok := s.demands()
	if !ok {
		return Result{Answer: Infeasible}
	}
	if tries > 0 {
		switch chosen, outcome := s.firstFit(demands, tries); {
		case s.stopped:
			return Result{Answer: Unknown}
		case outcome == fitFound:
			return Result{Answer: Feasible, Chosen: chosen}
		case outcome == fitNone:
			return Result{Answer: Infeasible}
		}
	}
	chosen := make([]Choice, len(s.problem.Requests))
	for _, part := range s.partition(demands) {
		ok := s.solvePart(part, chosen)
		if s.crowded {
			return s.exhaust(demands)
		}
		if s.stopped {
			return Result{Answer: Unknown}
		}
		if !ok {
			return Result{Answer: Infeasible}
		}
	}
	return Result{Answer: Feasible, Chosen: chosen}
}

// exhaust tries everything, which needs no memory but may take forever.
func (s *solver) exhaust(demands []demand) Result {
	s.memo, s.stopped, s.crowded = nil, false, false
	switch chosen, outcome := s.firstFit(demands, math.MaxInt); outcome {
	case fitFound:
		return Result{Answer: Feasible, Chosen: chosen}
	case fitNone:
		return Result{Answer: Infeasible}
	default:
		return Result{Answer: Unknown}
	}
}

// fit is the outcome of the first fit.
type fit int

const (
	// fitOpen means that it gave up.
	fitOpen fit = iota
	fitFound
	fitNone
)

// firstFit tries one candidate after the other in the order of the problem,
// as the scheduler does, and gives up after so many tries. It finds the obvious
// solutions, and sees when a small problem has none.
func (s *solver) firstFit(demands []demand, tries int) ([]Choice, fit) {
	f := &fitter{
		s: s, demands: demands, tries: tries,
		chosen:   make([]Choice, len(demands)),
		counters: slices.Clone(s.problem.Counters),
		holder:   make(map[int]int),
		shares:   make(map[int]int),
		left:     make(map[int][]int64),
		sets:     make(map[int]int),
		match:    make(map[int][]int),
		used:     make(map[value]bool),
		perClaim: make(map[int]int),
	}
	switch {
	case f.request(0):
		for i := range f.chosen {
			slices.Sort(f.chosen[i].Devices)
		}
		return f.chosen, fitFound
	case f.tries <= 0 || s.stopped:
		return nil, fitOpen
	}
	return nil, fitNone
}

// fitter is the state of the first fit: the devices taken so far.
type fitter struct {
	s        *solver
	demands  []demand
	tries    int
	chosen   []Choice
	counters []int64
	// holder has the claim that took an exclusive device last, plus one.
	holder map[int]int
	// shares counts how often a shared device is given away, left has its free capacities.
	shares   map[int]int
	left     map[int][]int64
	sets     map[int]int
	match    map[int][]int
	used     map[value]bool
	perClaim map[int]int
}

// request serves the n-th request and all after it, and reports whether it could.
func (f *fitter) request(n int) bool {
	if n == len(f.demands) {
		return true
	}
	d := &f.demands[n]
	for o := range d.options {
		f.tries--
		if f.tries < 0 || !f.s.step() {
			return false
		}
		opt := &d.options[o]
		limit := f.s.problem.ClaimLimit
		if limit > 0 && f.perClaim[d.claim]+opt.count > limit {
			continue
		}
		f.perClaim[d.claim] += opt.count
		f.chosen[n] = Choice{Alternative: opt.alternative}
		if f.devices(n, opt, 0) {
			return true
		}
		f.perClaim[d.claim] -= opt.count
	}
	return false
}

// devices takes the missing devices from the candidates from one on, and reports whether it
// could.
func (f *fitter) devices(n int, o *option, from int) bool {
	missing := o.count - len(f.chosen[n].Devices)
	if missing == 0 {
		chosen := f.chosen[n]
		if f.request(n + 1) {
			return true
		}
		f.chosen[n] = chosen
		return false
	}
	for c := from; c+missing <= len(o.cands); c++ {
		f.tries--
		if f.tries < 0 || !f.s.step() {
			return false
		}
		undo, ok := f.take(&f.demands[n], o.cands[c])
		if ok {
			f.chosen[n].Devices = append(f.chosen[n].Devices, o.cands[c].Device)
			if f.devices(n, o, c+1) {
				return true
			}
			f.chosen[n].Devices = f.chosen[n].Devices[:len(f.chosen[n].Devices)-1]
		}
		undo.run()
	}
	return false
}

// undo has the steps that take back a candidate, the last first.
type undo []func()

func (u undo) run() {
	for i := len(u) - 1; i >= 0; i-- {
		u[i]()
	}
}

// take takes a candidate and reports whether that is possible; if not, it must
// be undone all the same.
func (f *fitter) take(d *demand, c *Candidate) (undo, bool) {
	var back undo
	device := &f.s.problem.Devices[c.Device]
	charged := true
	if device.Shared {
		charged = f.shares[c.Device] == 0
		f.shares[c.Device]++
		back = append(back, func() { f.shares[c.Device]-- })
		if f.left[c.Device] == nil {
			f.left[c.Device] = slices.Clone(device.Capacity)
		}
		left := f.left[c.Device]
		ok := true
		for i := range left {
			left[i] -= take(c, i)
			ok = ok && left[i] >= 0
		}
		back = append(back, func() {
			for i := range left {
				left[i] += take(c, i)
			}
		})
		if !ok {
			return back, false
		}
	} else {
		holder := f.holder[c.Device]
		if holder != 0 && (!d.admin || holder == d.claim+1) {
			return back, false
		}
		f.holder[c.Device] = d.claim + 1
		back = append(back, func() { f.holder[c.Device] = holder })
	}
	ok := true
	if charged {
		back, ok = f.charge(c.Device, back)
	}
	if ok {
		back, ok = f.constrain(c, back)
	}
	return back, ok
}

// charge charges the counters and joins the counter sets of a device.
func (f *fitter) charge(device int, back undo) (undo, bool) {
	for _, u := range f.s.uses[device] {
		f.counters[u.Counter] -= u.Amount
		back = append(back, func() { f.counters[u.Counter] += u.Amount })
		if f.counters[u.Counter] < 0 {
			return back, false
		}
	}
	for _, g := range f.s.groups[device] {
		before, found := f.sets[g.set]
		if !found {
			before = f.s.table.start(g.set)
		}
		joined, ok := f.s.table.join(before, g.groups)
		if !ok {
			return back, false
		}
		f.sets[g.set] = joined
		back = append(back, func() { f.sets[g.set] = before })
	}
	return back, true
}

// constrain adds the candidate to the constraints that apply to it.
func (f *fitter) constrain(c *Candidate, back undo) (undo, bool) {
	for constraint, values := range c.Values {
		if values == nil {
			continue
		}
		if f.s.isDistinct(constraint) {
			for i, v := range values {
				if slices.Contains(values[:i], v) {
					continue
				}
				at := value{constraint, v}
				if f.used[at] {
					return back, false
				}
				f.used[at] = true
				back = append(back, func() { f.used[at] = false })
			}
			continue
		}
		before := f.match[constraint]
		common := values
		if before != nil {
			common = nil
			for _, v := range before {
				if slices.Contains(values, v) {
					common = append(common, v)
				}
			}
		}
		if len(common) == 0 {
			return back, false
		}
		f.match[constraint] = common
		back = append(back, func() { f.match[constraint] = before })
	}
	return back, true
}
