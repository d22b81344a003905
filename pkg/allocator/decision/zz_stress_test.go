package decision

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

func timeIt(t *testing.T, name string, p *Problem) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	start := time.Now()
	s := newSolver(ctx, p)
	got := s.decide(firstFitTries)
	t.Logf("%-40s %-10s %8.2fms steps %d", name, got.Answer, float64(time.Since(start).Microseconds())/1000, s.steps)
	if got.Answer == Feasible {
		if err := checkWitness(p, got.Chosen); err != nil {
			t.Error(err)
		}
	}
}

// mig: n gpus, 8 memory slices each as counters + 7 compute; profiles with placements
func mig(n int, power int64) (p *Problem, by map[string][]Candidate, gpuOf []int) {
	p = &Problem{}
	by = map[string][]Candidate{}
	type prof struct {
		name   string
		sm     int64
		mem    int
		starts []int
	}
	profs := []prof{{"1g", 1, 1, []int{0, 1, 2, 3, 4, 5, 6}}, {"1g2", 1, 2, []int{0, 2, 4, 6}}, {"2g", 2, 2, []int{0, 2, 4}}, {"3g", 3, 4, []int{0, 4}}, {"4g", 4, 4, []int{0}}, {"7g", 7, 8, []int{0}}}
	if power > 0 {
		p.Counters = append(p.Counters, power)
	}
	for g := range n {
		base := len(p.Counters)
		for range 8 {
			p.Counters = append(p.Counters, 1)
		}
		p.Counters = append(p.Counters, 7)
		for _, pr := range profs {
			for _, st := range pr.starts {
				d := Device{Uses: []CounterUse{{base + 8, pr.sm}}}
				for m := st; m < st+pr.mem; m++ {
					d.Uses = append(d.Uses, CounterUse{base + m, 1})
				}
				if power > 0 {
					d.Uses = append(d.Uses, CounterUse{0, pr.sm * 50})
				}
				by[pr.name] = append(by[pr.name], Candidate{Device: len(p.Devices)})
				p.Devices = append(p.Devices, d)
				gpuOf = append(gpuOf, g)
			}
		}
	}
	return
}

func TestStress(t *testing.T) {
	p, by, _ := mig(8, 0)
	p.Requests = []Request{plain(0, 8, by["3g"]...), plain(0, 8, by["2g"]...), plain(0, 17, by["1g"]...), plain(0, 8, by["1g2"]...)}
	timeIt(t, "mig8 tight", p)
	p, by, _ = mig(8, 0)
	p.Requests = []Request{plain(0, 8, by["4g"]...), plain(0, 8, by["2g"]...), plain(0, 9, by["1g"]...)}
	timeIt(t, "mig8 4g+2g+1g short", p)
	p, by, _ = mig(16, 0)
	p.Requests = []Request{plain(0, 16, by["4g"]...), plain(0, 16, by["2g"]...), plain(0, 17, by["1g"]...)}
	timeIt(t, "mig16 short", p)
	p, by, _ = mig(8, 8*7*50-50)
	p.Requests = []Request{plain(0, 8, by["4g"]...), plain(0, 8, by["2g"]...), plain(0, 8, by["1g"]...)}
	timeIt(t, "mig8 power short", p)
	p, by, _ = mig(8, 8*7*50-50)
	p.Requests = []Request{plain(0, 4, by["4g"]...), plain(0, 6, by["2g"]...), plain(0, 4, by["1g"]...), plain(0, 7, by["3g"]...)}
	timeIt(t, "mig8 power mixed", p)
	// claims: each 3g+2g+1g on the same gpu
	for _, k := range []int{8, 9} {
		for _, power := range []int64{0, 8*7*50 - 50} {
			p, by, gpu := mig(8, power)
			p.Constraints = k
			p.Distinct = make([]bool, k)
			with := func(l []Candidate, c int) []Candidate {
				var out []Candidate
				for _, x := range l {
					x.Values = make([][]int, k)
					x.Values[c] = []int{gpu[x.Device]}
					out = append(out, x)
				}
				return out
			}
			for c := range k {
				p.Requests = append(p.Requests, plain(c, 1, with(by["3g"], c)...), plain(c, 1, with(by["2g"], c)...), plain(c, 1, with(by["1g"], c)...))
			}
			timeIt(t, "mig8 claims on one gpu", p)
		}
	}
	// different claims on one gpu each, with power
	for _, power := range []int64{0, 6*7*50 - 50} {
		p, by, gpu := mig(6, power)
		sets := [][]string{{"3g", "2g"}, {"4g", "1g"}, {"7g"}, {"3g", "3g"}, {"4g", "2g"}, {"2g", "2g", "2g"}, {"4g", "4g"}}
		if power > 0 {
			sets = sets[:6]
		} else {
			sets[6] = []string{"4g", "2g", "1g"}
		}
		k := len(sets)
		p.Constraints = k
		p.Distinct = make([]bool, k)
		for c, set := range sets {
			for _, n := range set {
				var out []Candidate
				for _, x := range by[n] {
					x.Values = make([][]int, k)
					x.Values[c] = []int{gpu[x.Device]}
					out = append(out, x)
				}
				p.Requests = append(p.Requests, plain(c, 1, out...))
			}
		}
		timeIt(t, "mig6 different claims", p)
	}
	// numa and pcie: 2 numa, 8 pcie, gpu+nic pairs
	for _, k := range []int{4, 8, 9} {
		p := &Problem{Constraints: 2 * k, Distinct: make([]bool, 2*k)}
		for range 16 {
			p.Devices = append(p.Devices, Device{})
		}
		for c := range k {
			var gpus, nics []Candidate
			for i := range 16 {
				x := Candidate{Device: i, Values: make([][]int, 2*k)}
				x.Values[2*c] = []int{i % 8}
				x.Values[2*c+1] = []int{i % 8 / 4}
				if i < 8 {
					gpus = append(gpus, x)
				} else {
					nics = append(nics, x)
				}
			}
			p.Requests = append(p.Requests, plain(c, 1, gpus...), plain(c, 1, nics...))
		}
		timeIt(t, "numa+pcie pairs", p)
	}
	// one claim, 10 distinct requests with random subsets on counters
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{6, 8, 10, 12} {
		p, by, _ := mig(3, 3*7*50-50)
		var all []Candidate
		for _, nme := range []string{"1g", "1g2", "2g", "3g"} {
			all = append(all, by[nme]...)
		}
		for range n {
			var cs []Candidate
			for _, c := range all {
				if r.IntN(100) < 60 {
					cs = append(cs, c)
				}
			}
			p.Requests = append(p.Requests, plain(0, 2, cs...))
		}
		timeIt(t, "random subsets on mig3", p)
	}
	// shared devices, many different takes, 2 capacities
	for _, n := range []int{8, 12, 16} {
		p := &Problem{}
		for range 8 {
			p.Devices = append(p.Devices, Device{Shared: true, Capacity: []int64{100, 40}})
		}
		for range n {
			a, b := 60+r.Int64N(15), 10+r.Int64N(9)
			var cs []Candidate
			for d := range 8 {
				cs = append(cs, Candidate{Device: d, Takes: []int64{a, b}})
			}
			p.Requests = append(p.Requests, plain(0, 1, cs...))
		}
		timeIt(t, "shares all different", p)
	}
	for _, n := range []int{10, 14, 18, 22} {
		p := &Problem{}
		for range n/2 - 1 {
			p.Devices = append(p.Devices, Device{Shared: true, Capacity: []int64{100}})
		}
		for range n {
			a := 34 + r.Int64N(15)
			var cs []Candidate
			for d := range p.Devices {
				cs = append(cs, Candidate{Device: d, Takes: []int64{a}})
			}
			p.Requests = append(p.Requests, plain(0, 1, cs...))
		}
		timeIt(t, "shares all different, bins of two", p)
	}
	// list-valued match: each device has a list of 3 of 12 switches
	for _, k := range []int{1, 3, 5} {
		p := &Problem{Constraints: k, Distinct: make([]bool, k)}
		vals := [][]int{}
		for range 24 {
			p.Devices = append(p.Devices, Device{})
			vals = append(vals, []int{r.IntN(12), r.IntN(12), r.IntN(12)})
		}
		for c := range k {
			var cs []Candidate
			for d := range 24 {
				x := Candidate{Device: d, Values: make([][]int, k)}
				x.Values[c] = vals[d]
				cs = append(cs, x)
			}
			p.Requests = append(p.Requests, plain(c, 5, cs...))
		}
		timeIt(t, "list match", p)
	}
	// power counter linking 16 pcie groups, claims of different sizes matching
	for _, k := range []int{4, 6, 8} {
		p := &Problem{Constraints: k, Distinct: make([]bool, k), Counters: []int64{61}}
		for range 64 {
			p.Devices = append(p.Devices, Device{Uses: []CounterUse{{0, 3}}})
		}
		for c := range k {
			var cs []Candidate
			for d := range 64 {
				x := Candidate{Device: d, Values: make([][]int, k)}
				x.Values[c] = []int{d / 4}
				cs = append(cs, x)
			}
			cnt := 1 + c%4
			if c == k-1 {
				cnt = 4
			}
			p.Requests = append(p.Requests, plain(c, cnt, cs...))
			if c == 0 {
				p.Counters[0] = -1
			}
		}
		tot := 0
		for i := range p.Requests {
			tot += p.Requests[i].Alternatives[0].Count
		}
		p.Counters[0] = int64(tot*3 - 1)
		timeIt(t, "matching claims under one counter", p)
	}
}
