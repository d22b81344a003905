// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
)

// brute decides a problem as upstream does: one request after the other, each candidate in
// turn, everything checked against the devices taken before. It gives up after so many
// tries.
type brute struct {
	p     *Problem
	tries int
}

// taken is a candidate given to a request.
type taken struct {
	request int
	cand    *Candidate
}

func (b *brute) decide() bool { return b.request(0, nil) }

func (b *brute) request(n int, sofar []taken) bool {
	if n == len(b.p.Requests) {
		return true
	}
	for i := range b.p.Requests[n].Alternatives {
		alternative := &b.p.Requests[n].Alternatives[i]
		count := alternative.Count
		if alternative.All {
			if count = len(alternative.Candidates); count == 0 {
				continue
			}
		}
		if b.pick(n, alternative, count, 0, sofar) {
			return true
		}
	}
	return false
}

func (b *brute) pick(n int, a *Alternative, missing, from int, sofar []taken) bool {
	if missing == 0 {
		return b.request(n+1, sofar)
	}
	for c := from; c < len(a.Candidates); c++ {
		if b.tries--; b.tries < 0 {
			return false
		}
		next := append(slices.Clone(sofar), taken{n, &a.Candidates[c]})
		if broken(b.p, next) == "" && b.pick(n, a, missing-1, c+1, next) {
			return true
		}
	}
	return false
}

// broken names the first rule that the devices violate, in the words of the
// rules rather than of the package.
func broken(p *Problem, all []taken) string {
	perClaim := map[int]int{}
	counters := slices.Clone(p.Counters)
	firstUse := map[int]bool{}
	type holding struct{ device, claim int }
	holdings := map[holding]bool{}
	capacity := map[int][]int64{}
	members := map[int][][]int{}
	for n, t := range all {
		r := &p.Requests[t.request]
		d := t.cand.Device
		dev := &p.Devices[d]
		if perClaim[r.Claim]++; p.ClaimLimit > 0 && perClaim[r.Claim] > p.ClaimLimit {
			return "claim limit"
		}
		for _, other := range all[:n] {
			if other.request == t.request && other.cand.Device == d {
				return "device twice in a request"
			}
		}
		if !dev.Shared {
			if !r.Admin && firstUse[d] {
				return "device in use"
			}
			if holdings[holding{d, r.Claim}] {
				return "device in use in the same claim"
			}
			holdings[holding{d, r.Claim}] = true
		}
		if !dev.Shared || capacity[d] == nil {
			capacity[d] = slices.Clone(dev.Capacity)
		}
		for i := range capacity[d] {
			if i < len(t.cand.Takes) {
				capacity[d][i] -= t.cand.Takes[i]
			}
			if capacity[d][i] < 0 {
				return "capacity"
			}
		}
		if !dev.Shared || !firstUse[d] {
			for _, u := range dev.Uses {
				if counters[u.Counter] -= u.Amount; counters[u.Counter] < 0 {
					return "counter"
				}
			}
			for _, g := range dev.Groups {
				members[g.Set] = append(members[g.Set], g.Groups)
			}
		}
		firstUse[d] = true
	}
	for set, lists := range members {
		if set < len(p.GroupBase) && p.GroupBase[set].Used {
			lists = append(lists, p.GroupBase[set].Groups)
		}
		without := 0
		common := slices.Clone(lists[0])
		for _, list := range lists {
			if len(list) == 0 {
				without++
			}
			common = slices.DeleteFunc(common, func(g int) bool { return !slices.Contains(list, g) })
		}
		if without != len(lists) && len(common) == 0 {
			return "groups"
		}
	}
	for c := range p.Constraints {
		var lists [][]int
		for _, t := range all {
			if c < len(t.cand.Values) && t.cand.Values[c] != nil {
				lists = append(lists, t.cand.Values[c])
			}
		}
		if !holds(lists, p.Distinct[c]) {
			return fmt.Sprintf("constraint %d", c)
		}
	}
	return ""
}

func holds(lists [][]int, distinct bool) bool {
	if len(lists) == 0 {
		return true
	}
	common := slices.Clone(lists[0])
	for i, list := range lists {
		if len(list) == 0 {
			return false
		}
		common = slices.DeleteFunc(common, func(v int) bool { return !slices.Contains(list, v) })
		for _, other := range lists[:i] {
			if distinct && slices.ContainsFunc(list, func(v int) bool { return slices.Contains(other, v) }) {
				return false
			}
		}
	}
	return distinct || len(common) > 0
}

// checkWitness returns an error if the chosen devices are no solution.
func checkWitness(p *Problem, chosen []Choice) error {
	if len(chosen) != len(p.Requests) {
		return fmt.Errorf("%d choices for %d requests", len(chosen), len(p.Requests))
	}
	var all []taken
	for r := range p.Requests {
		if chosen[r].Alternative < 0 || chosen[r].Alternative >= len(p.Requests[r].Alternatives) {
			return fmt.Errorf("request %d: no alternative %d", r, chosen[r].Alternative)
		}
		a := &p.Requests[r].Alternatives[chosen[r].Alternative]
		want := a.Count
		if a.All {
			want = max(1, len(a.Candidates))
		}
		if len(chosen[r].Devices) != want {
			return fmt.Errorf("request %d: got devices %v, want %d", r, chosen[r].Devices, want)
		}
		if !slices.IsSorted(chosen[r].Devices) {
			return fmt.Errorf("request %d: devices %v are not sorted", r, chosen[r].Devices)
		}
		for _, d := range chosen[r].Devices {
			at := slices.IndexFunc(a.Candidates, func(c Candidate) bool { return c.Device == d })
			if at < 0 {
				return fmt.Errorf("request %d: device %d is no candidate", r, d)
			}
			all = append(all, taken{r, &a.Candidates[at]})
		}
	}
	if rule := broken(p, all); rule != "" {
		return fmt.Errorf("violates %s: %v", rule, chosen)
	}
	return nil
}
