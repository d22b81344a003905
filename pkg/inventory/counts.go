// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// deviceCounter counts the devices of pools, classes and nodes by state. The counts of a pool
// take in what the cluster itself reports about it.
type deviceCounter struct {
	cluster  *cluster.Cluster
	eligible *eligibility.Devices
	notRead  notRead
	plain    *plainNodes
	// statuses has what the cluster itself says about pools.
	statuses func() map[snapshot.PoolID]poolStatus
	// gone has, by pool, the devices of claims that no slice has any more.
	gone func() map[snapshot.PoolID]int
	// unpublished has the devices themselves.
	unpublished func() []api.Device
}

func newDeviceCounter(c *cluster.Cluster) *deviceCounter {
	n := &deviceCounter{cluster: c, eligible: eligibility.NewDevices(c), notRead: notReadIn(c), plain: &plainNodes{facts: c}}
	n.statuses = sync.OnceValue(func() map[snapshot.PoolID]poolStatus { return listStatuses(c.Snapshot) })
	n.gone = sync.OnceValue(func() map[snapshot.PoolID]int { return countGone(c) })
	n.unpublished = sync.OnceValue(func() []api.Device { return listUnpublished(n.eligible) })
	return n
}

// tally counts the visible devices of a pool.
type tally struct {
	by        map[api.DeviceState]int
	total     int
	unhealthy []api.UnhealthyDevice
	// tainted have a taint against scheduling, whatever their state; taintedInUse are the
	// allocated ones among them.
	tainted, taintedInUse int
	// available are available, and some pod without conditions can use their node.
	available int
	// shareableInUse can be shared, and claims have them, however they do.
	shareableInUse int
	// Of the devices that may be in another state, some can be shared, and some
	// use counters, so that others may block them.
	openShareable, openPartitions int
}

// inUse counts the devices that claims have.
func (t *tally) inUse() int { return t.by[api.DeviceStateAllocated] + t.by[api.DeviceStateShared] }

// open counts the devices that claims which were not read may have.
func (t *tally) open() int {
	return t.by[api.DeviceStateFree] + t.by[api.DeviceStateTainted] + t.by[api.DeviceStateUnusable]
}

func tallyOf(eligible *eligibility.Devices, plain *plainNodes, pool *cluster.Pool) tally {
	t := tally{by: map[api.DeviceState]int{}}
	for _, d := range devicesOf(pool) {
		state, _ := deviceState(eligible, &d)
		t.by[state]++
		t.total++
		if health, message := healthOf(eligible.Facts, &d); health == string(corev1.ResourceHealthStatusUnhealthy) {
			t.unhealthy = append(t.unhealthy, api.UnhealthyDevice{Name: d.ID.Device, Message: message})
		}
		if state == api.DeviceStateFree && plain.reach(&d) {
			t.available++
		}
		used := state == api.DeviceStateAllocated || state == api.DeviceStateShared
		if keepsAway(&d) {
			t.tainted++
			if used {
				t.taintedInUse++
			}
		}
		shareable := ptr.Deref(d.AllowMultipleAllocations, false)
		if used && shareable {
			t.shareableInUse++
		}
		if used || state == api.DeviceStateBlocked {
			continue
		}
		if shareable {
			t.openShareable++
		}
		if len(d.ConsumesCounters) > 0 {
			t.openPartitions++
		}
	}
	return t
}

// keepsAway reports whether a device has a taint against scheduling.
func keepsAway(d *cluster.Device) bool {
	for _, taint := range d.Taints {
		if taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute {
			return true
		}
	}
	return false
}

// count sums up a pool: the objects that were read, and the cluster's own report. Uncertain
// counts get a bound.
func count(notRead notRead, t *tally, known known) (api.DeviceCounts, api.CountSource) {
	c := api.DeviceCounts{
		Total: t.total, Free: t.by[api.DeviceStateFree], Allocated: t.by[api.DeviceStateAllocated], Shared: t.by[api.DeviceStateShared],
		Blocked: t.by[api.DeviceStateBlocked], Tainted: t.by[api.DeviceStateTainted], Unusable: t.by[api.DeviceStateUnusable], Unhealthy: len(t.unhealthy),
		TaintedInUse: t.taintedInUse, Available: t.available,
	}
	from := api.CountsFromClaims
	if notRead.claims {
		from = api.CountsFromVisibleClaims
		if known.claims {
			from = api.CountsFromPoolStatus
		}
		boundByClaims(&c, t, known)
	}
	if notRead.rules && !known.rules && c.Free > 0 {
		setBound(&c, "free", api.BoundAtMost)
		setBound(&c, "tainted", api.BoundAtLeast)
	}
	if (notRead.claims || notRead.pods) && c.Unhealthy < c.Total {
		setBound(&c, "unhealthy", api.BoundAtLeast)
	}
	hidden := notRead.claims && (!known.claims || known.hidden > 0)
	if hidden && t.tainted > t.taintedInUse || notRead.rules && !known.rules && t.inUse() > t.taintedInUse {
		setBound(&c, "taintedInUse", api.BoundAtLeast)
	}
	c.Available = min(c.Available, c.Free)
	if _, c.FreeIsUpperBound = c.Bounds["free"]; c.FreeIsUpperBound && c.Available > 0 {
		setBound(&c, "available", api.BoundAtMost)
	}
	return c, from
}

// boundByClaims corrects the counts by how many devices the claims that were not read have, if
// the cluster reports. What stays open are bounds.
func boundByClaims(c *api.DeviceCounts, t *tally, known known) {
	left := t.open()
	if known.claims {
		left -= known.hidden
		if t.openShareable == 0 || known.split {
			c.Shared = t.by[api.DeviceStateShared] + known.hiddenShared
			c.Allocated = t.by[api.DeviceStateAllocated] + known.hidden - known.hiddenShared
		}
	}
	if left == t.open() && known.claims || t.open() == 0 {
		// No claim that was not read has a device, or none is available.
		return
	}
	kinds := 0
	for _, count := range []*int{&c.Free, &c.Tainted, &c.Unusable} {
		if *count > 0 {
			kinds++
		}
		*count = min(*count, left)
	}
	open := t.openPartitions > 0
	if !known.claims {
		setBound(c, "allocated", api.BoundAtLeast)
	}
	if t.openShareable > 0 && !known.split {
		setBound(c, "allocated", api.BoundAtLeast)
		setBound(c, "shared", api.BoundAtLeast)
	}
	if open && left > 0 {
		setBound(c, "blocked", api.BoundAtLeast)
	}
	if !known.claims || open || kinds > 1 {
		for name, count := range map[string]int{"free": c.Free, "tainted": c.Tainted, "unusable": c.Unusable} {
			if count > 0 {
				setBound(c, name, api.BoundAtMost)
			}
		}
	}
}

// setBound notes that a count is not certain.
func setBound(c *api.DeviceCounts, name string, bound api.Bound) {
	if c.Bounds == nil {
		c.Bounds = map[string]api.Bound{}
	}
	if other, ok := c.Bounds[name]; ok && other != bound {
		bound = api.BoundUnknown
	}
	c.Bounds[name] = bound
}

// DeviceStates returns all states of devices in slices, starting with the available ones.
func DeviceStates() []api.DeviceState {
	return []api.DeviceState{
		api.DeviceStateFree, api.DeviceStateAllocated, api.DeviceStateShared, api.DeviceStateBlocked, api.DeviceStateTainted, api.DeviceStateUnusable,
	}
}

// CountOf returns how many devices are in a state, 0 for a state that is not counted.
func CountOf(c api.DeviceCounts, state api.DeviceState) int { return *countOf(&c, state) }

// AddCounts adds up counts, without their bounds.
func AddCounts(c *api.DeviceCounts, more api.DeviceCounts) {
	c.Total += more.Total
	c.Free += more.Free
	c.Allocated += more.Allocated
	c.Shared += more.Shared
	c.Blocked += more.Blocked
	c.Tainted += more.Tainted
	c.Unusable += more.Unusable
	c.Unhealthy += more.Unhealthy
	c.Gone += more.Gone
	c.TaintedInUse += more.TaintedInUse
	c.Available += more.Available
	c.FreeIsUpperBound = c.FreeIsUpperBound || more.FreeIsUpperBound
}

// countDevice counts one more device, and tells its state.
func (n *deviceCounter) countDevice(c *api.DeviceCounts, d *cluster.Device) api.DeviceState {
	state, _ := deviceState(n.eligible, d)
	c.Total++
	*countOf(c, state)++
	switch {
	case taintedInUse(n.cluster, d, state):
		c.TaintedInUse++
	case state == api.DeviceStateFree && n.plain.reach(d):
		c.Available++
	}
	return state
}

// taintedInUse reports whether claims have a device that nobody else gets next.
func taintedInUse(facts *cluster.Cluster, d *cluster.Device, state api.DeviceState) bool {
	return (state == api.DeviceStateAllocated || state == api.DeviceStateShared) && facts.Gates.Enabled(cluster.GateDeviceTaints) && keepsAway(d)
}

// countOf returns the count of the devices in a state. What no state is counts nowhere.
func countOf(c *api.DeviceCounts, state api.DeviceState) *int {
	switch state {
	case api.DeviceStateFree:
		return &c.Free
	case api.DeviceStateAllocated:
		return &c.Allocated
	case api.DeviceStateShared:
		return &c.Shared
	case api.DeviceStateBlocked:
		return &c.Blocked
	case api.DeviceStateTainted:
		return &c.Tainted
	case api.DeviceStateUnusable:
		return &c.Unusable
	case api.DeviceStateGone:
		return &c.Gone
	case api.DeviceStateUnpublished:
	}
	return new(int)
}

// addGone counts the devices that claims have and no slice has any more, of those that are
// meant.
func (n *deviceCounter) addGone(c *api.DeviceCounts, meant func(*api.Device) bool) {
	devices := n.unpublished()
	for i := range devices {
		if devices[i].State == api.DeviceStateGone && meant(&devices[i]) {
			c.Gone++
		}
	}
}

func devicesOf(pool *cluster.Pool) []cluster.Device {
	count := 0
	for _, slice := range pool.Slices {
		count += len(slice.Spec.Devices)
	}
	devices := make([]cluster.Device, 0, count)
	for _, slice := range pool.Slices {
		for i := range slice.Spec.Devices {
			devices = append(devices, cluster.DeviceIn(pool, slice, i))
		}
	}
	return devices
}

// poolStatus is the report of a ResourcePoolStatusRequest about one pool.
type poolStatus struct {
	*resourcev1alpha3.PoolStatus
	request *resourcev1alpha3.ResourcePoolStatusRequest
}

// listStatuses finds the newest status of each pool.
func listStatuses(snap *snapshot.Snapshot) map[snapshot.PoolID]poolStatus {
	statuses := map[snapshot.PoolID]poolStatus{}
	for _, request := range snap.PoolStatuses {
		if request.Status == nil {
			continue
		}
		at := snapshot.AnsweredAt(request)
		for i := range request.Status.Pools {
			status := &request.Status.Pools[i]
			key := snapshot.PoolID{Driver: status.Driver, Name: status.PoolName}
			if other, ok := statuses[key]; ok {
				if before := snapshot.AnsweredAt(other.request); at.Before(&before) {
					continue
				}
			}
			statuses[key] = poolStatus{status, request}
		}
	}
	return statuses
}

// countGone counts the devices that claims have and no slice has any more.
func countGone(facts *cluster.Cluster) map[snapshot.PoolID]int {
	seen := map[cluster.DeviceID]bool{}
	gone := map[snapshot.PoolID]int{}
	for _, claim := range facts.Snapshot.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			id := deviceID(result)
			if ptr.Deref(result.AdminAccess, false) || seen[id] || facts.Pools.Device(id) != nil {
				continue
			}
			seen[id] = true
			gone[snapshot.PoolID{Driver: id.Driver, Name: id.Pool}]++
		}
	}
	return gone
}

// known has the facts that only the status of a pool has.
type known struct {
	// claims is true if hidden is how many devices the claims that were not read have. If split
	// is true, too, hiddenShared is how many of these are shared.
	claims, split        bool
	hidden, hiddenShared int
	// allHolders is true if no claim that was not read has a device that nobody seems to
	// have.
	allHolders bool
	// rules is true if no rule that was not read taints a device.
	rules bool
	// consumed is the consumption of all claims, by capacity; allocatable is how many more
	// partitions of a kind have their counters.
	consumed    map[string]resource.Quantity
	allocatable map[partitionKind]int
	// differences are contradictions.
	differences []string
}

// partitionKind has the common properties of devices of one kind.
type partitionKind struct{ attribute, value string }

// plainNodes are the nodes on which a pod without tolerations and other conditions
// can be placed. It is safe for concurrent use.
type plainNodes struct {
	facts *cluster.Cluster

	mu sync.Mutex
	// all is nil until it is asked for.
	all    []*corev1.Node
	byName map[string]bool
	// matched has the selectors that were asked about.
	matched map[*corev1.NodeSelector]bool
}

// reach reports whether a device can be used on any of them. A node that is not
// known counts as one.
func (p *plainNodes) reach(d *cluster.Device) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list()
	switch name, all, selector := d.NodeSelection(); {
	case ptr.Deref(name, "") != "":
		plain, known := p.byName[*name]
		return plain || !known
	case ptr.Deref(all, false):
		return len(p.all) > 0
	case selector != nil:
		matches, known := p.matched[selector]
		if !known {
			parsed, err := nodeaffinity.NewNodeSelector(selector)
			matches = err == nil && slices.ContainsFunc(p.all, parsed.Match)
			p.matched[selector] = matches
		}
		return matches
	default:
		return false
	}
}

func (p *plainNodes) list() {
	if p.byName != nil {
		return
	}
	p.byName, p.matched = map[string]bool{}, map[*corev1.NodeSelector]bool{}
	nodes, _ := p.facts.Nodes.All()
	pod := &corev1.Pod{}
	for _, node := range nodes {
		plain := len(p.facts.Nodes.Fit(pod, node)) == 0
		if p.byName[node.Name] = plain; plain {
			p.all = append(p.all, node)
		}
	}
}
