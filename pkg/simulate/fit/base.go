// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

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
	eligible map[cluster.DeviceID]bool
	// divisible is set if some of these can be shared, or are partitions.
	divisible bool
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
// large cluster, and shapes are counted in one that has a node of each group.
type base struct {
	*devices
	// groups are equivalent nodes, the one with the most room first; nil if nodes depend
	// on each other. Rooms has for how many pods each has room.
	groups [][]*corev1.Node
	rooms  map[string]int
	// beside are the nodes that the pod cannot use.
	beside map[string]*onNode
	// few has the first node of each group, and all that the pod cannot use; like has the
	// names of the others of the group.
	few  *simulate.State
	like map[string][]string
}

// newBase finds what shapes have in common, from the answer for one device.
func newBase(ctx context.Context, s *simulate.State, asked *explain.Asked) (*base, error) {
	q := asked.Question
	b := &base{devices: devicesOfAll(q), rooms: map[string]int{}, beside: map[string]*onNode{}, like: map[string][]string{}}
	if asked.Equivalent == nil || len(copies.Coupled(q)) > 0 {
		return b, nil
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
				b.beside[name] = &onNode{code: asked.Answer.Nodes[i].Code, message: asked.Answer.Nodes[i].Message}
			}
		}
	}
	few := slices.Clone(b.unsuitable)
	for _, group := range b.groups {
		few = append(few, group[0])
		for _, node := range group[1:] {
			b.like[group[0].Name] = append(b.like[group[0].Name], node.Name)
		}
	}
	var err error
	b.few, err = simulate.New(ctx, whatif.Local(s.Snap, few))
	return b, err
}

// devicesOfAll are those that can serve the only request of a question.
func devicesOfAll(q *funnel.Question) *devices {
	found := &devices{eligible: map[cluster.DeviceID]bool{}}
	for i := range q.Claims {
		for _, alternatives := range q.Claims[i].Funnels {
			for _, f := range alternatives {
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

// count counts claims of a shape on one node of each group, and says what that means for
// all. It is nil if nothing can be said.
func (b *base) count(ctx context.Context, pod *corev1.Pod) (*slotCount, error) {
	few, asked, err := slotsIn(ctx, b.few, pod, b.like)
	if err != nil || !exact(few.count) || len(few.bounds) > 0 {
		return nil, err
	}
	all := &slotCount{nodes: map[string]*onNode{}, stop: few.stop}
	for name, on := range b.beside {
		all.nodes[name] = on
	}
	most := copies.MostOn(asked.Question)
	candidates := map[*corev1.Node]bool{}
	for _, node := range asked.Question.Cluster.Candidates {
		candidates[node] = true
	}
	for _, group := range b.groups {
		on := few.nodes[group[0].Name]
		if on == nil || !candidates[group[0]] {
			return nil, nil
		}
		bound := most(group[0])
		for _, node := range group {
			here := *on
			here.copies = min(on.copies, b.rooms[node.Name])
			all.nodes[node.Name] = &here
			all.count.AtLeast += here.copies
			all.bound = min(all.bound+min(bound, b.rooms[node.Name]), copies.Unlimited)
		}
	}
	all.count.AtMost = ptr.To(all.count.AtLeast)
	return all, nil
}
