// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// base has the common facts of shapes that only differ in their number of devices: which
// devices can serve them, and which nodes are equivalent. So these are found once for a
// large cluster.
type base struct {
	*devices
	snap *snapshot.Snapshot
	// groups are equivalent nodes, the one with the most room first; nil if nodes depend
	// on each other. Rooms has for how many pods each node has room.
	groups [][]*corev1.Node
	rooms  map[string]int
	// wholeGroups are the groups where all devices are whole, see [wholeOn]; others are the
	// rest, all are both.
	wholeGroups [][]*corev1.Node
	others, all sample
}

// newBase finds what shapes have in common, from the answer for one device. That is about the
// first nodes of a sample of the cluster, or about all of it for nil. Rooms has all
// nodes of the cluster.
func newBase(ctx context.Context, asker *explain.Asker, s *cluster.Cluster, rooms map[string]int, sampled *sample, asked *explain.Asked) (*base, error) {
	q := asked.Question
	b := &base{devices: &devices{asker: asker, eligible: map[cluster.DeviceID]bool{}, pools: map[snapshot.PoolID]bool{}}, snap: s.Snapshot, rooms: rooms}
	for _, u := range q.Reach.Unsuitable {
		b.unsuitable = append(b.unsuitable, u.Node)
	}
	if asked.Equivalent == nil {
		return b, nil
	}
	if err := b.addDevices(ctx, s, sampled, asked); err != nil {
		return nil, err
	}
	if len(Coupled(q)) > 0 {
		b.whole = nil
		return b, nil
	}
	at := map[int]int{}
	for i, first := range asked.Equivalent {
		if _, known := at[first]; !known {
			at[first] = len(b.groups)
			b.groups = append(b.groups, nil)
		}
		b.groups[at[first]] = append(b.groups[at[first]], sampled.like(q.Reach.Candidates[i])...)
	}
	for _, group := range b.groups {
		sortByRoom(group, b.rooms)
		if slices.ContainsFunc(group, func(node *corev1.Node) bool { return b.whole[node.Name] == nil }) {
			b.others.groups = append(b.others.groups, group)
		} else {
			b.wholeGroups = append(b.wholeGroups, group)
		}
	}
	b.all.groups = b.groups
	if sampled != nil {
		b.all = *sampled
	}
	return b, nil
}

// addDevices adds the devices that can serve the only request of a question, including
// devices of nodes that are not in the sample.
func (b *base) addDevices(ctx context.Context, s *cluster.Cluster, sampled *sample, asked *explain.Asked) error {
	q := asked.Question
	f := q.Claims[0].Funnels[0][0]
	b.shareable = Shareable(q, f)
	for i := range f.Devices {
		if d := &f.Devices[i]; f.Reason(d) == nil {
			b.addEligible(d.ID)
			b.divisible = b.divisible || len(d.ConsumesCounters) > 0 || ptr.Deref(d.AllowMultipleAllocations, false)
		}
	}
	if certain(q, asked.Answer) {
		b.whole = make(map[string]wholeDevices, len(s.Snapshot.Nodes))
	}
	for _, first := range q.Reach.Candidates {
		devices, whole := wholeOn(ctx, q, first)
		for _, node := range sampled.like(first) {
			if node != first {
				var err error
				if devices, err = devices.on(s, node); err != nil {
					return err
				}
				for i := range devices {
					b.addEligible(devices[i].id)
				}
			}
			if whole && b.whole != nil {
				b.whole[node.Name] = devices
			}
		}
	}
	return nil
}

// count counts claims of a shape: whole devices by their number, others on one node of
// each group. It is nil if nothing can be said. Why none fits is said only with reason.
func (b *base) count(ctx context.Context, shape *claimShape, pod *corev1.Pod, reason bool) (*slotCount, error) {
	if b.groups == nil {
		return nil, nil
	}
	all := b.none()
	if b.addWhole(all, shape) {
		if known, err := b.addSample(ctx, all, &b.others, pod); err != nil || known && (all.count.AtLeast > 0 || !reason) {
			return all.exactly(), err
		}
	}
	all = b.none()
	if known, err := b.addSample(ctx, all, &b.all, pod); err != nil || !known {
		return nil, err
	}
	return all.exactly(), nil
}

// none counts no claims, on the nodes that the pod cannot use.
func (b *base) none() *slotCount {
	c := &slotCount{nodes: make(map[string]int, len(b.rooms))}
	for _, node := range b.unsuitable {
		c.nodes[node.Name] = 0
	}
	return c
}

// addWhole counts claims of a shape on the nodes where all devices are whole. It reports
// whether that is known.
func (b *base) addWhole(c *slotCount, shape *claimShape) bool {
	if b.whole == nil {
		return false
	}
	for _, group := range b.wholeGroups {
		for _, node := range group {
			devices, room := b.whole[node.Name], b.rooms[node.Name]
			count, known := devices.slots(shape.Devices, anyDevice)
			if !known || count >= mostSlots().onNode {
				return false
			}
			bound := room
			if !b.shareable {
				bound = min(bound, len(devices)/shape.Devices)
			}
			c.add(node, min(count, room), bound)
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
	s.prepare(b.snap, b.unsuitable)
	counted, asked, err := slotsIn(ctx, b.asker, s.state, pod, s.names)
	if err != nil || !exact(counted.count) || len(counted.bounds) > 0 || asked.Answer.Verdict == api.Error {
		return false, err
	}
	most := MostOn(asked.Question)
	candidates := map[*corev1.Node]bool{}
	for _, node := range asked.Question.Reach.Candidates {
		candidates[node] = true
	}
	for _, group := range s.groups {
		on, known := counted.nodes[group[0].Name]
		if !known || !candidates[group[0]] {
			return false, nil
		}
		bound := most(group[0])
		for _, node := range group {
			room := b.rooms[node.Name]
			c.add(node, min(on, room), min(bound, room))
		}
	}
	c.stop = counted.stop
	return true, nil
}

// sample stands for a cluster: it has the first node of each of some groups of equivalent
// nodes, and all that pods cannot use.
type sample struct {
	groups [][]*corev1.Node
	// state is made when it is needed. Names and groupOf have by the name of the first node
	// of a group the others, and all.
	state   *cluster.Cluster
	names   map[string][]string
	groupOf map[string][]*corev1.Node
}

// prepare makes the state.
func (s *sample) prepare(snap *snapshot.Snapshot, unsuitable []*corev1.Node) {
	if s.state != nil {
		return
	}
	s.names, s.groupOf = map[string][]string{}, map[string][]*corev1.Node{}
	few := append([]*corev1.Node{}, unsuitable...)
	for _, group := range s.groups {
		first := group[0]
		few, s.groupOf[first.Name] = append(few, first), group
		for _, node := range group[1:] {
			s.names[first.Name] = append(s.names[first.Name], node.Name)
		}
	}
	s.state = cluster.New(whatif.Local(snap, few))
}

// like returns the nodes that a node stands for, and itself first: it alone without a
// sample.
func (s *sample) like(node *corev1.Node) []*corev1.Node {
	if s == nil {
		return []*corev1.Node{node}
	}
	return s.groupOf[node.Name]
}

// namesOf returns the names of nodes that others stand for.
func (s *sample) namesOf() map[string][]string {
	if s == nil {
		return nil
	}
	return s.names
}
