// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// found is a device that a request gets.
type found struct {
	request *request
	device  int
	takes   map[resourceapi.QualifiedName]resource.Quantity
}

// search is one search on a node.
type search struct {
	Question
	ctx                context.Context
	consumableCapacity bool
	// devices has the devices of all usable pools; first has the index of the first device
	// of each pool, and then the number of all devices.
	devices     []device
	first       []int
	choices     [][]choice
	constraints [][]*constraint
	results     [][]found
	matches     map[matchKey]bool
	counters    counters
}

func newSearch(ctx context.Context, q Question) *search {
	q.Pools = slices.DeleteFunc(slices.Clone(q.Pools), func(p *cluster.NodePool) bool { return p.AllIgnored || p.Outdated })
	s := &search{
		Question: q, ctx: ctx,
		consumableCapacity: q.Facts.Gates.Enabled(cluster.GateConsumableCapacity),
		choices:            make([][]choice, len(q.Claims)),
		constraints:        make([][]*constraint, len(q.Claims)),
		results:            make([][]found, len(q.Claims)),
		matches:            map[matchKey]bool{},
		counters:           newCounters(q),
	}
	for _, pool := range q.Pools {
		s.first = append(s.first, len(s.devices))
		if !pool.Usable() {
			continue
		}
		for i := range pool.Devices {
			d := &pool.Devices[i]
			s.devices = append(s.devices, device{Device: d, pool: pool, shared: s.consumableCapacity && ptr.Deref(d.AllowMultipleAllocations, false)})
		}
	}
	s.first = append(s.first, len(s.devices))
	return s
}

// selectable reports whether the selectors of a class and a request select a device. What
// was found is remembered under the key.
func (s *search) selectable(key matchKey, r *request, at int) (bool, error) {
	device := s.devices[at].Device
	if len(device.BindingConditions) > 0 && !s.Facts.Gates.BindingConditions() {
		return false, nil
	}
	key.device = at
	if known, ok := s.matches[key]; ok {
		return known, nil
	}
	for _, selectors := range [][]resourceapi.DeviceSelector{r.class.Spec.Selectors, r.Selectors} {
		for i := range selectors {
			if selectors[i].CEL == nil {
				return false, fmt.Errorf("claim %s, request %s, selector #%d: CEL expression empty", name(r.Claim), r.Name, i)
			}
			match, err := s.Matches(s.ctx, selectors[i].CEL.Expression, s.devices[at].Device)
			if err != nil {
				return false, fmt.Errorf("claim %s: selector #%d on device %s: CEL runtime error: %w", name(r.Claim), i, device.ID, err)
			}
			if !match {
				s.matches[key] = false
				return false, nil
			}
		}
	}
	s.matches[key] = true
	return true, nil
}

// errTooMany means that a claim gets more devices with these choices than it can have.
var errTooMany = errors.New("allocation max size exceeded")

// position is the next step of the search.
type position struct {
	claim, choice, alternative, device int
}

// next looks for all that is left from a position on. chosen is true if the alternative is
// decided; devices before from were tried.
func (s *search) next(p position, chosen bool, from int) (bool, error) {
	if s.ctx.Err() != nil {
		return false, fmt.Errorf("filter operation aborted: %w", context.Cause(s.ctx))
	}
	if p.claim >= len(s.Claims) {
		return true, nil
	}
	if p.choice >= len(s.choices[p.claim]) {
		done, err := s.next(position{claim: p.claim + 1}, false, 0)
		if errors.Is(err, errTooMany) {
			return false, nil
		}
		return done, err
	}
	c := &s.choices[p.claim][p.choice]
	if c.prioritized && !chosen {
		return s.firstAvailable(p, len(c.alternatives))
	}
	r := &c.alternatives[p.alternative]
	if r.All() && len(r.all) == 0 {
		return false, nil
	}
	if p.device >= r.count {
		return s.next(position{claim: p.claim, choice: p.choice + 1}, false, 0)
	}
	has := len(s.results[p.claim])
	if tooMany := r.count-p.device > resourceapi.AllocationResultsMaxSize-has; tooMany &&
		(!s.Behaves(cluster.CountsOverflow) || has+r.count-p.device > resourceapi.AllocationResultsMaxSize) {
		return false, errTooMany
	}
	if r.All() {
		after := p
		after.device++
		if s.Behaves(cluster.AlternativesMixedUp) {
			after.alternative = 0
		}
		taken, done, err := s.try(p, after, r.all[p.device], 0, chosen)
		return taken && done, err
	}
	return s.anyDevice(p, r, chosen, from)
}

// firstAvailable tries one alternative after the other.
func (s *search) firstAvailable(p position, alternatives int) (bool, error) {
	tooMany := true
	for p.alternative = range alternatives {
		done, err := s.next(p, true, 0)
		if errors.Is(err, errTooMany) {
			continue
		}
		if tooMany = false; err != nil || done {
			return done && err == nil, err
		}
	}
	if tooMany {
		return false, errTooMany
	}
	return false, nil
}

// anyDevice tries one device after the other for a request.
func (s *search) anyDevice(p position, r *request, chosen bool, from int) (bool, error) {
	for at := from; at < len(s.devices); at++ {
		d := &s.devices[at]
		if r.AdminAccess && d.claims&(1<<p.claim) != 0 || !r.AdminAccess && s.inUse(d) {
			continue
		}
		selectable, err := s.selectable(matchKey{p.claim, p.choice, p.alternative, 0}, r, at)
		if err != nil {
			return false, err
		}
		if !selectable {
			continue
		}
		if s.consumableCapacity {
			enough, err := s.enough(r, at, true)
			if err != nil {
				return false, err
			}
			if !enough {
				continue
			}
		}
		after, next := p, at+1
		after.device++
		if s.Behaves(cluster.Permutes) || s.Facts.Gates.Channel() == cluster.ChannelStable {
			next = 0
		}
		if _, done, err := s.try(p, after, at, next, chosen); err != nil || done {
			return done, err
		}
	}
	return false, nil
}

// try takes a device and looks for all that is left.
func (s *search) try(p, after position, at, next int, chosen bool) (taken, done bool, err error) {
	undo, err := s.take(p, at)
	if err != nil || undo == nil {
		return false, false, err
	}
	done, err = s.next(after, chosen, next)
	if err != nil || !done {
		undo()
		return true, false, err
	}
	return true, true, nil
}

// take reserves a device for a request, unless something keeps the request from it. It
// returns what gives it back.
func (s *search) take(p position, at int) (func(), error) {
	d, r := &s.devices[at], &s.choices[p.claim][p.choice].alternatives[p.alternative]
	switch {
	case !d.shared && r.AdminAccess && d.claims&(1<<p.claim) != 0, !r.AdminAccess && s.inUse(d):
		return nil, nil
	case len(d.ConsumesCounters) > 0 && !s.Facts.Gates.Enabled(cluster.GatePartitionableDevices):
		return nil, nil
	}
	charged := false
	if len(d.ConsumesCounters) > 0 && (!d.shared || !s.sharedAlready(d)) {
		if r.All() && s.Behaves(cluster.AllWithCountersPanics) {
			return nil, &ReleasePanicError{cluster.AllWithCountersPanics, fmt.Sprintf("claim %s, request %s: device %s consumes counters", name(r.Claim), r.Name, d.ID)}
		}
		if !s.counters.charge(d) {
			return nil, nil
		}
		charged = true
	}
	leaks := s.Behaves(cluster.RejectedKeepsCounters)
	giveUp := func() {
		if charged && !leaks {
			s.counters.release(d)
		}
	}
	if s.Facts.Gates.Enabled(cluster.GateDeviceTaints) && tainted(d, r) {
		giveUp()
		return nil, nil
	}
	for i, c := range s.constraints[p.claim] {
		if c.add(r, d) {
			continue
		}
		giveUp()
		if r.All() {
			return nil, fmt.Errorf("claim %s, request %s: cannot add device %s because a claim constraint would not be satisfied", name(r.Claim), r.Name, d.ID)
		}
		for _, added := range s.constraints[p.claim][:i] {
			added.remove(r, d)
		}
		return nil, nil
	}
	if !d.shared {
		d.claims |= 1 << p.claim
	}
	var takes map[resourceapi.QualifiedName]resource.Quantity
	marked := d.shares != nil
	if s.consumableCapacity {
		enough, err := s.enough(r, at, true)
		if err != nil {
			return nil, err
		}
		if !enough {
			if !leaks {
				d.claims &^= 1 << p.claim
				s.removeFromConstraints(p, r, d)
			}
			giveUp()
			return nil, nil
		}
		if d.shared {
			takes = s.takes(r, d)
			d.shares = d.shares.with(takes)
		}
	}
	before := len(s.results[p.claim])
	s.results[p.claim] = append(s.results[p.claim], found{request: r, device: at, takes: takes})
	return func() {
		s.results[p.claim] = s.results[p.claim][:before]
		s.removeFromConstraints(p, r, d)
		d.claims &^= 1 << p.claim
		if d.shared && (takes != nil || !leaks) {
			d.shares = d.shares.without(takes)
			if d.shares == nil && marked && !leaks {
				d.shares = capacities{}
			}
		}
		if charged && (!d.shared || !leaks) {
			s.counters.release(d)
		}
	}, nil
}

func (s *search) removeFromConstraints(p position, r *request, d *device) {
	for _, c := range s.constraints[p.claim] {
		c.remove(r, d)
	}
}

// sharedAlready reports whether the counters of a shared device count as charged.
func (s *search) sharedAlready(d *device) bool {
	if s.Facts.Usage.Consumed(d.ID) != nil || d.shares != nil {
		return true
	}
	return s.Facts.Usage.Shared(d.ID) && !s.Behaves(cluster.SharesNotCharged) && !s.Behaves(cluster.SharesChargedTwice)
}

func (s *search) inUse(d *device) bool {
	return s.Facts.Usage.InUse(d.ID) || d.claims != 0
}

// enough reports whether a device has the capacity that a request takes: of the rest, or of
// all that it has.
func (s *search) enough(r *request, at int, left bool) (bool, error) {
	d := &s.devices[at]
	if r.Capacity != nil {
		for name := range r.Capacity.Requests {
			if _, has := d.Capacity[name]; !has {
				return false, nil
			}
		}
	}
	takes := s.takes(r, d)
	if !s.Behaves(cluster.CapacityWraps) {
		for capacity, amount := range takes {
			if amount.Sign() < 0 || overflows(askedOf(r, capacity), d.Capacity[capacity].RequestPolicy) {
				return false, fmt.Errorf("claim %s, request %s: checking capacity for device %s: capacity %q cannot be represented", name(r.Claim), r.Name, d.ID, capacity)
			}
		}
	}
	used := s.Facts.Usage.Consumed(d.ID)
	for name, capacity := range d.Capacity {
		if forbidden(takes[name], capacity.RequestPolicy) {
			return false, nil
		}
		total := takes[name].DeepCopy()
		if left {
			total.Add(used[name])
			total.Add(d.shares[name])
		}
		if total.Cmp(capacity.Value) > 0 {
			return false, nil
		}
	}
	return true, nil
}

// asked returns what a request asks of a capacity, nil if nothing.
func askedOf(r *request, name resourceapi.QualifiedName) *resource.Quantity {
	if r.Capacity == nil {
		return nil
	}
	if amount, ok := r.Capacity.Requests[name]; ok {
		return &amount
	}
	return nil
}

// takes returns what a request takes of each capacity of a device.
func (s *search) takes(r *request, d *device) map[resourceapi.QualifiedName]resource.Quantity {
	if len(d.Capacity) == 0 {
		return nil
	}
	all := map[resourceapi.QualifiedName]resource.Quantity{}
	for name, capacity := range d.Capacity {
		all[name] = s.taken(askedOf(r, name), capacity)
	}
	return all
}

// taken returns the amount taken of a capacity, rounded up in machine numbers.
func (s *search) taken(asked *resource.Quantity, capacity resourceapi.DeviceCapacity) resource.Quantity {
	policy := capacity.RequestPolicy
	switch {
	case asked == nil && policy != nil && policy.Default != nil:
		return policy.Default.DeepCopy()
	case asked == nil:
		return capacity.Value.DeepCopy()
	case policy == nil:
		return asked.DeepCopy()
	case policy.ValidRange != nil && policy.ValidRange.Min != nil:
		valid := policy.ValidRange
		if asked.Cmp(*valid.Min) < 0 {
			return valid.Min.DeepCopy()
		}
		if valid.Step == nil || valid.Step.Value() == 0 {
			return asked.DeepCopy()
		}
		low, step := valid.Min.Value(), valid.Step.Value()
		steps := (asked.Value() - low) / step
		if (asked.Value()-low)%step != 0 {
			steps++
		}
		format := valid.Step.Format
		if s.Behaves(cluster.CapacityWraps) {
			format = resource.BinarySI
		}
		return *resource.NewQuantity(low+step*steps, format)
	}
	for _, valid := range policy.ValidValues {
		if asked.Cmp(valid) <= 0 {
			return valid.DeepCopy()
		}
	}
	return asked.DeepCopy()
}

// overflows reports whether rounding up leaves the numbers of the machine.
func overflows(asked *resource.Quantity, policy *resourceapi.CapacityRequestPolicy) bool {
	if asked == nil || policy == nil || policy.ValidRange == nil || policy.ValidRange.Min == nil || policy.ValidRange.Step == nil || asked.Cmp(*policy.ValidRange.Min) < 0 {
		return false
	}
	if asked.CmpInt64(math.MaxInt64) > 0 {
		return true
	}
	low, step := policy.ValidRange.Min.Value(), policy.ValidRange.Step.Value()
	steps := (asked.Value() - low + step - 1) / max(1, step)
	return low >= 0 && step > 0 && steps > (math.MaxInt64-low)/step
}

// forbidden reports whether a policy does not allow an amount.
func forbidden(amount resource.Quantity, policy *resourceapi.CapacityRequestPolicy) bool {
	switch {
	case policy == nil, policy.Default != nil && amount == *policy.Default:
		return false
	case policy.ValidRange != nil:
		valid := policy.ValidRange
		if valid.Max != nil && amount.Cmp(*valid.Max) > 0 {
			return true
		}
		return valid.Step != nil && valid.Min != nil && valid.Step.Value() != 0 && (amount.Value()-valid.Min.Value())%valid.Step.Value() != 0
	case len(policy.ValidValues) == 0:
		return false
	}
	for _, valid := range policy.ValidValues {
		if amount.Cmp(valid) == 0 {
			return false
		}
	}
	return true
}
