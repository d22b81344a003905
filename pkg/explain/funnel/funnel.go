// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package funnel

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/claimspec"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
)

// Cluster is the cluster as one explanation sees it: the nodes where the pod may
// go, those where it may not, and the pools that each can reach.
type Cluster struct {
	// Facts are those that the verdicts of Alloc are based on.
	Facts      *cluster.Cluster
	Alloc      *allocator.Allocator
	Candidates []*corev1.Node
	// Unsuitable has the first misfit of each node that the pod cannot use,
	// Misfits all of them by the node's name.
	Unsuitable []eligibility.UnsuitableNode
	Misfits    map[string][]eligibility.UnsuitableNode
	// Pools are those of each candidate, in the allocator's order.
	Pools map[string][]*cluster.NodePool
}

// Funnel accounts for every device of every pool for one request.
type Funnel struct {
	Checks  *eligibility.Checks
	Request *claimspec.Request
	// Reasons has the furthest reason over all nodes, nil for a device that is
	// eligible on at least one.
	Reasons map[*resourceapi.Device]*eligibility.Reason
	Devices []cluster.Device
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

// PoolOnNode is what a node sees of a pool, as far as it differs between nodes.
type PoolOnNode struct {
	pool *cluster.NodePool
	// Optional reports whether the node can do without node operations.
	Optional bool
}

// OnNode is what the node sees of the pool.
func OnNode(pool *cluster.NodePool, node *corev1.Node) PoolOnNode {
	return PoolOnNode{pool, slices.Contains(node.Status.DeclaredFeatures, "DRAOptionalNodeOperations")}
}

// New makes the funnel of all devices, or that of those which a certain
// node can reach.
func New(ctx context.Context, s *Cluster, only *corev1.Node, c *eligibility.Checks) (*Funnel, error) {
	f := &Funnel{
		Checks: c, Request: c.Request,
		Eligible: make(map[string]int),
		shared:   make(map[PoolOnNode]int),
		counts:   make(map[PoolOnNode]*Counts),
	}
	devices := 0
	if only == nil {
		for _, pool := range s.Facts.Pools.All() {
			devices += devicesIn(pool.Obsolete) + devicesIn(pool.Slices)
		}
	}
	f.Devices = make([]cluster.Device, 0, devices)
	f.Reasons = make(map[*resourceapi.Device]*eligibility.Reason, devices)
	if only != nil {
		f.addOnly(ctx, s, only)
		f.ClassHasDevices = f.anyOfClass()
		return f, ctx.Err()
	}
	for _, pool := range s.Facts.Pools.All() {
		f.addDevices(ctx, pool, pool.Obsolete)
		f.addDevices(ctx, pool, pool.Slices)
	}
	f.ClassHasDevices = f.anyOfClass()
	for _, node := range s.Candidates {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, pool := range s.Pools[node.Name] {
			if count := f.addPool(ctx, node, pool); count > 0 {
				f.Eligible[node.Name] += count
			}
		}
	}
	f.addUnsuitable(s)
	f.addRest()
	return f, nil
}

func devicesIn(slices []*resourceapi.ResourceSlice) int {
	count := 0
	for _, slice := range slices {
		count += len(slice.Spec.Devices)
	}
	return count
}

// addDevices lists devices and finds those of other classes, which no further
// check is made for.
func (f *Funnel) addDevices(ctx context.Context, pool *cluster.Pool, from []*resourceapi.ResourceSlice) {
	for _, slice := range from {
		for i := range slice.Spec.Devices {
			d := cluster.DeviceIn(pool, slice, i)
			f.Devices = append(f.Devices, d)
			if r := f.Checks.CheckClass(ctx, &d); r != nil && r.Code == api.ClassSelectorFalse {
				f.Reasons[d.Device] = r
			}
		}
	}
}

// note keeps the reason that got a device furthest.
func (f *Funnel) record(device *resourceapi.Device, r *eligibility.Reason) {
	have, known := f.Reasons[device]
	if !known || have != nil && have.Code != api.ClassSelectorFalse && (r == nil || r.Check > have.Check) {
		f.Reasons[device] = r
	}
}

// addPool notes what becomes of the devices that a pool has for a node, and
// returns how many of them are eligible.
func (f *Funnel) addPool(ctx context.Context, node *corev1.Node, pool *cluster.NodePool) int {
	seen := OnNode(pool, node)
	if count, known := f.shared[seen]; known {
		return count
	}
	count := 0
	eligibility.EachDevice(pool, func(d *cluster.Device, r *eligibility.Reason) {
		if f.OtherClass(d.Device) {
			return
		}
		if r == nil {
			r = f.Checks.Device(ctx, d, node)
		}
		f.record(d.Device, r)
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
func (f *Funnel) addUnsuitable(s *Cluster) {
	seen := map[*cluster.NodePool]bool{}
	for _, u := range s.Unsuitable {
		r := eligibility.UnsuitableReason(u)
		for _, pool := range s.Pools[u.Node.Name] {
			if seen[pool] {
				continue
			}
			seen[pool] = true
			eligibility.EachDevice(pool, func(d *cluster.Device, _ *eligibility.Reason) {
				if d.Slice.Spec.Pool.Generation == pool.Pool.Generation {
					f.record(d.Device, r)
				}
			})
		}
	}
}

// addRest accounts for the devices that no node can reach.
func (f *Funnel) addRest() {
	for i := range f.Devices {
		d := &f.Devices[i]
		if _, known := f.Reasons[d.Device]; known {
			continue
		}
		if slices.Contains(d.Pool.Obsolete, d.Slice) {
			f.record(d.Device, eligibility.ObsoleteReason(d.Pool))
			continue
		}
		f.record(d.Device, eligibility.Unreached(f.Checks.Snap, d))
	}
}

// anyOfClass reports whether the class selects any of the devices.
func (f *Funnel) anyOfClass() bool {
	return slices.ContainsFunc(f.Devices, func(d cluster.Device) bool { return !f.OtherClass(d.Device) })
}

// OtherClass reports whether the class does not select a device.
func (f *Funnel) OtherClass(device *resourceapi.Device) bool {
	r := f.Reasons[device]
	return r != nil && r.Code == api.ClassSelectorFalse
}

// Explanation turns the funnel into its public form.
func (f *Funnel) Explanation(pools int) api.RequestExplanation {
	r := f.Request
	out := api.RequestExplanation{
		Name: r.Name, DeviceClass: r.Class, Mode: string(r.Mode), AdminAccess: r.AdminAccess,
		Considered: len(f.Devices), Pools: pools, EligibleNodes: len(f.Eligible),
	}
	if !r.All() {
		out.Needs = r.Count
	}
	out.ExtendedResource = f.Checks.ExtendedResource
	for node, count := range f.Eligible {
		if count > out.MostOnOneNode || count == out.MostOnOneNode && naming.Compare(node, out.BestNode) < 0 {
			out.MostOnOneNode, out.BestNode = count, node
		}
	}
	groups := map[rejectionKey]*rejectionGroup{}
	var order []*rejectionGroup
	for i := range f.Devices {
		d := &f.Devices[i]
		why := f.Reasons[d.Device]
		if why == nil {
			out.Eligible++
			out.EligibleDevices = append(out.EligibleDevices, d.ID.String())
			continue
		}
		key := rejectionKey{code: why.Code, label: why.Label}
		if why.Code != api.ClassSelectorFalse {
			key.lacks = why.Lacks
			if why.Brief == "" || f.apart {
				key.requirement = why.Requirement()
			}
		}
		if why.Code != api.ClassSelectorFalse && f.apart {
			key.text, key.holder = why.Text, why.Holder()
		}
		group, ok := groups[key]
		if !ok {
			group = newRejectionGroup(why)
			groups[key] = group
			order = append(order, group)
		}
		group.add(d, why)
	}
	slices.SortStableFunc(order, func(a, b *rejectionGroup) int {
		return cmp.Or(cmp.Compare(a.check, b.check), naming.Compare(a.label, b.label), cmp.Compare(len(b.devices), len(a.devices)))
	})
	for _, group := range order {
		most := maxEvidence
		if f.apart {
			most = len(f.Devices)
		}
		out.Rejected = append(out.Rejected, group.rejection(r, most))
	}
	return out
}

// addOnly accounts for the devices that one node can reach, whatever else
// keeps the pod away from it.
func (f *Funnel) addOnly(ctx context.Context, s *Cluster, node *corev1.Node) {
	f.apart = true
	for i := range s.Pools[node.Name] {
		eligibility.EachDevice(s.Pools[node.Name][i], func(d *cluster.Device, r *eligibility.Reason) {
			if r != nil && !eligibility.DeviceReaches(d, node) {
				return
			}
			f.Devices = append(f.Devices, *d)
			if other := f.Checks.CheckClass(ctx, d); other != nil && other.Code == api.ClassSelectorFalse {
				r = other
			} else if r == nil {
				r = f.Checks.Device(ctx, d, node)
			}
			f.Reasons[d.Device] = r
			if r == nil {
				f.Eligible[node.Name]++
			}
		})
	}
}

// holders sums up the claims of allocated devices; it is nil for any others, and
// if the claims are not known.
func (g *rejectionGroup) holders() *api.Holders {
	if len(g.claims) == 0 {
		return nil
	}
	h, namespaces := &api.Holders{Claims: len(g.claims)}, naming.Tally{}
	for claim, devices := range g.claims {
		namespaces[claim.Namespace] += devices
		if len(g.claims) == 1 {
			h.Claim = naming.Qualified(claim)
		}
	}
	for _, namespace := range namespaces.Sorted() {
		h.Namespaces = append(h.Namespaces, api.NamespaceCount{Namespace: namespace, Devices: namespaces[namespace]})
	}
	return h
}
