// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"context"
	"testing"
)

// family is a problem that takes for ever when all orders are tried: short has
// no solution because one thing is missing, and enough has it.
type family struct {
	name   string
	short  *Problem
	enough *Problem
	// steps is the most steps that each of them may take. A step is well below
	// a microsecond in most problems and a few microseconds at worst.
	steps int
}

func families() []family {
	return []family{
		{"one of equal devices", equalDevices(24, 25, 0), equalDevices(24, 24, 0), 100},
		{"one of more devices than a claim may have", equalDevices(32, 33, 0), equalDevices(32, 32, 0), 100},
		{"one of many devices", equalDevices(5000, 5001, 0), equalDevices(5000, 5000, 0), 10000},
		{"one group for a request", groupsOf(8, 4, []int{5}), groupsOf(8, 5, []int{5}), 5000},
		{"one group for nine claims", groupsOf(8, 4, repeat(4, 9)), groupsOf(9, 4, repeat(4, 9)), 5000},
		{"groups for claims of all sizes", groupsOf(8, 4, []int{3, 3, 3, 2, 2, 2, 2, 2, 4, 4, 1, 1, 4}), groupsOf(8, 4, []int{3, 3, 3, 2, 2, 2, 2, 2, 4, 4, 1, 1, 1}), 50000},
		{"one value for a request", distinctValues(12, 3, []int{13}), distinctValues(13, 3, []int{13}), 5000},
		{"one value for many requests", distinctValues(16, 2, repeat(1, 17)), distinctValues(17, 2, repeat(1, 17)), 5000},
		{"one value for different requests", nestedDistinct(10, 11), nestedDistinct(11, 11), 5000},
		{"one row of a square", rook(8, 8, 9), rook(9, 9, 9), 50000},
		{"a square with a hole", rook(8, 4, 8), rook(8, 5, 8), 20000},
		{"ten requests for nine devices", nested(9, 10), nested(10, 10), 5000},
		{"match against distinct", matchDistinct(8, 4, 3, 4), matchDistinct(8, 4, 4, 4), 5000},
		{"one unit of 8 boards", boards(8, 7, []int{8, 8, 4, 3, 1}, 2), boards(8, 7, []int{8, 8, 4, 3, 1}, 1), 50000},
		{"one unit of 16 boards", boards(16, 7, []int{22, 15, 4, 8, 3}, 0), boards(16, 7, []int{21, 15, 4, 8, 1}, 0), 50000},
		{"boards that can't be filled", boards(12, 7, []int{0, 13, 0, 12, 0}, 0), boards(12, 7, []int{0, 12, 0, 12, 0}, 0), 50000},
		{"100 equal boards", boards(100, 7, []int{0, 0, 0, 100, 1}, 0), boards(100, 7, []int{300, 0, 0, 100, 0}, 0), 100000},
		{"placements on 8 boards", placements(8, 0, []int{17, 0, 8, 8}), placements(8, 0, []int{16, 0, 8, 8}), 50000},
		{"placements under one limit", placements(8, 8*7-1, []int{8, 0, 8, 0, 8}), placements(8, 8*7, []int{8, 0, 8, 0, 8}), 50000},
		{"claims for one board each", boardClaims(8, 0, 9), boardClaims(8, 0, 8), 50000},
		{"claims for one board each under one limit", boardClaims(8, 8*6-1, 9), boardClaims(8, 8*6, 8), 50000},
		{"several claims", claims(6, 4, 8), claims(8, 4, 8), 5000},
		{"prioritized lists", prioritized(3, 4, 9), prioritized(3, 4, 10), 50000},
		{"longer prioritized lists", prioritized(8, 8, 43), prioritized(8, 8, 44), 100000},
		{"prioritized partitions", prioritizedBoards(3, 3), prioritizedBoards(3, 4), 100000},
		{"prioritized lists on boards", listsOnBoards(5, 5), listsOnBoards(5, 4), 100000},
		{"one share", shares(4, 10, 3, 13, 1), shares(4, 10, 3, 12, 1), 5000},
		{"shares for requests of several", shares(8, 10, 3, 5, 5), shares(9, 10, 3, 5, 5), 5000},
		{"shares of different size", differentShares(10, 12, []int{15, 0, 11}), differentShares(10, 12, []int{15, 0, 10}), 50000},
	}
}

// TestFamilies decides the families within their steps by the complete method
// alone, and by all of it.
func TestFamilies(t *testing.T) {
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			for answer, p := range map[Answer]*Problem{Infeasible: f.short, Feasible: f.enough} {
				for _, tries := range []int{0, firstFitTries} {
					s := newSolver(context.Background(), p)
					got := s.decide(tries)
					if got.Answer != answer {
						t.Fatalf("with %d tries: got %s, want %s", tries, got.Answer, answer)
					}
					if got.Answer == Feasible {
						if err := checkWitness(p, got.Chosen); err != nil {
							t.Error(err)
						}
					}
					if s.steps > f.steps+tries {
						t.Errorf("%s with %d tries: took %d steps, want at most %d", answer, tries, s.steps, f.steps)
					}
				}
			}
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, f := range families() {
		b.Run("short/"+f.name, func(b *testing.B) {
			for b.Loop() {
				Decide(context.Background(), f.short)
			}
		})
		b.Run("enough/"+f.name, func(b *testing.B) {
			for b.Loop() {
				Decide(context.Background(), f.enough)
			}
		})
	}
}

// plain returns a request with one alternative.
func plain(claim, count int, candidates ...Candidate) Request {
	return Request{Claim: claim, Alternatives: []Alternative{{Count: count, Candidates: candidates}}}
}

// candidates returns the candidates from one device to another one, without the last.
func candidates(from, to int) []Candidate {
	var list []Candidate
	for d := from; d < to; d++ {
		list = append(list, Candidate{Device: d})
	}
	return list
}

func repeat(n, times int) []int {
	list := make([]int, times)
	for i := range list {
		list[i] = n
	}
	return list
}

// equalDevices returns a request for some of n equal devices.
func equalDevices(n, wanted, limit int) *Problem {
	return &Problem{
		Devices:    make([]Device, n),
		Requests:   []Request{plain(0, wanted, candidates(0, n)...)},
		ClaimLimit: limit,
	}
}

// groupsOf returns groups of devices with the same value, and claims which want so many
// devices of one group each.
func groupsOf(groups, size int, wanted []int) *Problem {
	p := &Problem{Devices: make([]Device, groups*size), Constraints: len(wanted), Distinct: make([]bool, len(wanted))}
	for c, count := range wanted {
		cands := candidates(0, groups*size)
		for i := range cands {
			cands[i].Values = make([][]int, len(wanted))
			cands[i].Values[c] = []int{i / size}
		}
		p.Requests = append(p.Requests, plain(c, count, cands...))
	}
	return p
}

// distinctValues returns values with some devices each, and requests which want so many
// devices, all with distinct values.
func distinctValues(values, size int, wanted []int) *Problem {
	p := &Problem{Devices: make([]Device, values*size), Constraints: 1, Distinct: []bool{true}}
	for _, count := range wanted {
		cands := candidates(0, values*size)
		for i := range cands {
			cands[i].Values = [][]int{{i / size}}
		}
		p.Requests = append(p.Requests, plain(0, count, cands...))
	}
	return p
}

// nestedDistinct returns requests that can do with fewer and fewer devices, two of each
// value.
func nestedDistinct(values, requests int) *Problem {
	p := &Problem{Devices: make([]Device, 2*values), Constraints: 1, Distinct: []bool{true}}
	for n := range requests {
		cands := candidates(0, 2*values)
		for i := range cands {
			cands[i].Values = [][]int{{i / 2}}
		}
		p.Requests = append(p.Requests, plain(0, 1, cands[:min(len(cands), 2*(n+1))]...))
	}
	return p
}

// rook returns a square of devices, of which those that are taken must differ in row and in
// column. The first five rows are only so wide.
func rook(size, width, wanted int) *Problem {
	p := &Problem{Constraints: 2, Distinct: []bool{true, true}}
	var cands []Candidate
	for row := range size {
		for column := range size {
			if row < 5 && column >= width {
				continue
			}
			cands = append(cands, Candidate{Device: len(p.Devices), Values: [][]int{{row}, {column}}})
			p.Devices = append(p.Devices, Device{})
		}
	}
	p.Requests = []Request{plain(0, wanted, cands...)}
	return p
}

// nested returns requests for one device each, where the n-th can do with one more device
// than the one before.
func nested(devices, requests int) *Problem {
	p := &Problem{Devices: make([]Device, devices)}
	for n := requests - 1; n >= 0; n-- {
		p.Requests = append(p.Requests, plain(0, 1, candidates(0, min(devices, n+1))...))
	}
	return p
}

// matchDistinct returns groups of devices on so many slots each: all must be in one group
// and on distinct slots.
func matchDistinct(groups, size, slots, wanted int) *Problem {
	cands := candidates(0, groups*size)
	for i := range cands {
		cands[i].Values = [][]int{{i / size}, {i % size % slots}}
	}
	return &Problem{Devices: make([]Device, groups*size), Constraints: 2, Distinct: []bool{false, true}, Requests: []Request{plain(0, wanted, cands...)}}
}

// boards returns boards of some units in partitions of 1, 2, 3, 4 and 7 units, of which so
// many are wanted; missing is what the first board has less.
func boards(n int, units int64, wanted []int, missing int64) *Problem {
	profiles := []int64{1, 2, 3, 4, 7}
	p := &Problem{}
	byProfile := make([][]Candidate, len(profiles))
	for b := range n {
		left := units
		if b == 0 {
			left -= missing
		}
		p.Counters = append(p.Counters, left)
		for k, size := range profiles {
			for range units / size {
				byProfile[k] = append(byProfile[k], Candidate{Device: len(p.Devices)})
				p.Devices = append(p.Devices, Device{Uses: []CounterUse{{Counter: b, Amount: size}}})
			}
		}
	}
	for k, count := range wanted {
		if count > 0 {
			p.Requests = append(p.Requests, plain(0, count, byProfile[k]...))
		}
	}
	return p
}

// placements returns boards with 7 units and 8 slices. The partitions, of which so many are
// wanted, stand at fixed slices; all boards have a limit of units together, unless it is 0.
func placements(n int, limit int64, wanted []int) *Problem {
	p, byProfile := placementDevices(n, limit)
	for k, count := range wanted {
		if count > 0 {
			p.Requests = append(p.Requests, plain(0, count, byProfile[k]...))
		}
	}
	return p
}

// boardClaims returns claims for partitions of 1, 2 and 3 units on the same board.
func boardClaims(n int, limit int64, claims int) *Problem {
	p, byProfile := placementDevices(n, limit)
	p.Constraints = claims
	p.Distinct = make([]bool, claims)
	for c := range claims {
		for _, k := range []int{0, 2, 3} {
			r := plain(c, 1)
			for _, cand := range byProfile[k] {
				values := make([][]int, claims)
				values[c] = []int{cand.Device / (len(p.Devices) / n)}
				r.Alternatives[0].Candidates = append(r.Alternatives[0].Candidates, with(cand.Device, values...))
			}
			p.Requests = append(p.Requests, r)
		}
	}
	return p
}

// placementDevices returns the boards and, by profile, all partitions.
func placementDevices(n int, limit int64) (*Problem, [][]Candidate) {
	profiles := []struct {
		units  int64
		slices int
		starts []int
	}{
		{1, 1, []int{0, 1, 2, 3, 4, 5, 6}},
		{1, 2, []int{0, 2, 4, 6}},
		{2, 2, []int{0, 2, 4}},
		{3, 4, []int{0, 4}},
		{4, 4, []int{0}},
		{7, 8, []int{0}},
	}
	p := &Problem{}
	if limit > 0 {
		p.Counters = []int64{limit}
	}
	byProfile := make([][]Candidate, len(profiles))
	for range n {
		base := len(p.Counters)
		p.Counters = append(p.Counters, 1, 1, 1, 1, 1, 1, 1, 1, 7)
		for k, profile := range profiles {
			for _, start := range profile.starts {
				d := Device{Uses: []CounterUse{{Counter: base + 8, Amount: profile.units}}}
				for slice := start; slice < start+profile.slices; slice++ {
					d.Uses = append(d.Uses, CounterUse{Counter: base + slice, Amount: 1})
				}
				if limit > 0 {
					d.Uses = append(d.Uses, CounterUse{Counter: 0, Amount: profile.units})
				}
				byProfile[k] = append(byProfile[k], Candidate{Device: len(p.Devices)})
				p.Devices = append(p.Devices, d)
			}
		}
	}
	return p, byProfile
}

// claims returns claims for two pairs, each with all four devices of one group.
func claims(groups, size, n int) *Problem {
	p := &Problem{Devices: make([]Device, groups*size), Constraints: n, Distinct: make([]bool, n)}
	for c := range n {
		cands := candidates(0, groups*size)
		for i := range cands {
			cands[i].Values = make([][]int, n)
			cands[i].Values[c] = []int{i / size}
		}
		p.Requests = append(p.Requests, plain(c, 2, cands...), plain(c, 2, cands...))
	}
	return p
}

// prioritized returns requests with alternatives for fewer and fewer devices, each of which
// lacks another device.
func prioritized(requests, alternatives, devices int) *Problem {
	p := &Problem{Devices: make([]Device, devices)}
	for n := range requests {
		r := Request{Claim: n}
		for a := range alternatives {
			cands := candidates(0, devices)
			missing := (n + a) % devices
			cands = append(cands[:missing:missing], cands[missing+1:]...)
			r.Alternatives = append(r.Alternatives, Alternative{Count: alternatives - a/2 + n%2, Candidates: cands})
		}
		p.Requests = append(p.Requests, r)
	}
	return p
}

// prioritizedBoards returns requests for partitions of 1, 2, 3 or 4 units, 8 units or more
// in all, on boards of 7.
func prioritizedBoards(requests, n int) *Problem {
	p := boards(n, 7, []int{8, 4, 3, 2}, 0)
	list := Request{}
	for _, r := range p.Requests {
		list.Alternatives = append(list.Alternatives, r.Alternatives...)
	}
	p.Requests = nil
	for c := range requests {
		list.Claim = c
		p.Requests = append(p.Requests, list)
	}
	return p
}

// listsOnBoards returns claims for the whole of one of the boards or smaller partitions,
// and one more for one small one of each board.
func listsOnBoards(boards, claims int) *Problem {
	p, by := placementDevices(boards, 0)
	for c := range claims {
		p.Requests = append(p.Requests, firstOf(plain(c, 1, by[5]...), plain(c, 2, by[4]...), plain(c, 2, by[3]...), plain(c, 4, by[2]...)))
	}
	p.Requests = append(p.Requests, plain(claims, boards, by[0]...))
	return p
}

// shares returns devices of some capacity, and requests that take so much of so many
// devices each.
func shares(devices int, capacity, takes int64, requests, count int) *Problem {
	p := &Problem{}
	var cands []Candidate
	for d := range devices {
		p.Devices = append(p.Devices, Device{Shared: true, Capacity: []int64{capacity}})
		cands = append(cands, Candidate{Device: d, Takes: []int64{takes}})
	}
	for range requests {
		p.Requests = append(p.Requests, plain(0, count, cands...))
	}
	return p
}

// differentShares returns requests that take 5, 4 and 3 of one device each, so many of each
// kind.
func differentShares(devices int, capacity int64, wanted []int) *Problem {
	p := &Problem{}
	for range devices {
		p.Devices = append(p.Devices, Device{Shared: true, Capacity: []int64{capacity}})
	}
	for k, count := range wanted {
		cands := candidates(0, devices)
		for i := range cands {
			cands[i].Takes = []int64{int64(5 - k)}
		}
		for range count {
			p.Requests = append(p.Requests, plain(0, 1, cands...))
		}
	}
	return p
}
