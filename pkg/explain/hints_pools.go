// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
)

// publishingTime is how long a driver may take to publish all slices of a pool
// without anything being wrong.
const publishingTime = time.Minute

// maxHintedPools is how many pools hints are given about.
const maxHintedPools = 2

// poolHints tell of a pool that the allocator does not use why it may be so.
func (x *inquiry) poolHints() {
	if x.out.Verdict == Fits {
		return
	}
	seen := map[*allocator.Pool]bool{}
	x.eachRejected(func(d *allocator.Device, r *reason) {
		if r.code == PoolIncomplete && d.Pool.Incomplete && !seen[d.Pool] && len(seen) < maxHintedPools {
			seen[d.Pool] = true
			x.incompleteHint(d.Pool)
		}
	})
}

func (x *inquiry) incompleteHint(pool *allocator.Pool) {
	counts, holders := tally{}, map[string]string{}
	var newest time.Time
	for _, slice := range pool.Slices {
		said := fmt.Sprint(slice.Spec.Pool.ResourceSliceCount)
		if counts[said]++; counts[said] == 1 {
			holders[said] = slice.Name
		}
		if slice.CreationTimestamp.After(newest) {
			newest = slice.CreationTimestamp.Time
		}
	}
	if len(counts) > 1 {
		var said []string
		for _, count := range counts.sorted() {
			said = append(said, fmt.Sprintf("%s (%s)", count, holders[count]))
		}
		slices.SortFunc(said, naturalCompare)
		x.hint(fmt.Sprintf("the slices of pool %s disagree about how many there are: %s; that is for the maker of driver %s", pool.Name, joinAnd(said), pool.Driver),
			Evidence{Object: poolObject(pool), Path: "spec.pool.resourceSliceCount", Found: joinAnd(said), Wanted: "the same in all slices"})
		return
	}
	age := x.snap.Now().Sub(newest)
	if newest.IsZero() || age < publishingTime {
		return
	}
	x.hint(
		fmt.Sprintf("pool %s has had %d of %s for %s, which should take seconds: the log of driver %s's plugin tells whether the API server refuses a slice",
			pool.Name, len(pool.Slices), plural(int(pool.Expected), "slice"), duration.HumanDuration(age), pool.Driver),
		Evidence{
			Object: poolObject(pool), Path: "spec.pool.resourceSliceCount",
			Found: plural(len(pool.Slices), "slice"), Wanted: fmt.Sprint(pool.Expected),
		},
	)
}

// emptyPoolHint names the nodes for which a driver publishes no device.
func (x *inquiry) emptyPoolHint(p *publication) {
	devices := map[string]int{}
	of := map[string]*resourceapi.ResourceSlice{}
	for _, slice := range p.slices {
		if name := slice.Spec.NodeName; name != nil {
			devices[*name] += len(slice.Spec.Devices)
			of[*name] = slice
		}
	}
	var empty []*corev1.Node
	for _, node := range p.published {
		if of[node.Name] != nil && devices[node.Name] == 0 {
			empty = append(empty, node)
		}
	}
	if len(empty) == 0 {
		return
	}
	first := of[empty[0].Name]
	x.hint(
		fmt.Sprintf("driver %s publishes a ResourceSlice without devices for %s: if the hardware is there, it was not ready when the plugin looked for it, so see the plugin's log and restart it",
			p.driver, nodeNames(empty)),
		Evidence{Object: object("ResourceSlice", "", first.Name), Path: "spec.devices", Found: "none", Wanted: "devices"},
	)
}

// counterHint does the sum for a request that wants all devices, if they are
// more than their shared counters can serve: then it never fits.
func (x *inquiry) counterHint() {
	if x.out.Verdict != DoesNotFit {
		return
	}
	for i := range x.claims {
		for _, alternatives := range x.claims[i].funnels {
			for _, f := range alternatives {
				if f.request.all() && x.allOverdraw(f) {
					return
				}
			}
		}
	}
}

func (x *inquiry) allOverdraw(f *funnel) bool {
	wanted := map[*allocator.Pool]map[[2]string]resource.Quantity{}
	count := map[*allocator.Pool]int{}
	for i := range f.devices {
		d := &f.devices[i]
		if f.reasons[d.Device] != nil || len(d.ConsumesCounters) == 0 {
			continue
		}
		count[d.Pool]++
		for _, consumption := range d.ConsumesCounters {
			for name, counter := range consumption.Counters {
				if wanted[d.Pool] == nil {
					wanted[d.Pool] = map[[2]string]resource.Quantity{}
				}
				key := [2]string{consumption.CounterSet, name}
				sum := wanted[d.Pool][key].DeepCopy()
				sum.Add(counter.Value)
				wanted[d.Pool][key] = sum
			}
		}
	}
	for _, pool := range x.site.alloc.Pools() {
		for _, use := range x.site.alloc.CountersOf(pool) {
			sum, ok := wanted[pool][[2]string{use.CounterSet, use.Counter}]
			if !ok || sum.Cmp(use.Left) <= 0 {
				continue
			}
			x.hint(
				fmt.Sprintf("all %s of pool %s together need %s of counter %s of %s, of which %s are left: devices that overlap cannot all be had",
					plural(count[pool], "device"), pool.Name, sum.String(), use.Counter, use.CounterSet, use.Left.String()),
				Evidence{Object: poolObject(pool), Path: counterPath(use), Found: use.Left.String() + " left", Wanted: sum.String()},
			)
			return true
		}
	}
	return false
}
