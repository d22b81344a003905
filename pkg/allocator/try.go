// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

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
