// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// PodReach has the nodes as one explanation sees them: where the pod may go, where it may not,
// and the pools that each node can reach.
type PodReach struct {
	Candidates []*corev1.Node
	// Unsuitable has the first misfit of each node that the pod cannot use,
	// Misfits all of them by the node's name.
	Unsuitable []UnsuitableNode
	Misfits    map[string][]UnsuitableNode
	// Pools are the pools of each candidate, in the allocator's order.
	Pools map[string][]*cluster.NodePool
}

// Funnel accounts for every device of every pool for one request.
type Funnel struct {
	Checks  *Checks
	Request *cluster.Request
	// Devices are not for changing: other funnels have them, too.
	Devices []cluster.Device
	// reasons has the furthest reason over all nodes.
	reasons cluster.DeviceTable[*Reason]
	// Eligible counts the eligible devices by node.
	Eligible map[string]int
	// shared counts the eligible devices of the pools that look the same to
	// several nodes, and counts has what else is known about them.
	shared map[PoolOnNode]int
	counts map[PoolOnNode]*Counts
	// apart is set if devices are listed together only if the same fact holds
	// for them.
	apart bool
	// ClassHasDevices reports whether any of the devices is of the class.
	ClassHasDevices bool
}

// PoolOnNode has the parts of a pool that differ between nodes.
type PoolOnNode struct {
	pool *cluster.NodePool
	// Optional reports whether the node can do without node operations.
	Optional bool
}

// OnNode returns what the node sees of the pool.
func OnNode(pool *cluster.NodePool, node *corev1.Node) PoolOnNode {
	return PoolOnNode{pool, slices.Contains(node.Status.DeclaredFeatures, "DRAOptionalNodeOperations")}
}

// newFunnel makes a funnel that has no devices yet.
func newFunnel(c *Checks) *Funnel {
	return &Funnel{
		Checks: c, Request: c.Request,
		Eligible: make(map[string]int),
		shared:   make(map[PoolOnNode]int),
		counts:   make(map[PoolOnNode]*Counts),
	}
}

// addAll adds all devices, and notes which of them are of another class.
func (f *Funnel) addAll(ctx context.Context) {
	f.Devices = f.Checks.Cluster.Pools.EveryDevice()
	f.findOtherClasses(ctx)
	f.ClassHasDevices = f.anyOfClass()
}

// addNodes notes what becomes of all devices on the nodes of a cluster.
func (f *Funnel) addNodes(ctx context.Context, s *PodReach) error {
	for _, node := range s.Candidates {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, pool := range s.Pools[node.Name] {
			if count := f.addPool(ctx, node, pool); count > 0 {
				f.Eligible[node.Name] += count
			}
		}
	}
	f.addUnsuitable(s)
	f.addRest()
	return nil
}

// findOtherClasses finds the devices of other classes, which no further check is made for.
func (f *Funnel) findOtherClasses(ctx context.Context) {
	var r *Reason
	together := false
	for i := range f.Devices {
		d := &f.Devices[i]
		begins := i == 0 || d.Slice != f.Devices[i-1].Slice
		if begins {
			together = f.Checks.ClassTakesAllOrNone(d.Slice)
		}
		if begins || !together {
			r = f.Checks.CheckClass(ctx, d)
		}
		if r != nil && r.Code == api.ClassSelectorFalse {
			f.reasons.Set(d, r)
		}
	}
}

// record keeps the reason that got a device furthest.
func (f *Funnel) record(d *cluster.Device, r *Reason) {
	have, known := f.reasons.Get(d)
	if !known || have != nil && have.Code != api.ClassSelectorFalse && (r == nil || r.Check > have.Check) {
		f.reasons.Set(d, r)
	}
}

// Reason returns the furthest reason against a device over all nodes, nil if it is eligible
// on at least one.
func (f *Funnel) Reason(d *cluster.Device) *Reason {
	r, _ := f.reasons.Get(d)
	return r
}

// addPool notes what becomes of the devices that a pool has for a node, and
// returns how many of them are eligible.
func (f *Funnel) addPool(ctx context.Context, node *corev1.Node, pool *cluster.NodePool) int {
	seen := OnNode(pool, node)
	if count, known := f.shared[seen]; known {
		return count
	}
	count := 0
	EachDevice(pool, func(d *cluster.Device, r *Reason) {
		if f.OtherClass(d) {
			return
		}
		if r == nil {
			r = f.Checks.Device(ctx, d, node)
		}
		f.record(d, r)
		if r == nil {
			count++
		}
	})
	if !pool.Local {
		f.shared[seen] = count
	}
	return count
}

// addUnsuitable notes the nodes that the pod cannot use for the devices that
// they have, of a device for several of them the first.
func (f *Funnel) addUnsuitable(s *PodReach) {
	seen := map[*cluster.NodePool]bool{}
	for _, u := range s.Unsuitable {
		r := UnsuitableReason(u)
		for _, pool := range s.Pools[u.Node.Name] {
			if seen[pool] {
				continue
			}
			seen[pool] = true
			EachDevice(pool, func(d *cluster.Device, _ *Reason) {
				if d.Slice.Spec.Pool.Generation == pool.Pool.Generation {
					f.record(d, r)
				}
			})
		}
	}
}

// addRest accounts for the devices that no node can reach.
func (f *Funnel) addRest() {
	for i := range f.Devices {
		d := &f.Devices[i]
		if _, known := f.reasons.Get(d); known {
			continue
		}
		if slices.Contains(d.Pool.Obsolete, d.Slice) {
			f.record(d, ObsoleteReason(d.Pool))
			continue
		}
		f.record(d, Unreached(f.Checks.Cluster.Snapshot, d))
	}
}

// anyOfClass reports whether the class selects any of the devices.
func (f *Funnel) anyOfClass() bool {
	return slices.ContainsFunc(f.Devices, func(d cluster.Device) bool { return !f.OtherClass(&d) })
}

// OtherClass reports whether the class does not select a device.
func (f *Funnel) OtherClass(d *cluster.Device) bool {
	r := f.Reason(d)
	return r != nil && r.Code == api.ClassSelectorFalse
}

// addOnly accounts for the devices that one node can reach, whatever else
// keeps the pod away from it.
func (f *Funnel) addOnly(ctx context.Context, s *PodReach, node *corev1.Node) {
	f.apart = true
	for i := range s.Pools[node.Name] {
		EachDevice(s.Pools[node.Name][i], func(d *cluster.Device, r *Reason) {
			if r != nil && !DeviceReaches(d, node) {
				return
			}
			f.Devices = append(f.Devices, *d)
			if other := f.Checks.CheckClass(ctx, d); other != nil && other.Code == api.ClassSelectorFalse {
				r = other
			} else if r == nil {
				r = f.Checks.Device(ctx, d, node)
			}
			f.reasons.Set(d, r)
			if r == nil {
				f.Eligible[node.Name]++
			}
		})
	}
}

// Count counts the devices that a node can reach.
func (f *Funnel) Count(ctx context.Context, pools []*cluster.NodePool, node *corev1.Node) *Counts {
	c := newCounts()
	for _, pool := range pools {
		if pool.Local {
			f.countPool(ctx, c, pool, node)
			continue
		}
		seen := OnNode(pool, node)
		shared, known := f.counts[seen]
		if !known {
			shared = newCounts()
			f.countPool(ctx, shared, pool, node)
			f.counts[seen] = shared
		}
		c.add(shared)
	}
	return c
}

func (f *Funnel) countPool(ctx context.Context, c *Counts, pool *cluster.NodePool, node *corev1.Node) {
	EachDevice(pool, func(d *cluster.Device, kept *Reason) {
		c.Reachable++
		if kept != nil {
			if f.OtherClass(d) {
				c.OtherClass++
			} else {
				c.record(kept)
			}
			return
		}
		r := f.Checks.Device(ctx, d, node)
		if r.Matches() {
			c.Matching++
		}
		if r != nil && (!f.Request.All() || r.Matches()) {
			c.record(r)
		}
	})
}

// NoneMatch returns the answer for a node that has nothing of the kind.
func (f *Funnel) NoneMatch(reachable, otherClass int) (api.Code, string) {
	switch {
	case reachable == 0:
		return api.NodeNotReachable, "no devices of class " + f.Request.Class
	case otherClass == reachable && f.ClassHasDevices:
		return api.NodeNotReachable, "no devices of class " + f.Request.Class
	case otherClass == reachable:
		return api.ClassSelectorFalse, "no devices of class " + f.Request.Class
	default:
		return api.RequestSelectorFalse, fmt.Sprintf("no device that matches request %s", f.Request.Name)
	}
}

// Counts counts the devices that a node can reach for one request.
type Counts struct {
	Reachable, OtherClass, Matching int
	// Usable counts devices that would be available if others were released or
	// a taint were removed.
	Usable   int
	Codes    map[api.Code]int
	Lacks    english.Tally
	Furthest Check
}

func (c *Counts) record(r *Reason) {
	if r.Code == api.ClassSelectorFalse {
		c.OtherClass++
		return
	}
	switch r.Code {
	case api.DeviceAllocated, api.CountersExhausted, api.CompatibilityGroupConflict, api.DeviceTainted:
		c.Usable++
	case api.CapacityInsufficient:
		if r.Check == CapacityLeft {
			c.Usable++
		}
	default:
	}
	c.Codes[r.Code]++
	c.Lacks[lack(r)]++
	c.Furthest = max(c.Furthest, r.Check)
}

func (c *Counts) add(other *Counts) {
	c.Reachable += other.Reachable
	c.OtherClass += other.OtherClass
	c.Matching += other.Matching
	c.Usable += other.Usable
	for code, count := range other.Codes {
		c.Codes[code] += count
	}
	for lack, count := range other.Lacks {
		c.Lacks[lack] += count
	}
	c.Furthest = max(c.Furthest, other.Furthest)
}

// lack describes, after a number, the shortcoming of devices.
func lack(r *Reason) string {
	if r.Lack != "" {
		return r.Lack
	}
	switch r.Code {
	case api.DeviceAllocated:
		return "allocated"
	case api.DeviceTainted:
		return "tainted"
	case api.RequestSelectorFalse:
		return "not matching " + SelectorNoun(r.Label)
	case api.SelectorError:
		return "for which the selector fails"
	case api.CountersExhausted:
		return "without enough counters available"
	case api.CompatibilityGroupConflict:
		return "of an incompatible group"
	case api.PoolIncomplete:
		return "in an incomplete pool"
	case api.PoolInvalid:
		return "in an invalid pool"
	case api.PoolObsolete:
		return "of an older generation of the pool"
	case api.FeatureDisabled, api.BindingConditionsUnsupported:
		return "needing a feature that is off"
	case api.NodeOperationUnsupported:
		return "that the node is too old for"
	default:
		return r.Label
	}
}

func newCounts() *Counts { return &Counts{Codes: map[api.Code]int{}, Lacks: english.Tally{}} }

// SelectorNoun names a selector in a sentence by its label.
func SelectorNoun(label string) string {
	if label == "selector" {
		return "the selector"
	}
	return label
}
