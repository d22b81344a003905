// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/copies"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/simulate"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// devices are those that can serve claims of a shape.
type devices struct {
	asker    *explain.Asker
	eligible map[cluster.DeviceID]bool
	// divisible is set if some of these can be shared, or are partitions, shareable only in
	// the first case.
	divisible, shareable bool
	// whole has the nodes where none of them is, see [wholeOn].
	whole map[string]wholeDevices
	// unsuitable are the nodes that a pod which tolerates nothing cannot use.
	unsuitable []*corev1.Node
	// users are the pods of a snapshot that could run elsewhere, once they were asked for.
	users   map[string][]*user
	usersIn *snapshot.Snapshot
}

// movable are the pods of a snapshot that could run elsewhere, see [movable].
func (d *devices) movable(snap *snapshot.Snapshot) map[string][]*user {
	if d.usersIn != snap {
		d.users, d.usersIn = movable(snap, d.eligible), snap
	}
	return d.users
}

// base is what shapes have in common that differ in how many devices they take: which
// devices can serve them, and which nodes are equivalent. So these are found once for a
// large cluster.
type base struct {
	*devices
	snap *snapshot.Snapshot
	// groups are equivalent nodes, the one with the most room first; nil if nodes depend
	// on each other. Rooms has for how many pods each has room.
	groups [][]*corev1.Node
	rooms  map[string]int
	// beside are the nodes that the pod cannot use.
	beside []string
	// wholeGroups are those where all devices are whole, see [wholeOn]; others are the rest,
	// all are both.
	wholeGroups [][]*corev1.Node
	others, all sample
}

// sample has the first node of some groups, and all that the pod cannot use.
type sample struct {
	groups [][]*corev1.Node
	// state is made when it is needed. Like has the names of the others of the group.
	state *simulate.State
	like  map[string][]string
}

// newBase finds what shapes have in common, from the answer for one device.
func newBase(ctx context.Context, asker *explain.Asker, s *simulate.State, asked *explain.Asked) *base {
	q := asked.Question
	b := &base{devices: devicesOfAll(asker, q), snap: s.Snap, rooms: map[string]int{}}
	if asked.Equivalent == nil || len(copies.Coupled(q)) > 0 {
		return b
	}
	room := &counted{asked: asked, most: mostSlots()}
	candidates := map[string]bool{}
	for _, node := range q.Cluster.Candidates {
		candidates[node.Name] = true
		b.rooms[node.Name] = room.roomOn(node)
	}
	b.groups = room.suitable(candidates)
	for i := range asked.Answer.Nodes {
		for _, name := range asked.Answer.Nodes[i].Names {
			if !candidates[name] {
				b.beside = append(b.beside, name)
			}
		}
	}
	b.whole = wholeOn(ctx, q, asked.Answer)
	b.all.groups = b.groups
	for _, group := range b.groups {
		if slices.ContainsFunc(group, func(node *corev1.Node) bool { return b.whole[node.Name] == nil }) {
			b.others.groups = append(b.others.groups, group)
		} else {
			b.wholeGroups = append(b.wholeGroups, group)
		}
	}
	return b
}

// devicesOfAll are those that can serve the only request of a question.
func devicesOfAll(asker *explain.Asker, q *funnel.Question) *devices {
	found := &devices{asker: asker, eligible: map[cluster.DeviceID]bool{}}
	for i := range q.Claims {
		for _, alternatives := range q.Claims[i].Funnels {
			for _, f := range alternatives {
				found.shareable = found.shareable || copies.Shareable(q, f)
				for j := range f.Devices {
					if d := &f.Devices[j]; f.Reasons[d.Device] == nil {
						found.eligible[d.ID] = true
						found.divisible = found.divisible || len(d.ConsumesCounters) > 0 || ptr.Deref(d.AllowMultipleAllocations, false)
					}
				}
			}
		}
	}
	for _, u := range q.Cluster.Unsuitable {
		found.unsuitable = append(found.unsuitable, u.Node)
	}
	return found
}

// count counts claims of a shape: whole devices by their number, others on one node of
// each group. It is nil if nothing can be said. Why none fits is said only with reason.
func (b *base) count(ctx context.Context, shape *claimShape, pod *corev1.Pod, reason bool) (*slotCount, error) {
	if b.groups == nil {
		return nil, nil
	}
	all := &slotCount{nodes: map[string]*onNode{}}
	for _, name := range b.beside {
		all.nodes[name] = &onNode{}
	}
	if b.addWhole(all, shape) {
		if known, err := b.addSample(ctx, all, &b.others, pod); err != nil || known && (all.count.AtLeast > 0 || !reason) {
			return all.exactly(), err
		}
	}
	*all = slotCount{nodes: map[string]*onNode{}}
	for _, name := range b.beside {
		all.nodes[name] = &onNode{}
	}
	if known, err := b.addSample(ctx, all, &b.all, pod); err != nil || !known {
		return nil, err
	}
	return all.exactly(), nil
}

// exactly says that no more claims fit than were counted.
func (c *slotCount) exactly() *slotCount {
	c.count.AtMost = ptr.To(c.count.AtLeast)
	return c
}

// add counts claims on a node, of which no more fit than a bound.
func (c *slotCount) add(node *corev1.Node, count, bound int) {
	c.nodes[node.Name] = &onNode{copies: count}
	c.count.AtLeast += count
	c.bound = min(c.bound+bound, copies.Unlimited)
}

// addWhole counts claims of a shape on the nodes where all devices are whole. It reports
// whether that is known.
func (b *base) addWhole(c *slotCount, shape *claimShape) bool {
	if b.whole == nil {
		return false
	}
	for _, group := range b.wholeGroups {
		for _, node := range group {
			devices := b.whole[node.Name]
			count, known := devices.slots(shape.Devices, anyDevice)
			if !known || count >= mostSlots().onNode {
				return false
			}
			bound := b.rooms[node.Name]
			if !b.shareable {
				bound = min(bound, len(devices)/shape.Devices)
			}
			c.add(node, min(count, b.rooms[node.Name]), bound)
		}
	}
	return true
}

// addSample counts claims of a pod on all nodes of a sample. It reports whether that is
// known.
func (b *base) addSample(ctx context.Context, c *slotCount, s *sample, pod *corev1.Pod) (bool, error) {
	if len(s.groups) == 0 {
		return true, nil
	}
	if s.state == nil {
		few := slices.Clone(b.unsuitable)
		s.like = map[string][]string{}
		for _, group := range s.groups {
			few = append(few, group[0])
			for _, node := range group[1:] {
				s.like[group[0].Name] = append(s.like[group[0].Name], node.Name)
			}
		}
		var err error
		if s.state, err = simulate.New(ctx, whatif.Local(b.snap, few)); err != nil {
			return false, err
		}
	}
	counted, asked, err := slotsIn(ctx, b.asker, s.state, pod, s.like)
	if err != nil || !exact(counted.count) || len(counted.bounds) > 0 || asked.Answer.Verdict == api.Error {
		return false, err
	}
	most := copies.MostOn(asked.Question)
	candidates := map[*corev1.Node]bool{}
	for _, node := range asked.Question.Cluster.Candidates {
		candidates[node] = true
	}
	for _, group := range s.groups {
		on := counted.nodes[group[0].Name]
		if on == nil || !candidates[group[0]] {
			return false, nil
		}
		bound := most(group[0])
		for _, node := range group {
			room := b.rooms[node.Name]
			c.add(node, min(on.copies, room), min(bound, room))
		}
	}
	c.stop = counted.stop
	return true, nil
}
