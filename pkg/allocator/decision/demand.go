// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import "slices"

// demand is a request with the alternatives that may still be chosen.
type demand struct {
	request int
	claim   int
	admin   bool
	options []option
}

// option is an alternative with its possible candidates. An alternative that wants all
// devices wants as many as it has candidates.
type option struct {
	alternative int
	count       int
	cands       []*Candidate
}

// demands returns the requests without alternatives that are impossible or no better than
// another one. It reports false when a request has nothing left.
func (s *solver) demands() ([]demand, bool) {
	result := make([]demand, 0, len(s.problem.Requests))
	for i := range s.problem.Requests {
		request := &s.problem.Requests[i]
		d := demand{request: i, claim: request.Claim, admin: request.Admin}
		for a := range request.Alternatives {
			if o, ok := s.option(a, &request.Alternatives[a]); ok {
				d.options = append(d.options, o)
			}
		}
		d.options = s.withoutDominated(d.options)
		if len(d.options) == 0 {
			return nil, false
		}
		result = append(result, d)
	}
	return result, true
}

// option returns the alternative with its possible candidates and reports whether it has
// enough of them.
func (s *solver) option(index int, alternative *Alternative) (option, bool) {
	o := option{alternative: index, count: alternative.Count}
	for c := range alternative.Candidates {
		if s.possible(&alternative.Candidates[c]) {
			o.cands = append(o.cands, &alternative.Candidates[c])
		}
	}
	if alternative.All {
		o.count = len(alternative.Candidates)
		if o.count == 0 {
			return o, false
		}
	}
	if limit := s.problem.ClaimLimit; limit > 0 && o.count > limit {
		return o, false
	}
	return o, o.count <= len(o.cands)
}

// possible reports whether the candidate could be taken if nothing else were.
func (s *solver) possible(c *Candidate) bool {
	device := &s.problem.Devices[c.Device]
	for i, amount := range c.Takes {
		if i < len(device.Capacity) && amount > device.Capacity[i] {
			return false
		}
	}
	for _, u := range s.uses[c.Device] {
		if u.Amount > s.problem.Counters[u.Counter] {
			return false
		}
	}
	for i, g := range s.groups[c.Device] {
		if _, ok := s.table.join(s.table.start(g.set), g.groups); !ok {
			return false
		}
		for _, other := range s.groups[c.Device][:i] {
			if other.set == g.set && !s.sameSetPossible(c.Device, g.set) {
				return false
			}
		}
	}
	for _, values := range c.Values {
		if values != nil && len(values) == 0 {
			return false
		}
	}
	return true
}

// sameSetPossible reports whether a device that names a counter set several times is
// compatible with itself and with the devices in use.
func (s *solver) sameSetPossible(device, set int) bool {
	state := s.table.start(set)
	for _, g := range s.groups[device] {
		if g.set != set {
			continue
		}
		var ok bool
		if state, ok = s.table.join(state, g.groups); !ok {
			return false
		}
	}
	return true
}

// withoutDominated drops each option that is at least as hard as another one:
// a demand that can have it can have the other one instead.
func (s *solver) withoutDominated(options []option) []option {
	var kept []option
	for i := range options {
		dominated := false
		for j := range options {
			if i == j || !s.easier(&options[j], &options[i]) {
				continue
			}
			// Of two equal ones the first stays.
			if j < i || !s.easier(&options[i], &options[j]) {
				dominated = true
				break
			}
		}
		if !dominated {
			kept = append(kept, options[i])
		}
	}
	return kept
}

// easier reports whether each way to satisfy b contains one to satisfy a.
func (s *solver) easier(a, b *option) bool {
	if a.count > b.count || len(a.cands) < len(b.cands) {
		return false
	}
	byDevice := make(map[int]*Candidate, len(a.cands))
	for _, c := range a.cands {
		byDevice[c.Device] = c
	}
	for _, cb := range b.cands {
		ca, found := byDevice[cb.Device]
		if !found || !s.takesLess(ca, cb) || !s.boundLess(ca, cb) {
			return false
		}
	}
	return true
}

// takesLess reports whether a takes no more of the capacities than b.
func (s *solver) takesLess(a, b *Candidate) bool {
	for i := range s.problem.Devices[a.Device].Capacity {
		if take(a, i) > take(b, i) {
			return false
		}
	}
	return true
}

// boundLess reports whether a is bound by no constraint that b is not bound by in the same
// way.
func (s *solver) boundLess(a, b *Candidate) bool {
	for c := range s.problem.Constraints {
		va, vb := valuesOf(a, c), valuesOf(b, c)
		if va != nil && (vb == nil || !slices.Equal(va, vb)) {
			return false
		}
	}
	return true
}

// take returns how much the candidate takes of one capacity.
func take(c *Candidate, capacity int) int64 {
	if capacity >= len(c.Takes) {
		return 0
	}
	return c.Takes[capacity]
}

// valuesOf returns the values of the candidate for a constraint, nil when it does not
// apply.
func valuesOf(c *Candidate, constraint int) []int {
	if constraint >= len(c.Values) {
		return nil
	}
	return c.Values[constraint]
}

// bound reports whether the constraint applies to these candidates.
func bound(cands []*Candidate, constraint int) bool {
	return len(cands) > 0 && valuesOf(cands[0], constraint) != nil
}

// isDistinct reports whether the constraint wants distinct values.
func (s *solver) isDistinct(constraint int) bool {
	return constraint < len(s.problem.Distinct) && s.problem.Distinct[constraint]
}
