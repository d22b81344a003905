// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// distribution is a list of devices and columns for which all best distributions are found:
// device by device and column by column, each step may give the device to the column or
// not. States that later steps cannot tell apart are merged.
type distribution struct {
	p       *placement
	devices []int
	columns []column

	lines [][]line
	// counters, sets and values are tracked in a state.
	counters []int
	sets     []int
	values   []value
	valueAt  map[value]int
	// capacities is the most capacities that one device has.
	capacities int

	// after has for each device the resources that the devices after it may still use.
	after []remainder
	// rest is how often the remaining steps could serve each column.
	rest []int
	// history has the links of the states after each step.
	history [][]link
	steps   []stepAt
}

// line is a candidate of a column on a device.
type line struct {
	column int
	cand   *Candidate
}

// value is a value of a distinct constraint.
type value struct{ constraint, value int }

// stepAt is a device and one of its lines.
type stepAt struct{ device, line int }

// remainder has the resources that the devices after one may still use.
type remainder struct {
	counters []int64
	sets     []bool
	values   []int64
}

// outcome is one of the best distributions.
type outcome struct {
	amounts []int
	shares  []share
}

// wordBits is how many values fit in one slot; the sign is left alone.
const wordBits = 63

func newDistribution(p *placement, devices []int, columns []column) *distribution {
	sh := &distribution{p: p, devices: devices, columns: columns, lines: make([][]line, len(devices)), valueAt: make(map[value]int)}
	local := make(map[int]int, len(devices))
	for i, d := range devices {
		local[d] = i
	}
	for c := range columns {
		for _, cand := range columns[c].cands {
			if i, found := local[cand.Device]; found {
				sh.lines[i] = append(sh.lines[i], line{column: c, cand: cand})
			}
		}
	}
	sh.account()
	return sh
}

// account determines the contents of states, and for how long each is tracked.
func (sh *distribution) account() {
	counterAt, setAt := make(map[int]int), make(map[int]int)
	lastSet := make(map[int]int)
	lastValue := make(map[int]int)
	for i, d := range sh.devices {
		sh.capacities = max(sh.capacities, len(sh.p.s.problem.Devices[d].Capacity))
		for _, u := range sh.p.s.uses[d] {
			if _, found := counterAt[u.Counter]; !found && sh.p.counters[u.Counter] {
				counterAt[u.Counter] = len(sh.counters)
				sh.counters = append(sh.counters, u.Counter)
			}
		}
		for _, g := range sh.p.s.groups[d] {
			if !sh.p.sets[g.set] {
				continue
			}
			if _, found := setAt[g.set]; !found {
				setAt[g.set] = len(sh.sets)
				sh.sets = append(sh.sets, g.set)
			}
			lastSet[setAt[g.set]] = i
		}
		for _, ln := range sh.lines[i] {
			sh.eachValue(ln.cand, func(v value) {
				if _, found := sh.valueAt[v]; !found {
					sh.valueAt[v] = len(sh.values)
					sh.values = append(sh.values, v)
				}
				lastValue[sh.valueAt[v]] = i
			})
		}
	}
	sh.after = make([]remainder, len(sh.devices))
	left := make([]int64, len(sh.counters))
	for i := len(sh.devices) - 1; i >= 0; i-- {
		r := remainder{counters: append([]int64(nil), left...), sets: make([]bool, len(sh.sets)), values: make([]int64, sh.words())}
		for set, last := range lastSet {
			r.sets[set] = last > i
		}
		for v, last := range lastValue {
			if last > i {
				r.values[v/wordBits] |= 1 << (v % wordBits)
			}
		}
		sh.after[i] = r
		for _, u := range sh.p.s.uses[sh.devices[i]] {
			if k, found := counterAt[u.Counter]; found {
				for range sh.charges(i) {
					left[k] = addCapped(left[k], u.Amount)
				}
			}
		}
	}
}

// charges returns how often the device may be charged: more than once only when admin
// access lets several have an exclusive one.
func (sh *distribution) charges(i int) int {
	if len(sh.lines[i]) == 0 {
		return 0
	}
	if sh.p.admin && !sh.p.s.problem.Devices[sh.devices[i]].Shared {
		return len(sh.lines[i])
	}
	return 1
}

// eachValue calls f with the values that a candidate occupies.
func (sh *distribution) eachValue(c *Candidate, f func(value)) {
	for _, constraint := range sh.p.distinct {
		for _, v := range valuesOf(c, constraint) {
			f(value{constraint, v})
		}
	}
}

func (sh *distribution) words() int { return (len(sh.values) + wordBits - 1) / wordBits }

// The slots of a state: the progress of the columns, the rest of the counters, the counter
// sets, the values in use, who has the device at own (0 for nobody) and its free
// capacities.
func (sh *distribution) counterSlot() int  { return len(sh.columns) }
func (sh *distribution) setSlot() int      { return sh.counterSlot() + len(sh.counters) }
func (sh *distribution) valueSlot() int    { return sh.setSlot() + len(sh.sets) }
func (sh *distribution) holderSlot() int   { return sh.valueSlot() + sh.words() }
func (sh *distribution) capacitySlot() int { return sh.holderSlot() + 1 }
func (sh *distribution) width() int        { return sh.capacitySlot() + sh.capacities }

// solve returns the best distributions: none is at least as good as another one for each
// column, and all give each column what it needs. There are none when that is impossible,
// or when the work was stopped.
func (sh *distribution) solve() []outcome {
	// The history is not needed afterwards.
	defer func(kept int) { sh.p.s.kept = kept }(sh.p.s.kept)
	sh.rest = make([]int, len(sh.columns))
	for i := range sh.lines {
		for _, ln := range sh.lines[i] {
			sh.rest[ln.column] += sh.most(i, ln)
		}
	}
	for c := range sh.columns {
		if sh.rest[c] < sh.columns[c].need {
			return nil
		}
	}
	start := make([]int64, sh.width())
	for k, counter := range sh.counters {
		start[sh.counterSlot()+k] = sh.p.s.problem.Counters[counter]
	}
	for g, set := range sh.sets {
		start[sh.setSlot()+g] = int64(sh.p.s.table.start(set))
	}
	current := &layer{width: sh.width()}
	current.add(start, link{})
	for i := range sh.devices {
		for n := range sh.lines[i] {
			current = sh.advance(current, i, n)
			if current.len() == 0 {
				return nil
			}
		}
		if full := sh.full(current); full >= 0 {
			return []outcome{sh.trace(current, full)}
		}
	}
	current.prune(len(sh.columns), len(sh.columns))
	outcomes := make([]outcome, 0, current.len())
	for i := range current.len() {
		outcomes = append(outcomes, sh.trace(current, i))
	}
	return outcomes
}

// most returns how often a device can be given to a column at all.
func (sh *distribution) most(i int, ln line) int {
	if !sh.p.s.problem.Devices[sh.devices[i]].Shared {
		return 1
	}
	for _, constraint := range sh.p.distinct {
		if valuesOf(ln.cand, constraint) != nil {
			return 1
		}
	}
	return len(sh.columns[ln.column].items)
}

// advance makes the step for one line of a device.
func (sh *distribution) advance(current *layer, i, n int) *layer {
	ln := sh.lines[i][n]
	last := n == len(sh.lines[i])-1
	most := sh.most(i, ln)
	sh.rest[ln.column] -= most
	next := &layer{width: current.width}
	scratch := make([]int64, current.width)
	for from := range current.len() {
		sh.p.s.remember(0, len(current.slots)+2*len(next.slots))
		copy(scratch, current.state(from))
		if n == 0 {
			copy(scratch[sh.capacitySlot():], sh.p.s.problem.Devices[sh.devices[i]].Capacity)
		}
		progress, demand := int(scratch[ln.column]), sh.columns[ln.column].demand
		for times := 0; ; times++ {
			if !sh.p.s.step() {
				return &layer{width: current.width}
			}
			if progress+times+sh.rest[ln.column] >= sh.columns[ln.column].need {
				sh.keep(next, scratch, i, last, link{parent: int32(from), times: int32(times)})
			}
			if times == most || progress+times == demand || !sh.give(scratch, i, ln) {
				break
			}
		}
	}
	if last {
		next.prune(len(sh.columns), sh.setSlot())
	}
	sh.p.s.remember(next.len(), 0)
	sh.history = append(sh.history, next.links)
	sh.steps = append(sh.steps, stepAt{device: i, line: n})
	return next
}

// keep adds the state, after the last line of a device without the parts that no later
// device needs.
func (sh *distribution) keep(next *layer, state []int64, i int, last bool, from link) {
	if !last {
		next.add(state, from)
		return
	}
	end := append(make([]int64, 0, len(state)), state...)
	after := &sh.after[i]
	for k, future := range after.counters {
		end[sh.counterSlot()+k] = min(end[sh.counterSlot()+k], future)
	}
	for g, alive := range after.sets {
		if !alive {
			end[sh.setSlot()+g] = 0
		}
	}
	for w, alive := range after.values {
		end[sh.valueSlot()+w] &= alive
	}
	clear(end[sh.holderSlot():])
	next.add(end, from)
}

// give gives the device to the column once more and reports whether that is possible. If
// not, the state is unusable.
func (sh *distribution) give(state []int64, i int, ln line) bool {
	s := sh.p.s
	d := sh.devices[i]
	device := &s.problem.Devices[d]
	column := &sh.columns[ln.column]
	holder := &state[sh.holderSlot()]
	charged := true
	if device.Shared {
		charged = *holder == 0
		*holder = 1
		for c := range device.Capacity {
			left := &state[sh.capacitySlot()+c]
			if *left -= take(ln.cand, c); *left < 0 {
				return false
			}
		}
	} else {
		if *holder != 0 && (!column.admin || *holder == int64(column.claim)+1) {
			return false
		}
		*holder = int64(column.claim) + 1
	}
	if charged && !sh.charge(state, d) {
		return false
	}
	free := true
	sh.eachValue(ln.cand, func(v value) {
		at := sh.valueAt[v]
		free = free && state[sh.valueSlot()+at/wordBits]&(1<<(at%wordBits)) == 0
	})
	if !free {
		return false
	}
	sh.eachValue(ln.cand, func(v value) {
		at := sh.valueAt[v]
		state[sh.valueSlot()+at/wordBits] |= 1 << (at % wordBits)
	})
	state[ln.column]++
	return true
}

// charge charges the counters and joins the counter sets of a device. It reports whether
// that is possible.
func (sh *distribution) charge(state []int64, d int) bool {
	for _, u := range sh.p.s.uses[d] {
		for k, counter := range sh.counters {
			if counter != u.Counter {
				continue
			}
			left := &state[sh.counterSlot()+k]
			if *left -= u.Amount; *left < 0 {
				return false
			}
		}
	}
	for _, g := range sh.p.s.groups[d] {
		for k, set := range sh.sets {
			if set != g.set {
				continue
			}
			slot := &state[sh.setSlot()+k]
			joined, ok := sh.p.s.table.join(int(*slot), g.groups)
			if !ok {
				return false
			}
			*slot = int64(joined)
		}
	}
	return true
}

// full returns a state in which each column has all that it wants, or -1.
func (sh *distribution) full(current *layer) int {
	for i := range current.len() {
		done := true
		for c := range sh.columns {
			done = done && current.state(i)[c] == int64(sh.columns[c].demand)
		}
		if done {
			return i
		}
	}
	return -1
}

// trace reconstructs the way to a state.
func (sh *distribution) trace(current *layer, i int) outcome {
	o := outcome{amounts: make([]int, len(sh.columns))}
	for c := range sh.columns {
		o.amounts[c] = int(current.state(i)[c])
	}
	for k := len(sh.steps) - 1; k >= 0; k-- {
		from := sh.history[k][i]
		if from.times > 0 {
			at := sh.steps[k]
			o.shares = append(o.shares, share{column: sh.lines[at.device][at.line].column, device: at.device, times: int(from.times)})
		}
		i = int(from.parent)
	}
	return o
}

// layer is the set of states after one step of a distribution. A state is a fixed
// number of slots; all states lie one after the other.
type layer struct {
	width int
	slots []int64
	links []link
	table []int32
}

// link is the origin of a state: the state of the layer before, and how often the device
// was given to the column of the step.
type link struct {
	parent int32
	times  int32
}

// state returns the slots of a state.
func (l *layer) state(i int) []int64 { return l.slots[i*l.width : (i+1)*l.width] }

func (l *layer) len() int { return len(l.links) }

// add adds a copy of the state unless it is there already.
func (l *layer) add(state []int64, from link) {
	if 2*(l.len()+1) > len(l.table) {
		l.grow()
	}
	at := l.slot(state)
	if l.table[at] != 0 {
		return
	}
	l.slots = append(l.slots, state...)
	l.links = append(l.links, from)
	l.table[at] = int32(l.len())
}

// slot finds where in the table the state is or belongs.
func (l *layer) slot(state []int64) int {
	h := uint64(14695981039346656037)
	for _, v := range state {
		h = (h ^ uint64(v)) * 1099511628211
		h ^= h >> 29
	}
	mask := len(l.table) - 1
	at := int(h>>1) & mask
	for l.table[at] != 0 && !slices.Equal(l.state(int(l.table[at])-1), state) {
		at = (at + 1) & mask
	}
	return at
}

func (l *layer) grow() {
	l.table = make([]int32, max(16, 2*len(l.table)))
	for i := range l.links {
		l.table[l.slot(l.state(i))] = int32(i) + 1
	}
}

// mostCompared limits how many better states a state is compared with. More would be slower
// than to continue with a few superfluous states.
const mostCompared = 256

// prune drops states that are no better than another state: in the first amounts slots
// more is better, and all other slots must be equal.
func (l *layer) prune(progress, amounts int) {
	if l.len() < 2 {
		return
	}
	sums := make([]int64, l.len())
	order := make([]int, l.len())
	for i := range order {
		order[i] = i
		for _, v := range l.state(i)[:progress] {
			sums[i] += v
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		if c := cmp.Compare(sums[b], sums[a]); c != 0 {
			return c
		}
		return slices.Compare(l.state(b)[:amounts], l.state(a)[:amounts])
	})
	kept := &layer{width: l.width}
	better := make(map[string][]int)
	var key []byte
	for _, i := range order {
		state := l.state(i)
		key = key[:0]
		for _, v := range state[amounts:] {
			key = binary.AppendVarint(key, v)
		}
		rivals := better[string(key)]
		if slices.ContainsFunc(rivals, func(r int) bool { return atLeast(l.state(r)[:amounts], state[:amounts]) }) {
			continue
		}
		if len(rivals) < mostCompared {
			better[string(key)] = append(rivals, i)
		}
		kept.slots = append(kept.slots, state...)
		kept.links = append(kept.links, l.links[i])
	}
	*l = *kept
}

// atLeast reports whether no number of a is less than the number in b.
func atLeast[T cmp.Ordered](a, b []T) bool {
	for i := range a {
		if a[i] < b[i] {
			return false
		}
	}
	return true
}
