// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
)

// admin gives the request admin access.
func admin(r Request) Request {
	r.Admin = true
	return r
}

// all makes a request for all of its candidates.
func all(claim int, candidates ...Candidate) Request {
	return Request{Claim: claim, Alternatives: []Alternative{{All: true, Candidates: candidates}}}
}

// firstOf makes a prioritized list of plain requests.
func firstOf(requests ...Request) Request {
	list := Request{Claim: requests[0].Claim}
	for _, r := range requests {
		list.Alternatives = append(list.Alternatives, r.Alternatives...)
	}
	return list
}

// on returns a candidate with what it takes.
func on(device int, takes ...int64) Candidate { return Candidate{Device: device, Takes: takes} }

// with returns a candidate with the values for each constraint.
func with(device int, values ...[]int) Candidate { return Candidate{Device: device, Values: values} }

// using returns a device that uses so much of the first counters.
func using(amounts ...int64) Device {
	var d Device
	for c, amount := range amounts {
		d.Uses = append(d.Uses, CounterUse{Counter: c, Amount: amount})
	}
	return d
}

// grouped returns a device with groups in the first counter set.
func grouped(groups ...int) Device { return Device{Groups: []GroupUse{{Groups: groups}}} }

// sharing returns a shared device with the given free capacities.
func sharing(capacity ...int64) Device { return Device{Shared: true, Capacity: capacity} }

func shared(d Device) Device {
	d.Shared = true
	return d
}

func TestRules(t *testing.T) {
	one, two := []int{1}, []int{2}
	tests := []struct {
		name string
		p    Problem
		want Answer
	}{
		{"no request", Problem{Devices: make([]Device, 1)}, Feasible},
		{"a request for nothing", Problem{Requests: []Request{plain(0, 0)}}, Feasible},
		{"a request without alternatives", Problem{Requests: []Request{{}}}, Infeasible},
		{"no candidate", Problem{Devices: make([]Device, 1), Requests: []Request{plain(0, 1)}}, Infeasible},
		{"two devices for two requests", Problem{Devices: make([]Device, 2), Requests: []Request{plain(0, 1, on(0), on(1)), plain(0, 1, on(0))}}, Feasible},
		{"one device for two requests", Problem{Devices: make([]Device, 1), Requests: []Request{plain(0, 1, on(0)), plain(0, 1, on(0))}}, Infeasible},
		{"one device for two claims", Problem{Devices: make([]Device, 1), Requests: []Request{plain(0, 1, on(0)), plain(1, 1, on(0))}}, Infeasible},

		{"all devices", Problem{Devices: make([]Device, 2), Requests: []Request{all(0, on(0), on(1))}}, Feasible},
		{"all of no devices", Problem{Devices: make([]Device, 2), Requests: []Request{all(0)}}, Infeasible},
		{"all devices and one more", Problem{Devices: make([]Device, 2), Requests: []Request{all(0, on(0), on(1)), plain(0, 1, on(1))}}, Infeasible},
		{"all devices, one of which is impossible", Problem{Devices: []Device{using(1), using(3)}, Counters: []int64{2}, Requests: []Request{all(0, on(0), on(1))}}, Infeasible},
		{"all shared devices twice", Problem{Devices: []Device{sharing(2), sharing(2)}, Requests: []Request{all(0, on(0, 1), on(1, 1)), all(1, on(0, 1), on(1, 1))}}, Feasible},

		{"admin access to a device in use", Problem{Devices: make([]Device, 1), Requests: []Request{plain(0, 1, on(0)), admin(plain(1, 1, on(0)))}}, Feasible},
		{"admin access twice", Problem{Devices: make([]Device, 1), Requests: []Request{admin(plain(0, 1, on(0))), admin(plain(1, 1, on(0)))}}, Feasible},
		{"admin access in the same claim", Problem{Devices: make([]Device, 1), Requests: []Request{plain(0, 1, on(0)), admin(plain(0, 1, on(0)))}}, Infeasible},
		{"use after admin access", Problem{Devices: make([]Device, 1), Requests: []Request{admin(plain(0, 1, on(0))), plain(1, 1, on(0))}}, Infeasible},
		{"admin access charges again", Problem{Devices: []Device{using(2)}, Counters: []int64{3}, Requests: []Request{plain(0, 1, on(0)), admin(plain(1, 1, on(0)))}}, Infeasible},
		{"admin access charges again and may", Problem{Devices: []Device{using(2)}, Counters: []int64{4}, Requests: []Request{plain(0, 1, on(0)), admin(plain(1, 1, on(0)))}}, Feasible},

		{"counter is enough", Problem{Devices: []Device{using(2), using(3)}, Counters: []int64{5}, Requests: []Request{plain(0, 2, on(0), on(1))}}, Feasible},
		{"counter is short", Problem{Devices: []Device{using(2), using(3)}, Counters: []int64{4}, Requests: []Request{plain(0, 2, on(0), on(1))}}, Infeasible},
		{"counter of one device is short", Problem{Devices: []Device{using(2)}, Counters: []int64{1}, Requests: []Request{plain(0, 1, on(0))}}, Infeasible},
		{"counter is named twice", Problem{Devices: []Device{using(1), {Uses: []CounterUse{{0, 1}, {0, 1}}}}, Counters: []int64{2}, Requests: []Request{plain(0, 2, on(0), on(1))}}, Infeasible},
		{"second counter is short", Problem{Devices: []Device{using(0, 1), using(1, 1)}, Counters: []int64{9, 1}, Requests: []Request{plain(0, 2, on(0), on(1))}}, Infeasible},
		{"counters beyond all numbers", Problem{Devices: []Device{using(math.MaxInt64), using(math.MaxInt64)}, Counters: []int64{math.MaxInt64}, Requests: []Request{plain(0, 2, on(0), on(1))}}, Infeasible},
		{"a whole board or its halves", Problem{Devices: []Device{using(2), using(1), using(1)}, Counters: []int64{2}, Requests: []Request{plain(0, 1, on(0), on(1)), plain(0, 1, on(0), on(2))}}, Feasible},
		{"a whole board and a half", Problem{Devices: []Device{using(2), using(1), using(1)}, Counters: []int64{2}, Requests: []Request{plain(0, 1, on(0)), plain(0, 1, on(1), on(2))}}, Infeasible},

		{"shared device pays once", Problem{Devices: []Device{shared(using(2))}, Counters: []int64{2}, Requests: []Request{plain(0, 1, on(0)), plain(1, 1, on(0))}}, Feasible},
		{"two shared devices pay each", Problem{Devices: []Device{shared(using(2)), shared(using(2))}, Counters: []int64{3}, Requests: []Request{plain(0, 2, on(0), on(1))}}, Infeasible},
		{"shares fit", Problem{Devices: []Device{sharing(5)}, Requests: []Request{plain(0, 1, on(0, 2)), plain(0, 1, on(0, 3))}}, Feasible},
		{"shares do not fit", Problem{Devices: []Device{sharing(5)}, Requests: []Request{plain(0, 1, on(0, 3)), plain(0, 1, on(0, 3))}}, Infeasible},
		{"second capacity is short", Problem{Devices: []Device{sharing(9, 1)}, Requests: []Request{plain(0, 1, on(0, 1, 1)), plain(0, 1, on(0, 1, 1))}}, Infeasible},
		{"no capacity, no limit", Problem{Devices: []Device{sharing()}, Requests: []Request{plain(0, 1, on(0, 3)), plain(0, 1, on(0, 3))}}, Feasible},
		{"a share is no second device", Problem{Devices: []Device{sharing(5)}, Requests: []Request{plain(0, 2, on(0, 1))}}, Infeasible},
		{"exclusive device is too small", Problem{Devices: []Device{{Capacity: []int64{2}}}, Requests: []Request{plain(0, 1, on(0, 3))}}, Infeasible},
		{"exclusive device has its capacity for each", Problem{Devices: []Device{{Capacity: []int64{3}}}, Requests: []Request{plain(0, 1, on(0, 3)), admin(plain(1, 1, on(0, 3)))}}, Feasible},

		{"groups in common", Problem{Devices: []Device{grouped(1, 2), grouped(2, 3)}, Requests: []Request{plain(0, 2, on(0), on(1))}}, Feasible},
		{"no group common to all", Problem{Devices: []Device{grouped(1, 2), grouped(2, 3), grouped(1, 3)}, Requests: []Request{plain(0, 3, on(0), on(1), on(2))}}, Infeasible},
		{"none declares groups", Problem{Devices: []Device{grouped(), grouped()}, Requests: []Request{plain(0, 2, on(0), on(1))}}, Feasible},
		{"one declares groups and one does not", Problem{Devices: []Device{grouped(1), grouped()}, Requests: []Request{plain(0, 2, on(0), on(1))}}, Infeasible},
		{"groups of different counter sets", Problem{Devices: []Device{grouped(1), {Groups: []GroupUse{{Set: 1, Groups: []int{2}}}}}, Requests: []Request{plain(0, 2, on(0), on(1))}}, Feasible},
		{"group of those that are there", Problem{Devices: []Device{grouped(1, 2)}, GroupBase: []GroupBase{{Used: true, Groups: []int{2}}}, Requests: []Request{plain(0, 1, on(0))}}, Feasible},
		{"no group of those that are there", Problem{Devices: []Device{grouped(1)}, GroupBase: []GroupBase{{Used: true, Groups: []int{2}}}, Requests: []Request{plain(0, 1, on(0))}}, Infeasible},
		{"those that are there declare no group", Problem{Devices: []Device{grouped(1)}, GroupBase: []GroupBase{{Used: true}}, Requests: []Request{plain(0, 1, on(0))}}, Infeasible},
		{"a base that is not used", Problem{Devices: []Device{grouped(1)}, GroupBase: []GroupBase{{Groups: []int{2}}}, Requests: []Request{plain(0, 1, on(0))}}, Feasible},
		{"those that are there have nothing in common", Problem{Devices: []Device{grouped(1), grouped()}, GroupBase: []GroupBase{{Used: true, Groups: []int{-1}}}, Requests: []Request{plain(0, 1, on(0), on(1))}}, Infeasible},

		{"values match", Problem{Devices: make([]Device, 3), Constraints: 1, Distinct: []bool{false}, Requests: []Request{plain(0, 2, with(0, one), with(1, two), with(2, one))}}, Feasible},
		{"values do not match", Problem{Devices: make([]Device, 2), Constraints: 1, Distinct: []bool{false}, Requests: []Request{plain(0, 2, with(0, one), with(1, two))}}, Infeasible},
		{"values match across requests", Problem{Devices: make([]Device, 2), Constraints: 1, Distinct: []bool{false}, Requests: []Request{plain(0, 1, with(0, one)), plain(0, 1, with(1, two))}}, Infeasible},
		{"constraint is for one request", Problem{Devices: make([]Device, 2), Constraints: 1, Distinct: []bool{false}, Requests: []Request{plain(0, 1, with(0, one)), plain(0, 1, with(1, nil))}}, Feasible},
		{"list values match in one", Problem{Devices: make([]Device, 3), Constraints: 1, Distinct: []bool{false}, Requests: []Request{all(0, with(0, []int{1, 2}), with(1, []int{2, 3}), with(2, []int{2, 4}))}}, Feasible},
		{"list values match in pairs only", Problem{Devices: make([]Device, 3), Constraints: 1, Distinct: []bool{false}, Requests: []Request{all(0, with(0, []int{1, 2}), with(1, []int{2, 3}), with(2, []int{3, 1}))}}, Infeasible},
		{"no value to match", Problem{Devices: make([]Device, 1), Constraints: 1, Distinct: []bool{false}, Requests: []Request{plain(0, 1, with(0, []int{}))}}, Infeasible},
		{"two constraints pull apart", Problem{Devices: make([]Device, 3), Constraints: 2, Distinct: []bool{false, false}, Requests: []Request{plain(0, 1, with(0, one, one)), plain(0, 1, with(1, one, two), with(2, two, one))}}, Infeasible},

		{"values are distinct", Problem{Devices: make([]Device, 2), Constraints: 1, Distinct: []bool{true}, Requests: []Request{plain(0, 2, with(0, one), with(1, two))}}, Feasible},
		{"values are not distinct", Problem{Devices: make([]Device, 2), Constraints: 1, Distinct: []bool{true}, Requests: []Request{plain(0, 2, with(0, one), with(1, one))}}, Infeasible},
		{"list values are disjoint", Problem{Devices: make([]Device, 2), Constraints: 1, Distinct: []bool{true}, Requests: []Request{plain(0, 2, with(0, []int{1, 2}), with(1, []int{3}))}}, Feasible},
		{"list values overlap", Problem{Devices: make([]Device, 2), Constraints: 1, Distinct: []bool{true}, Requests: []Request{plain(0, 2, with(0, []int{1, 2}), with(1, []int{2, 3}))}}, Infeasible},
		{"a shared device is not distinct from itself", Problem{Devices: []Device{sharing()}, Constraints: 1, Distinct: []bool{true}, Requests: []Request{plain(0, 1, with(0, one)), plain(0, 1, with(0, one))}}, Infeasible},
		{"no value to be distinct", Problem{Devices: make([]Device, 1), Constraints: 1, Distinct: []bool{true}, Requests: []Request{plain(0, 1, with(0, []int{}))}}, Infeasible},

		{"second alternative", Problem{Devices: make([]Device, 2), Requests: []Request{firstOf(plain(0, 3, on(0), on(1)), plain(0, 2, on(0), on(1)))}}, Feasible},
		{"no alternative", Problem{Devices: make([]Device, 2), Requests: []Request{firstOf(plain(0, 3, on(0), on(1)), plain(0, 2, on(0)))}}, Infeasible},
		{"first alternative takes what others need", Problem{Devices: make([]Device, 3), Requests: []Request{firstOf(plain(0, 2, on(0), on(1)), plain(0, 1, on(2))), plain(0, 1, on(1))}}, Feasible},
		{"each alternative takes what others need", Problem{Devices: make([]Device, 3), Requests: []Request{firstOf(plain(0, 2, on(0), on(1)), plain(0, 1, on(2))), plain(0, 2, on(1), on(2))}}, Infeasible},
		{"constraint is for one alternative", Problem{
			Devices: make([]Device, 3), Constraints: 1, Distinct: []bool{false},
			Requests: []Request{plain(0, 1, with(0, one)), firstOf(plain(0, 1, with(1, two)), plain(0, 1, with(2, nil)))},
		}, Feasible},

		{"as many as a claim may have", Problem{Devices: make([]Device, 4), ClaimLimit: 2, Requests: []Request{plain(0, 2, candidates(0, 4)...), plain(1, 2, candidates(0, 4)...)}}, Feasible},
		{"more than a claim may have", Problem{Devices: make([]Device, 4), ClaimLimit: 2, Requests: []Request{plain(0, 2, candidates(0, 4)...), plain(0, 1, candidates(0, 4)...)}}, Infeasible},
		{"alternatives within the limit", Problem{
			Devices: make([]Device, 5), ClaimLimit: 3,
			Requests: []Request{firstOf(plain(0, 2, on(0), on(1)), plain(0, 1, on(4))), plain(0, 2, on(2), on(3))},
		}, Feasible},
		{"alternatives beyond the limit", Problem{
			Devices: make([]Device, 6), ClaimLimit: 3,
			Requests: []Request{firstOf(plain(0, 2, on(0), on(1)), plain(0, 2, on(4), on(5))), plain(0, 2, on(2), on(3))},
		}, Infeasible},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Decide(context.Background(), &test.p)
			complete := newSolver(context.Background(), &test.p).decide(0)
			if got.Answer != test.want || complete.Answer != test.want {
				t.Fatalf("got %s, by the complete method %s, want %s", got.Answer, complete.Answer, test.want)
			}
			for _, result := range []Result{got, complete} {
				if test.want == Infeasible {
					if result.Chosen != nil {
						t.Errorf("got choices %v, want none", result.Chosen)
					}
					continue
				}
				if err := checkWitness(&test.p, result.Chosen); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestFirstFitLikeScheduler expects the devices that come first.
func TestFirstFitLikeScheduler(t *testing.T) {
	p := &Problem{Devices: make([]Device, 4), Requests: []Request{
		firstOf(plain(0, 5, candidates(0, 4)...), plain(0, 2, candidates(0, 4)...)),
		plain(0, 1, candidates(1, 4)...),
	}}
	got := Decide(context.Background(), p)
	if got.Answer != Feasible || got.Chosen[0].Alternative != 1 || got.Chosen[0].Devices[1] != 1 || got.Chosen[1].Devices[0] != 2 {
		t.Errorf("got %v, want devices 0 and 1 by the second alternative, then device 2", got)
	}
}

// lateContext is a context that ends after it was looked at so many times.
type lateContext struct {
	context.Context

	looks *int
}

func (c lateContext) Err() error {
	if *c.looks--; *c.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestUnknownWhenContextEnds ends the context at different times: before the
// start, in the first fit and in the complete method.
func TestUnknownWhenContextEnds(t *testing.T) {
	p := hopeless()
	for _, looks := range []int{0, 1, 2, 5, 20} {
		left := looks
		ctx := lateContext{context.Background(), &left}
		if got := Decide(ctx, p); got.Answer != Unknown || got.Chosen != nil {
			t.Fatalf("after %d looks: got %v, want Unknown", looks, got)
		}
	}
}

// hopeless returns a problem that takes longer than anybody waits: many requests of
// different size to pack on a few devices.
func hopeless() *Problem {
	r := rand.New(rand.NewPCG(1, 1))
	p := &Problem{}
	for range 12 {
		p.Devices = append(p.Devices, sharing(1000, 1000))
	}
	for range 60 {
		cands := candidates(0, 12)
		for d := range cands {
			cands[d].Takes = []int64{150 + r.Int64N(95), 150 + r.Int64N(95)}
		}
		p.Requests = append(p.Requests, plain(0, 1, cands...))
	}
	return p
}

// TestExhaustWhenCrowded gives the complete method no memory, so that it
// falls back to trying everything.
func TestExhaustWhenCrowded(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 500 {
		p := random(r, flavors()["all of it"])
		s := newSolver(context.Background(), p)
		s.memory = 10
		want := Decide(context.Background(), p)
		got := s.decide(0)
		if got.Answer != want.Answer {
			t.Fatalf("got %s, want %s: %v", got.Answer, want.Answer, p)
		}
		if got.Answer == Feasible {
			if err := checkWitness(p, got.Chosen); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAnswerString(t *testing.T) {
	for answer, want := range map[Answer]string{Unknown: "Unknown", Feasible: "Feasible", Infeasible: "Infeasible"} {
		if answer.String() != want {
			t.Errorf("got %s, want %s", answer, want)
		}
	}
}
