// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
)

// flavor is how likely the features of a random problem are, in percent.
type flavor struct {
	devices, requests, claims, constraints, counters, sets int
	shared, admin, all, alternatives, lists, limit         int
	// similar makes devices and requests equal more often.
	similar int
	// copies repeats the last claim, with constraints of its own.
	copies int
}

// random makes a small problem.
func random(r *rand.Rand, f flavor) *Problem {
	chance := func(percent int) bool { return r.IntN(100) < percent }
	p := &Problem{}
	for range 1 + r.IntN(f.devices) {
		p.Devices = append(p.Devices, Device{})
	}
	if f.counters > 0 {
		for range r.IntN(f.counters + 1) {
			p.Counters = append(p.Counters, r.Int64N(7))
		}
	}
	sets := 0
	if f.sets > 0 {
		sets = r.IntN(f.sets + 1)
	}
	for range sets {
		base := GroupBase{Used: chance(25)}
		if base.Used && chance(70) {
			base.Groups = []int{r.IntN(3), r.IntN(3)}
		}
		p.GroupBase = append(p.GroupBase, base)
	}
	for d := range p.Devices {
		dev := &p.Devices[d]
		if d > 0 && chance(f.similar) {
			*dev = p.Devices[d-1]
			continue
		}
		if dev.Shared = chance(f.shared); dev.Shared {
			for range r.IntN(3) {
				dev.Capacity = append(dev.Capacity, r.Int64N(6))
			}
		}
		for c := range p.Counters {
			if chance(50) {
				dev.Uses = append(dev.Uses, CounterUse{Counter: c, Amount: r.Int64N(4)})
			}
		}
		for s := range sets {
			if chance(60) {
				use := GroupUse{Set: s}
				for g := range 3 {
					if chance(45) {
						use.Groups = append(use.Groups, g)
					}
				}
				dev.Groups = append(dev.Groups, use)
				if chance(10) {
					dev.Groups = append(dev.Groups, GroupUse{Set: s, Groups: []int{r.IntN(3)}})
				}
			}
		}
	}
	if f.constraints > 0 {
		p.Constraints = r.IntN(f.constraints + 1)
	}
	attributes := make([][][]int, p.Constraints)
	owner := make([]int, p.Constraints)
	claims := 1 + r.IntN(f.claims)
	for c := range p.Constraints {
		p.Distinct = append(p.Distinct, chance(50))
		owner[c] = r.IntN(claims)
		spread := 1 + r.IntN(4)
		for range p.Devices {
			values := []int{}
			if !chance(5) {
				values = append(values, r.IntN(spread))
			}
			if chance(f.lists) {
				values = append(values, r.IntN(spread))
			}
			attributes[c] = append(attributes[c], values)
		}
	}
	if chance(f.limit) {
		p.ClaimLimit = 1 + r.IntN(5)
	}
	claim := 0
	for n := range 1 + r.IntN(f.requests) {
		if n > 0 && claim+1 < claims && chance(40) {
			claim++
		}
		if n > 0 && chance(f.similar) {
			like := p.Requests[n-1]
			like.Claim = claim
			if claim == p.Requests[n-1].Claim || p.Constraints == 0 {
				p.Requests = append(p.Requests, like)
				continue
			}
		}
		req := Request{Claim: claim, Admin: chance(f.admin)}
		alternatives := 1
		if chance(f.alternatives) {
			alternatives += r.IntN(3)
		}
		for range alternatives {
			a := Alternative{Count: 1 + r.IntN(3), All: chance(f.all)}
			applies := make([]bool, p.Constraints)
			for c := range applies {
				applies[c] = owner[c] == claim && chance(75)
			}
			match := 40 + r.IntN(61)
			for d := range p.Devices {
				if !chance(match) {
					continue
				}
				cand := Candidate{Device: d}
				for range p.Devices[d].Capacity {
					cand.Takes = append(cand.Takes, r.Int64N(4))
				}
				for c := range p.Constraints {
					cand.Values = append(cand.Values, nil)
					if applies[c] {
						cand.Values[c] = attributes[c][d]
					}
				}
				a.Candidates = append(a.Candidates, cand)
			}
			req.Alternatives = append(req.Alternatives, a)
		}
		p.Requests = append(p.Requests, req)
	}
	if chance(f.copies) {
		for range 1 + r.IntN(3) {
			repeatClaim(p, claim, chance(30))
			claim++
		}
	}
	return p
}

// repeatClaim adds a claim like the last one: with constraints of its own,
// except that with together the distinct ones hold for both.
func repeatClaim(p *Problem, claim int, together bool) {
	own := make(map[int]int)
	for _, req := range slices.Clone(p.Requests) {
		if req.Claim != claim {
			continue
		}
		twin := Request{Claim: claim + 1, Admin: req.Admin}
		for _, a := range req.Alternatives {
			a.Candidates = slices.Clone(a.Candidates)
			for n, cand := range a.Candidates {
				values := make([][]int, len(cand.Values), len(cand.Values)+4)
				for c, list := range cand.Values {
					if list == nil {
						continue
					}
					if _, found := own[c]; !found {
						own[c] = c
						if !p.Distinct[c] || !together {
							own[c] = p.Constraints
							p.Constraints++
							p.Distinct = append(p.Distinct, p.Distinct[c])
						}
					}
					for len(values) <= own[c] {
						values = append(values, nil)
					}
					values[own[c]] = list
				}
				a.Candidates[n].Values = values
			}
			twin.Alternatives = append(twin.Alternatives, a)
		}
		p.Requests = append(p.Requests, twin)
	}
}

func flavors() map[string]flavor {
	return map[string]flavor{
		"plain":        {devices: 7, requests: 4, claims: 2, similar: 30, limit: 10},
		"counters":     {devices: 7, requests: 4, claims: 2, counters: 3, similar: 40},
		"groups":       {devices: 6, requests: 3, claims: 2, counters: 1, sets: 2, similar: 20},
		"match":        {devices: 7, requests: 4, claims: 3, constraints: 3, lists: 30, similar: 30},
		"shares":       {devices: 4, requests: 4, claims: 2, counters: 2, shared: 70, similar: 30},
		"admin":        {devices: 5, requests: 4, claims: 3, counters: 2, admin: 50, shared: 20, all: 15, similar: 20},
		"lists":        {devices: 6, requests: 4, claims: 2, alternatives: 70, all: 10, limit: 30, similar: 20},
		"all of it":    {devices: 6, requests: 4, claims: 3, constraints: 3, counters: 2, sets: 2, shared: 30, admin: 20, all: 10, alternatives: 25, lists: 20, limit: 15, similar: 30},
		"match, more":  {devices: 8, requests: 4, claims: 3, constraints: 4, counters: 2, shared: 25, admin: 10, lists: 15, similar: 50},
		"equal claims": {devices: 9, requests: 2, claims: 1, constraints: 3, counters: 2, lists: 15, similar: 40, copies: 90},
		"equal shares": {devices: 5, requests: 3, claims: 2, constraints: 3, sets: 1, shared: 40, admin: 8, alternatives: 15, similar: 30, copies: 90},
		"many small":   {devices: 10, requests: 6, claims: 2, constraints: 1, counters: 2, similar: 60},
	}
}

// TestDecideAsBruteForce decides random problems with and without the first fit
// and compares with the decider that tries everything.
func TestDecideAsBruteForce(t *testing.T) {
	for name, f := range flavors() {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(len(name))))
			feasible, open := 0, 0
			for n := range 4000 {
				p := random(r, f)
				before, err := json.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				b := &brute{p: p, tries: 4000}
				want := Infeasible
				if b.decide() {
					want = Feasible
					feasible++
				} else if b.tries < 0 {
					open++
					continue
				}
				for _, tries := range []int{0, firstFitTries} {
					got := newSolver(context.Background(), p).decide(tries)
					if got.Answer != want {
						t.Fatalf("problem %d with %d tries: got %s, want %s: %s", n, tries, got.Answer, want, before)
					}
					if got.Answer != Feasible {
						continue
					}
					if err := checkWitness(p, got.Chosen); err != nil {
						t.Fatalf("problem %d with %d tries: %v: %s", n, tries, err, before)
					}
				}
				after, err := json.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				if string(before) != string(after) {
					t.Fatalf("problem %d was changed: before %s, after %s", n, before, after)
				}
			}
			if open > 200 {
				t.Errorf("trying everything took too long for %d of 4000 problems", open)
			}
			if feasible < 400 || feasible > 3600 {
				t.Errorf("%d of 4000 problems are feasible, want some of both", feasible)
			}
		})
	}
}
