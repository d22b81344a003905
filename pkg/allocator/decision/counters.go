// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"math"
	"slices"
)

// findCounters finds the counters that could run out.
func (p *placement) findCounters() {
	type load struct {
		amounts []int64
		wanted  int
	}
	loads := make(map[int]*load)
	seen := make(map[int]bool)
	for i := range p.items {
		touched := make(map[int]bool)
		for _, c := range p.items[i].cands {
			// A shared device is charged once, an exclusive one for each
			// request, which are several only with admin access.
			again := seen[c.Device] && (p.s.problem.Devices[c.Device].Shared || !p.admin)
			seen[c.Device] = true
			for _, u := range p.s.uses[c.Device] {
				l := loads[u.Counter]
				if l == nil {
					l = &load{}
					loads[u.Counter] = l
				}
				if !touched[u.Counter] {
					touched[u.Counter] = true
					l.wanted += p.items[i].count
				}
				if !again {
					l.amounts = append(l.amounts, u.Amount)
				}
			}
		}
	}
	p.counters = make(map[int]bool)
	for counter, l := range loads {
		slices.SortFunc(l.amounts, func(a, b int64) int { return cmp.Compare(b, a) })
		if mayExceed(sumFirst(l.amounts, l.wanted), p.s.problem.Counters[counter]) {
			p.counters[counter] = true
		}
	}
}

// sumFirst sums up the first n amounts, or all of them when there are fewer.
func sumFirst(amounts []int64, n int) int64 {
	var total int64
	for _, amount := range amounts[:min(len(amounts), n)] {
		total = addCapped(total, amount)
	}
	return total
}

// mayExceed reports whether a sum is more than the limit, or overflows.
func mayExceed(sum, limit int64) bool { return sum > limit || sum == math.MaxInt64 }

// enoughCounters reports whether each counter is enough when each item gets the devices
// that use least of it.
func (p *placement) enoughCounters() bool {
	least := make(map[int]int64)
	for i := range p.items {
		amounts := make(map[int][]int64)
		for _, c := range p.items[i].cands {
			if p.s.problem.Devices[c.Device].Shared {
				// It may be charged already.
				continue
			}
			for _, u := range p.s.uses[c.Device] {
				if p.counters[u.Counter] {
					amounts[u.Counter] = append(amounts[u.Counter], u.Amount)
				}
			}
		}
		for counter, list := range amounts {
			without := len(p.items[i].cands) - len(list)
			slices.Sort(list)
			least[counter] = addCapped(least[counter], sumFirst(list, max(0, p.items[i].count-without)))
		}
	}
	for counter, amount := range least {
		if amount > p.s.problem.Counters[counter] {
			return false
		}
	}
	return true
}

// wideCounters returns the counters that at least half of all devices use, such as a
// counter for the power of the whole node. They connect devices that are separate
// otherwise.
func (p *placement) wideCounters() []int {
	seen := make(map[int]bool)
	users := make(map[int]int)
	for i := range p.items {
		for _, c := range p.items[i].cands {
			if seen[c.Device] {
				continue
			}
			seen[c.Device] = true
			for _, u := range p.s.uses[c.Device] {
				if p.counters[u.Counter] {
					users[u.Counter]++
				}
			}
		}
	}
	var wide []int
	for counter, n := range users {
		if 2*n >= len(seen) {
			wide = append(wide, counter)
		}
	}
	return wide
}

// withoutCounters returns the placement without some limits.
func (p *placement) withoutCounters(counters []int) *placement {
	relaxed := *p
	relaxed.counters = make(map[int]bool, len(p.counters))
	for counter := range p.counters {
		relaxed.counters[counter] = !slices.Contains(counters, counter)
	}
	return &relaxed
}

// within reports whether the devices leave the counters at zero or more.
func (p *placement) within(assigned [][]int, counters []int) bool {
	charged := make(map[int]bool)
	used := make(map[int]int64)
	for _, own := range assigned {
		for _, d := range own {
			if p.s.problem.Devices[d].Shared && charged[d] {
				continue
			}
			charged[d] = true
			for _, u := range p.s.uses[d] {
				used[u.Counter] = addCapped(used[u.Counter], u.Amount)
			}
		}
	}
	for _, counter := range counters {
		if mayExceed(used[counter], p.s.problem.Counters[counter]) {
			return false
		}
	}
	return true
}
