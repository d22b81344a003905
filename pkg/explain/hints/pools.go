// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// publishingTime is how long a driver may take to publish all slices of a pool
// without anything being wrong.
const publishingTime = time.Minute

// maxHintedPools limits how many pools hints are given about.
const maxHintedPools = 2

// poolHints tell of a pool that the allocator does not use why it may be so.
func (h *finder) poolHints() {
	if h.out.Verdict == api.Fits {
		return
	}
	seen := map[*cluster.Pool]bool{}
	eachRejected(h.Question, func(d *cluster.Device, r *eligibility.Reason) {
		if r.Code == api.PoolIncomplete && d.Pool.Incomplete && !seen[d.Pool] && len(seen) < maxHintedPools {
			seen[d.Pool] = true
			h.incompleteHint(d.Pool)
		}
	})
}

func (h *finder) incompleteHint(pool *cluster.Pool) {
	counts, holders := english.Tally{}, map[string]string{}
	var newest time.Time
	asMade := true
	for _, slice := range pool.Slices {
		said := fmt.Sprint(slice.Spec.Pool.ResourceSliceCount)
		if counts[said]++; counts[said] == 1 {
			holders[said] = slice.Name
		}
		// Nothing tells when a slice was changed.
		asMade = asMade && slice.Generation == 1
		if slice.CreationTimestamp.After(newest) {
			newest = slice.CreationTimestamp.Time
		}
	}
	if len(counts) > 1 {
		var said []string
		for _, count := range counts.Sorted() {
			said = append(said, fmt.Sprintf("%s (%s)", count, holders[count]))
		}
		slices.SortFunc(said, english.CompareNames)
		h.hint(fmt.Sprintf("the slices of pool %s disagree about how many there are: %s; that is for the maker of driver %s", pool.Name, english.JoinAnd(said), pool.Driver),
			api.Evidence{Object: cluster.PoolObject(pool), Path: "spec.pool.resourceSliceCount", Found: english.JoinAnd(said), Required: "the same in all slices"})
		return
	}
	if int64(len(pool.Slices)) > pool.Expected {
		h.hint(fmt.Sprintf("pool %s has %s; the plugin of driver %s deletes slices that it does not publish itself while it runs", pool.Name, pool.WhyIncomplete(), pool.Driver),
			api.Evidence{
				Object: cluster.PoolObject(pool), Path: "spec.pool.resourceSliceCount",
				Found: english.Count(len(pool.Slices), "slice"), Required: fmt.Sprint(pool.Expected),
			})
		return
	}
	age := h.Cluster.Snapshot.Now().Sub(newest)
	if newest.IsZero() || age < publishingTime {
		return
	}
	missing := "; publishing them takes seconds: if one is still missing then,"
	if asMade {
		missing = fmt.Sprintf(", the newest %s old, although publishing them takes seconds:", duration.HumanDuration(age))
	}
	h.hint(
		fmt.Sprintf("pool %s has %d of %s%s the log of driver %s's plugin shows whether the API server refuses a slice",
			pool.Name, len(pool.Slices), english.Count(int(pool.Expected), "slice"), missing, pool.Driver),
		api.Evidence{
			Object: cluster.PoolObject(pool), Path: "spec.pool.resourceSliceCount",
			Found: english.Count(len(pool.Slices), "slice"), Required: fmt.Sprint(pool.Expected),
		},
	)
}

// emptyPoolHint names the nodes for which a driver publishes no device.
func (h *finder) emptyPoolHint(p *publication) {
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
	h.hint(
		fmt.Sprintf("driver %s publishes a ResourceSlice without devices for %s: if the hardware is there, it was not ready when the plugin looked for it, so see the plugin's log and restart it",
			p.driver, target.NodeNames(empty)),
		api.Evidence{Object: api.Ref("ResourceSlice", "", first.Name), Path: "spec.devices", Found: "none", Required: "devices"},
	)
}

// counterHint does the sum for a request that wants all devices, if they are
// more than their shared counters can serve: then it never fits.
func (h *finder) counterHint() {
	if h.out.Verdict != api.DoesNotFit {
		return
	}
	for i := range h.Claims {
		for _, alternatives := range h.Claims[i].Funnels {
			for _, f := range alternatives {
				if f.Request.All() && !f.Request.AdminAccess && h.allOverdraw(f) {
					return
				}
			}
		}
	}
}

// allOverdraw adds a hint if the counters of every node with devices for a request allow
// fewer of them than it needs. It reports whether it did.
func (h *finder) allOverdraw(f *eligibility.Funnel) bool {
	var first *overdraft
	on, likewise := "", 0
	known := map[*cluster.NodePool]*overdraft{}
	left := map[*cluster.Pool][]cluster.CounterUse{}
	for _, node := range h.Reach.Candidates {
		var worst *overdraft
		for _, pool := range h.Reach.Pools[node.Name] {
			if _, done := known[pool]; !done {
				if _, done := left[pool.Pool]; !done {
					left[pool.Pool] = h.Cluster.Partitions.Counters(pool.Pool)
				}
				known[pool] = findOverdraft(f, pool, left[pool.Pool])
			}
			if worst == nil {
				worst = known[pool]
			}
		}
		switch {
		case worst == nil && f.Eligible[node.Name] > 0:
			return false
		case worst == nil:
		case first == nil:
			first, on = worst, node.Name
		default:
			likewise++
		}
	}
	if first == nil {
		return false
	}
	where := ""
	if len(h.Reach.Candidates) > 1 {
		where = " for " + on
	}
	text := fmt.Sprintf("all %s of pool %s%s together need %s of counter %s of %s, of which %s are available: devices that overlap cannot all be allocated",
		english.Count(first.devices, "device"), first.pool.Name, where, selector.QuantityText(first.wanted), first.use.Counter, first.use.CounterSet, selector.QuantityText(first.use.Left))
	if likewise > 0 {
		text += fmt.Sprintf("; likewise for %s", english.Count(likewise, "more node"))
	}
	h.hint(text, api.Evidence{Object: cluster.PoolObject(first.pool), Path: cluster.CounterPath(first.use), Found: first.use.Left.String() + " left", Required: first.wanted.String()})
	return true
}

// overdraft is a counter of which devices together need more than is left.
type overdraft struct {
	pool    *cluster.Pool
	devices int
	use     cluster.CounterUse
	wanted  resource.Quantity
}

// findOverdraft finds a counter that a request for all devices overdraws in what a
// node sees of a pool. Devices that are shared take their counters but once.
func findOverdraft(f *eligibility.Funnel, pool *cluster.NodePool, left []cluster.CounterUse) *overdraft {
	wanted := map[[2]string]resource.Quantity{}
	count := 0
	for i := range pool.Devices {
		d := &pool.Devices[i]
		if f.Reason(d) != nil || len(d.ConsumesCounters) == 0 || ptr.Deref(d.AllowMultipleAllocations, false) {
			continue
		}
		count++
		for _, consumption := range d.ConsumesCounters {
			for name, counter := range consumption.Counters {
				key := [2]string{consumption.CounterSet, name}
				sum := wanted[key].DeepCopy()
				sum.Add(counter.Value)
				wanted[key] = sum
			}
		}
	}
	for _, use := range left {
		if sum := wanted[[2]string{use.CounterSet, use.Counter}]; sum.Cmp(use.Left) > 0 {
			return &overdraft{pool.Pool, count, use, sum}
		}
	}
	return nil
}

// movedHint notes allocated devices that no ResourceSlice has and that are ready
// all the same: a driver of networks moves an interface into the pod and no
// longer sees it on the node (KEP-4817). Nothing has to be done about them.
func (h *finder) movedHint() {
	if h.Cluster.Snapshot.Gap(snapshot.ResourceSlices) != nil {
		return
	}
	for i := range h.PodClaims {
		claim := h.PodClaims[i].Claim
		if claim == nil || claim.Status.Allocation == nil {
			continue
		}
		results := claim.Status.Allocation.Devices.Results
		var moved []string
		var first api.Evidence
		driver, where := "", ""
		for j := range results {
			result := &results[j]
			if h.Cluster.Pools.Device(lifecycle.DeviceID(result)) != nil || !cluster.DeviceReady(claim, result) {
				continue
			}
			if moved = append(moved, lifecycle.DeviceName(result)); len(moved) > 1 {
				continue
			}
			driver = result.Driver
			first = api.Evidence{
				Object: api.RefTo(api.KindClaim, claim), Path: fmt.Sprintf("status.devices[device=%s].conditions[type=Ready].status", result.Device), Found: "True",
			}
			if data := cluster.DeviceStatus(claim, result).NetworkData; data != nil && data.InterfaceName != "" {
				where = fmt.Sprintf(" (interface %s of the pod)", data.InterfaceName)
			}
		}
		if len(moved) == 0 {
			continue
		}
		noun, verb := "device", "is"
		if len(moved) > 1 {
			noun, verb, where = "devices", "are", ""
		}
		h.hint(fmt.Sprintf("%s %s of claim %s %s in use and healthy%s: driver %s no longer publishes %s in a ResourceSlice, and the status of the claim says Ready",
			noun, english.Sample(moved, maxNamed), claim.Name, verb, where, driver, map[bool]string{true: "it", false: "them"}[len(moved) == 1]), first)
	}
}

// publication is a driver's publication for the nodes that the pod could use.
type publication struct {
	driver string
	slices []*resourceapi.ResourceSlice
	// published are the candidates that a slice of the driver is for, missing
	// the others.
	published, missing []*corev1.Node
}

func publicationOf(q *eligibility.Question, driver string) publication {
	p := publication{driver: driver}
	own := map[string]bool{}
	for _, slice := range q.Cluster.Snapshot.Slices {
		if slice.Spec.Driver != driver {
			continue
		}
		p.slices = append(p.slices, slice)
		if slice.Spec.NodeName != nil {
			own[*slice.Spec.NodeName] = true
		}
	}
	reached := func(pool *cluster.NodePool) bool { return pool.Pool.Driver == driver }
	for _, node := range q.Reach.Candidates {
		if own[node.Name] || slices.ContainsFunc(q.Reach.Pools[node.Name], reached) {
			p.published = append(p.published, node)
		} else {
			p.missing = append(p.missing, node)
		}
	}
	return p
}

// maxNamed limits how many names a hint has.
const maxNamed = 3
