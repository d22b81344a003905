// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
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
