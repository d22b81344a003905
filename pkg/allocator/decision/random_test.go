// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// flavor is how likely the features of a random problem are, in percent.
type flavor struct {
	devices, requests, claims, constraints, counters, sets int
	shared, admin, all, alternatives, lists, limit         int
	// alike makes devices and requests equal more often.
	alike int
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
		if d > 0 && chance(f.alike) {
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
		if n > 0 && chance(f.alike) {
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
	return p
}

func flavors() map[string]flavor {
	return map[string]flavor{
		"plain":       {devices: 7, requests: 4, claims: 2, alike: 30, limit: 10},
		"counters":    {devices: 7, requests: 4, claims: 2, counters: 3, alike: 40},
		"groups":      {devices: 6, requests: 3, claims: 2, counters: 1, sets: 2, alike: 20},
		"match":       {devices: 7, requests: 4, claims: 3, constraints: 3, lists: 30, alike: 30},
		"shares":      {devices: 4, requests: 4, claims: 2, counters: 2, shared: 70, alike: 30},
		"admin":       {devices: 5, requests: 4, claims: 3, counters: 2, admin: 50, shared: 20, all: 15, alike: 20},
		"lists":       {devices: 6, requests: 4, claims: 2, alternatives: 70, all: 10, limit: 30, alike: 20},
		"all of it":   {devices: 6, requests: 4, claims: 3, constraints: 3, counters: 2, sets: 2, shared: 30, admin: 20, all: 10, alternatives: 25, lists: 20, limit: 15, alike: 30},
		"match, more": {devices: 8, requests: 4, claims: 3, constraints: 4, counters: 2, shared: 25, admin: 10, lists: 15, alike: 50},
	}
}

// TestDecideAsBruteForce decides random problems with and without the first fit
// and compares with the decider that tries everything.
func TestDecideAsBruteForce(t *testing.T) {
	for name, f := range flavors() {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(len(name))))
			feasible := 0
			for n := range 4000 {
				p := random(r, f)
				before, err := json.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				want := Infeasible
				if bruteForce(p) {
					want = Feasible
					feasible++
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
			if feasible < 400 || feasible > 3600 {
				t.Errorf("%d of 4000 problems are feasible, want some of both", feasible)
			}
		})
	}
}
