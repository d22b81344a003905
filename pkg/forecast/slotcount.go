// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// slotCount is the kept part of a count: the facts about all devices of a large cluster
// take too much memory.
type slotCount struct {
	count  api.CopyCount
	bounds []string
	// nodes has how many each node takes.
	nodes map[string]int
	stop  *api.CopyStop
	// bound is a number that counting proves to be enough.
	bound int
	// devices are the devices that can serve the shape.
	*devices
}

// slotsIn counts claims of a shape in a cluster, as [countIn] does.
func slotsIn(ctx context.Context, asker *explain.Asker, s *cluster.Cluster, pod *corev1.Pod, leftOut map[string][]string) (*slotCount, *explain.Asked, error) {
	c, err := countIn(ctx, asker, s, pod, leftOut, mostSlots(), false)
	if err != nil {
		return nil, nil, err
	}
	nodes := make(map[string]int, len(c.nodes))
	for name, on := range c.nodes {
		nodes[name] = on.copies
	}
	return &slotCount{count: c.count, bounds: c.coupled, nodes: nodes, stop: c.next, bound: mostCopiesOf(c.asked.Question, c.asked.Question.Reach.Candidates)}, c.asked, nil
}

// exactly says that no more claims fit than were counted.
func (c *slotCount) exactly() *slotCount {
	c.count.AtMost = ptr.To(c.count.AtLeast)
	return c
}

// add sets the number of claims that fit on a node, and its upper bound.
func (c *slotCount) add(node *corev1.Node, count, bound int) {
	c.nodes[node.Name] = count
	c.count.AtLeast += count
	c.bound = min(c.bound+bound, unlimited)
}

// on returns a count of claims on some of its nodes.
func (c *slotCount) on(nodes []*corev1.Node) *slotCount {
	some := &slotCount{nodes: make(map[string]int, len(nodes))}
	for _, node := range nodes {
		some.keep(c, node)
	}
	return some
}

// keep counts claims on a node as they were counted before.
func (c *slotCount) keep(before *slotCount, node *corev1.Node) {
	if on, known := before.nodes[node.Name]; known {
		c.add(node, on, 0)
	}
}

func exact(count api.CopyCount) bool { return count.AtMost != nil && *count.AtMost == count.AtLeast }

// devices are the devices that can serve claims of a shape.
type devices struct {
	asker    *explain.Asker
	eligible map[cluster.DeviceID]bool
	// pools are theirs.
	pools map[snapshot.PoolID]bool
	// divisible is set if some of these can be shared, or are partitions, shareable only in
	// the first case.
	divisible, shareable bool
	// whole has the nodes where none of them is, see [wholeOn].
	whole map[string]wholeDevices
	// unsuitable are the nodes that a pod which tolerates nothing cannot use.
	unsuitable []*corev1.Node
	// users are the pods of the cluster that could run elsewhere, once they were asked for.
	users map[string][]*user
}

func (d *devices) addEligible(id cluster.DeviceID) {
	d.eligible[id], d.pools[snapshot.PoolID{Driver: id.Driver, Name: id.Pool}] = true, true
}

// slotsOn counts how many claims of a size for pods like this one fit in a cluster, on nodes that
// have these devices when all claims are released. On nodes whose devices are not whole, the
// allocator counts them. Where nothing has changed there are as many as before.
func (d *devices) slotsOn(ctx context.Context, s *cluster.Cluster, pod *corev1.Pod, size int, before *slotCount, changed map[string]bool) (*slotCount, error) {
	facts := s
	all := &slotCount{nodes: make(map[string]int, len(s.Snapshot.Nodes))}
	var others []*corev1.Node
	for _, node := range s.Snapshot.Nodes {
		if !changed[node.Name] {
			all.keep(before, node)
			continue
		}
		pools, err := facts.Pools.For(node)
		if err != nil {
			return nil, fmt.Errorf("find the pools of node %s: %w", node.Name, err)
		}
		devices, whole := d.whole[node.Name]
		count, known := devices.slots(size, func(w *wholeDevice) bool {
			device := &pools[w.pool].Devices[w.index]
			return !facts.Usage.InUse(w.id) && facts.Partitions.Conflict(device) == nil && facts.Partitions.ConflictOn(device, node) == nil
		})
		if whole && known {
			all.add(node, min(count, copiesOn(facts.Nodes, pod, node)), 0)
		} else {
			others = append(others, node)
		}
	}
	if len(others) == 0 {
		return all, nil
	}
	s = s.Amended(whatif.OnlyNodes(s.Snapshot, others))
	asked, _, err := slotsIn(ctx, d.asker, s, pod, nil)
	if err != nil {
		return nil, err
	}
	for _, node := range others {
		if on, known := asked.nodes[node.Name]; known {
			all.add(node, on, 0)
		}
	}
	return all, nil
}

// mostSlots returns how many claims of each shape are placed.
func mostSlots() most { return most{onNode: 256, inSequence: 256} }

// copiesOn returns for how many claims, each for a pod of its own, a node has room,
// suitable or not.
func copiesOn(nodes *cluster.Nodes, pod *corev1.Pod, node *corev1.Node) int {
	if len(nodes.Fit(pod, node)) > 0 {
		return 0
	}
	return roomFor(nodes, pod, node)
}

// roomsOf returns for how many such claims the suitable nodes of a cluster have room.
func roomsOf(s *cluster.Cluster, pod *corev1.Pod) map[string]int {
	nodes, _ := s.Nodes.All()
	rooms := make(map[string]int, len(nodes))
	for _, node := range nodes {
		rooms[node.Name] = roomFor(s.Nodes, pod, node)
	}
	return rooms
}

// sortByRoom puts nodes with the most room first.
func sortByRoom(nodes []*corev1.Node, rooms map[string]int) {
	slices.SortStableFunc(nodes, func(a, b *corev1.Node) int { return rooms[b.Name] - rooms[a.Name] })
}

// roomFor is like roomOn, for suitable nodes.
func roomFor(nodes *cluster.Nodes, pod *corev1.Pod, node *corev1.Node) int {
	most := mostSlots().onNode
	if rooms := nodes.RoomFor(pod, node); len(rooms) > 0 {
		return int(min(rooms[0].Pods, int64(most)))
	}
	return most
}
