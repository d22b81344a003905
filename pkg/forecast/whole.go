// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// Where the devices of a node that can serve a claim are whole, none of them a part of
// another, the allocator finds any number of them that there are: it searches for all, and
// what one claim takes leaves the others as they are. So their number says how many claims
// fit, for whatever number of devices. Shared devices and partitions leave less than they
// are, and the allocator is asked.

// mostSearched is among how many devices the allocator looks for more than there are
// without a doubt that it comes to an end before the scheduler gives up: each one doubles
// the search.
const mostSearched = 20

// wholeDevices are the devices of a node that can serve a claim, each of them whole.
type wholeDevices []wholeDevice

type wholeDevice struct {
	id cluster.DeviceID
	// values are the values that the devices of a claim must have in common.
	values string
	// pool and index are its place among the devices of the node.
	pool, index int
}

// slots returns how many claims for a number of devices fit on those that are free. It is
// not known if a claim for so many could take the allocator too long.
func (w wholeDevices) slots(size int, free func(*wholeDevice) bool) (count int, known bool) {
	byValues := map[string]int{}
	for i := range w {
		if free(&w[i]) {
			byValues[w[i].values]++
		}
	}
	known = true
	for _, n := range byValues {
		count += n / size
		known = known && (size <= n || n <= mostSearched)
	}
	return count, known
}

// certain reports whether devices alone decide how many claims fit: none of them could end
// the attempt for all nodes, and nothing else is in the way.
func certain(q *eligibility.Question, answer *api.Explanation) bool {
	return answer.Verdict == api.Fits && len(q.Claims) == 1 && !mayFail(q.Claims[0].Funnels[0][0]) &&
		!slices.ContainsFunc(q.Claims[0].Claim.Spec.Devices.Constraints, func(c resourceapi.DeviceConstraint) bool { return c.MatchAttribute == nil })
}

// wholeOn returns the devices of a node that can serve the only request of a question, and
// whether all of them are whole.
func wholeOn(ctx context.Context, q *eligibility.Question, node *corev1.Node) (devices wholeDevices, whole bool) {
	f := q.Claims[0].Funnels[0][0]
	type counterSet struct {
		pool int
		name string
	}
	taken := map[counterSet]bool{}
	devices, whole = make(wholeDevices, 0, f.Eligible[node.Name]), true
	for i, pool := range q.Reach.Pools[node.Name] {
		for j := range pool.Devices {
			d := &pool.Devices[j]
			if f.Reason(d) != nil {
				continue
			}
			values, single := valuesOf(ctx, f, d)
			whole = whole && single && isWhole(d)
			devices = append(devices, wholeDevice{d.ID, values, i, j})
			for k := range d.ConsumesCounters {
				set := counterSet{i, d.ConsumesCounters[k].CounterSet}
				whole = whole && !taken[set]
				taken[set] = true
			}
		}
	}
	return devices, whole && len(devices) == f.Eligible[node.Name]
}

// on returns the devices in the same places of another node.
func (w wholeDevices) on(s *cluster.Cluster, node *corev1.Node) (wholeDevices, error) {
	pools, err := s.Pools.For(node)
	if err != nil {
		return nil, fmt.Errorf("find the pools of node %s: %w", node.Name, err)
	}
	other := slices.Clone(w)
	for i := range other {
		other[i].id = pools[w[i].pool].Devices[w[i].index].ID
	}
	return other, nil
}

// mayFail reports whether the allocator can end with an error because of a device: its
// selectors fail, or perhaps its capacity cannot be told.
func mayFail(f *eligibility.Funnel) bool {
	for i := range f.Devices {
		if r := f.Reason(&f.Devices[i]); r != nil && (r.Code == api.SelectorError || r.Check == eligibility.Capacity) {
			return true
		}
	}
	return false
}

// isWhole reports whether a device is not shared, and stands for nothing else that a node has.
func isWhole(d *cluster.Device) bool {
	return !ptr.Deref(d.AllowMultipleAllocations, false) && len(d.NodeAllocatableResources) == 0
}

// valuesOf returns the values of a device that the constraints of a request compare, false
// if it has several of one attribute, or none.
func valuesOf(ctx context.Context, f *eligibility.Funnel, d *cluster.Device) (string, bool) {
	var all strings.Builder
	for _, c := range f.Request.Constraints {
		value, has, err := f.Checks.Attribute(ctx, d, c.Attribute)
		if err != nil || !has || selector.IsList(value) {
			return "", false
		}
		for _, text := range eligibility.ValueTexts(value) {
			all.WriteString(text)
			all.WriteByte(0)
		}
	}
	return all.String(), true
}

// anyDevice reports true: for devices of which none is in use. It reports whether a device
// counts.
func anyDevice(*wholeDevice) bool { return true }
