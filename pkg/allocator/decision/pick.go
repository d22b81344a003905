// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"math"
	"slices"
)

// picker searches one vector for each part, so that together with the bundles
// there is enough of everything.
type picker struct {
	c *combination
	// bundles are the bundles of the simple devices, then the bundles that stand for parts.
	bundles      []bundle
	relaxedParts []*part
	// hard are the remaining parts, equal ones side by side, and relaxed for each of them a
	// bundle that can do at least as much.
	hard    []*part
	relaxed []bundle
	weights []weighting
	// failed has the states that are known to fail.
	failed map[string]bool
	given  [][]int
}

// weighting is a bound: whatever is chosen, the hard parts from some place on and all
// bundles give a weighted sum of at most most.
type weighting struct {
	weights []int64
	most    []int64
}

// greatestWeight keeps sums of weights far from overflowing.
const greatestWeight = 1 << 30

// pick chooses a vector for each part and reports whether that is possible. It returns the
// use of the simple bundles.
func (c *combination) pick() ([][]int, bool) {
	k := &picker{c: c, bundles: slices.Clone(c.bundles), failed: make(map[string]bool)}
	wanted := slices.Clone(c.demand)
	for _, pt := range c.parts {
		if len(pt.vectors) == 1 {
			pt.picked = 0
			subtract(wanted, pt.vectors[0])
			continue
		}
		if b, ok := asBundle(pt); ok {
			k.bundles = append(k.bundles, b)
			k.relaxedParts = append(k.relaxedParts, pt)
			continue
		}
		k.hard = append(k.hard, pt)
	}
	k.sortHard()
	for _, pt := range k.hard {
		k.relaxed = append(k.relaxed, relax(pt))
	}
	k.weigh()
	if !k.search(0, wanted) {
		return nil, false
	}
	for n, pt := range k.relaxedParts {
		b := len(c.bundles) + n
		want := make([]int, len(c.demand))
		for e, count := range k.given[b] {
			want[k.bundles[b].edges[e].column] = count
		}
		pt.picked = slices.IndexFunc(pt.vectors, func(v []int) bool { return atLeast(v, want) })
	}
	return k.given[:len(c.bundles)], true
}

// subtract takes the given from the wanted numbers, down to zero.
func subtract(wanted, given []int) {
	for n := range wanted {
		wanted[n] = max(0, wanted[n]-given[n])
	}
}

// sortHard puts parts with the same frontier side by side, the order of the
// first ones is kept.
func (k *picker) sortHard() {
	at := make(map[*frontier]int)
	for i, pt := range k.hard {
		if _, found := at[pt.frontier]; !found {
			at[pt.frontier] = i
		}
	}
	slices.SortStableFunc(k.hard, func(a, b *part) int { return at[a.frontier] - at[b.frontier] })
}

// asBundle returns a bundle that is equivalent to the part, if there is one: when its
// vectors are all ways to divide some number.
func asBundle(pt *part) (bundle, bool) {
	b := relax(pt)
	for _, v := range pt.vectors {
		if sum(v) != b.capacity {
			return bundle{}, false
		}
	}
	// The number of ways, from one column to the next.
	ways := make([]int, b.capacity+1)
	ways[0] = 1
	for _, e := range b.edges {
		next := make([]int, len(ways))
		for total, n := range ways {
			for more := 0; more <= e.capacity && total+more < len(ways); more++ {
				next[total+more] = min(next[total+more]+n, math.MaxInt32)
			}
		}
		ways = next
	}
	return b, ways[b.capacity] == len(pt.vectors)
}

// relax returns a bundle that can do all that the part can, and maybe more.
func relax(pt *part) bundle {
	b := bundle{}
	most := make([]int, len(pt.vectors[0]))
	for _, v := range pt.vectors {
		b.capacity = max(b.capacity, sum(v))
		for n := range v {
			most[n] = max(most[n], v[n])
		}
	}
	for n := range most {
		if most[n] > 0 {
			b.edges = append(b.edges, edge{column: n, capacity: most[n]})
		}
	}
	return b
}

func sum(v []int) int {
	total := 0
	for _, n := range v {
		total += n
	}
	return total
}

// search picks vectors for the hard parts from place on, and reports whether it found some.
func (k *picker) search(place int, wanted []int) bool {
	if !k.c.p.s.step() {
		return false
	}
	for i := range k.weights {
		w := &k.weights[i]
		var total int64
		for n, want := range wanted {
			total += w.weights[n] * int64(want)
		}
		if total > w.most[place] {
			return false
		}
	}
	if place == len(k.hard) {
		given, ok := distribute(k.bundles, wanted)
		k.given = given
		return ok
	}
	key := stateKey(place, wanted)
	if k.failed[key] {
		return false
	}
	if _, ok := distribute(slices.Concat(k.bundles, k.relaxed[place:]), wanted); ok {
		for _, v := range k.useful(k.hard[place], wanted) {
			rest := slices.Clone(wanted)
			subtract(rest, k.hard[place].vectors[v])
			if k.search(place+1, rest) {
				k.hard[place].picked = v
				return true
			}
		}
	}
	k.c.p.s.remember(len(wanted)+4, 0)
	k.failed[key] = true
	return false
}

// useful returns the vectors of a part that differ in how much they add to the demand, the
// largest first.
func (k *picker) useful(pt *part, wanted []int) []int {
	type gain struct {
		vector int
		added  []int
		sum    int
	}
	var gains []gain
	for i, v := range pt.vectors {
		g := gain{vector: i, added: make([]int, len(wanted))}
		for n := range wanted {
			g.added[n] = min(v[n], wanted[n])
		}
		g.sum = sum(g.added)
		gains = append(gains, g)
	}
	slices.SortStableFunc(gains, func(a, b gain) int { return b.sum - a.sum })
	var kept []gain
	var order []int
	for _, g := range gains {
		if !k.c.p.s.work(len(kept) / comparesPerStep) {
			return nil
		}
		if slices.ContainsFunc(kept, func(better gain) bool { return atLeast(better.added, g.added) }) {
			continue
		}
		kept = append(kept, g)
		order = append(order, g.vector)
	}
	return order
}

// weigh finds the bounds: any weights of the demand are true bounds, good ones are one for
// each set of a few columns, and the amounts of a counter that columns use at least.
func (k *picker) weigh() {
	if len(k.hard) == 0 {
		return
	}
	n := len(k.c.demand)
	var candidates [][]int64
	if n <= 6 {
		for set := 1; set < 1<<n; set++ {
			weights := make([]int64, n)
			for i := range weights {
				weights[i] = int64(set >> i & 1)
			}
			candidates = append(candidates, weights)
		}
	} else {
		all := make([]int64, n)
		for i := range all {
			all[i] = 1
			one := make([]int64, n)
			one[i] = 1
			candidates = append(candidates, one)
		}
		candidates = append(candidates, all)
	}
	for i, pt := range k.hard {
		if i == 0 || pt.frontier != k.hard[i-1].frontier {
			candidates = append(candidates, k.c.counterWeights(pt.component)...)
		}
	}
	seen := make(map[string]bool)
	for _, weights := range candidates {
		key := string(appendWeights(nil, weights))
		if !seen[key] {
			seen[key] = true
			k.weights = append(k.weights, k.bound(weights))
		}
	}
}

// bound finds how much weight the parts and bundles can give.
func (k *picker) bound(weights []int64) weighting {
	w := weighting{weights: weights, most: make([]int64, len(k.hard)+1)}
	for _, b := range k.bundles {
		w.most[len(k.hard)] += heaviest(b, weights)
	}
	for i := len(k.hard) - 1; i >= 0; i-- {
		var most int64
		for _, v := range k.hard[i].vectors {
			var total int64
			for n := range v {
				total += weights[n] * int64(v[n])
			}
			most = max(most, total)
		}
		w.most[i] = w.most[i+1] + most
	}
	return w
}

// heaviest returns the most weight that a bundle can give.
func heaviest(b bundle, weights []int64) int64 {
	edges := slices.Clone(b.edges)
	slices.SortFunc(edges, func(x, y edge) int { return int(weights[y.column] - weights[x.column]) })
	left := b.capacity
	var total int64
	for _, e := range edges {
		amount := min(left, e.capacity)
		left -= amount
		total += weights[e.column] * int64(amount)
	}
	return total
}

// counterWeights gives, for each counter of a component, how much of it one
// more of each column uses at least.
func (c *combination) counterWeights(comp *component) [][]int64 {
	in := make(map[int]bool, len(comp.devices))
	var counters []int
	for _, d := range comp.devices {
		in[d] = true
		for _, u := range c.p.s.uses[d] {
			if c.p.counters[u.Counter] && !slices.Contains(counters, u.Counter) {
				counters = append(counters, u.Counter)
			}
		}
	}
	var result [][]int64
	for _, counter := range counters {
		weights := make([]int64, len(c.demand))
		for _, n := range comp.columns {
			least := int64(-1)
			for _, cand := range c.columns[n].cands {
				if !in[cand.Device] {
					continue
				}
				amount := c.amount(cand.Device, counter)
				if least < 0 || amount < least {
					least = amount
				}
			}
			weights[n] = max(0, least)
		}
		if scale(weights) {
			result = append(result, weights)
		}
	}
	return result
}

// amount returns how much of a counter a device uses for each that it serves.
func (c *combination) amount(device, counter int) int64 {
	if c.p.s.problem.Devices[device].Shared {
		return 0
	}
	for _, u := range c.p.s.uses[device] {
		if u.Counter == counter {
			return u.Amount
		}
	}
	return 0
}

// scale divides the weights by their common divisor and reports whether they are useful.
func scale(weights []int64) bool {
	var common int64
	for _, w := range weights {
		for a := w; a != 0; {
			common, a = a, common%a
		}
	}
	if common == 0 {
		return false
	}
	for i := range weights {
		weights[i] /= common
		if weights[i] > greatestWeight {
			return false
		}
	}
	return true
}

func appendWeights(key []byte, weights []int64) []byte {
	for _, w := range weights {
		key = append(key, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	return key
}
