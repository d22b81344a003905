// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// most limits how many copies are placed on one node, and how many at all where nodes
// depend on each other. It is the least of which is said "at least".
type most struct{ onNode, inSequence int }

// mostCopies returns the limits for copies of one target.
func mostCopies() most { return most{onNode: 1000, inSequence: 2000} }

// counted is how many copies fit in a cluster.
type counted struct {
	asker *explain.Asker
	asked *explain.Asked
	most  most
	count api.CopyCount
	// coupled says why copies on one node matter to those on others, bounds why the count
	// depends on which nodes the scheduler takes: it may not, all the same.
	coupled, bounds []string
	// suited are the nodes that may take copies.
	suited []*corev1.Node
	// nodes has what each node takes, by its name.
	nodes map[string]*onNode
	// next is why the nodes that come closest take no more.
	next *api.CopyStop
}

// onNode is how many copies a node takes, and why no more.
type onNode struct {
	copies  int
	code    api.Code
	message string
}

// countIn counts the copies of a pod that fit in a cluster. Without reasons, it is not
// found out why nodes that take some take no more. Nodes that the cluster leaves out are in
// like, see [explain.Asker.Ask]; they are not counted.
func countIn(ctx context.Context, asker *explain.Asker, s *cluster.Cluster, pod *corev1.Pod, leftOut map[string][]string, most most, reasons bool) (*counted, error) {
	asked, err := asker.Ask(ctx, s, pod, leftOut)
	if err != nil {
		return nil, err
	}
	c := &counted{asker: asker, asked: asked, most: most, nodes: map[string]*onNode{}, next: stopOf(asked.Answer)}
	takes, never := map[string]bool{}, map[string]bool{}
	for _, group := range asked.Answer.Nodes {
		for _, name := range group.Names {
			takes[name], never[name] = group.Verdict == api.Fits, group.Verdict != api.Fits && group.Verdict != api.Undetermined
			c.nodes[name] = &onNode{code: group.Code, message: group.Message}
		}
	}
	nodes := c.suitable(takes)
	c.suited = asked.Question.Reach.Candidates
	if !reopens(asked.Question) {
		c.suited = slices.DeleteFunc(slices.Clone(c.suited), func(node *corev1.Node) bool { return never[node.Name] })
	}
	switch {
	case asked.Answer.Verdict == api.Undetermined:
		return c, nil
	case len(nodes) == 0:
		c.count.AtMost = ptr.To(0)
		return c, nil
	}
	if c.coupled = Coupled(asked.Question); len(c.coupled) > 0 {
		return c, c.inSequence(ctx, s, nodes, reasons)
	}
	return c, c.filled(ctx, s, nodes, reasons)
}

// stopOf returns what an answer says against a copy, nil if it fits.
func stopOf(answer *api.Explanation) *api.CopyStop {
	if fits(answer) {
		return nil
	}
	return &api.CopyStop{Code: answer.Code, Message: answer.Summary}
}

// fits reports whether the allocator has devices for a copy, or it needs no more.
func fits(answer *api.Explanation) bool {
	return answer.Verdict == api.Fits || answer.Verdict == api.Allocated
}

// suitable returns the nodes where a copy fits, those that are equivalent in one list, with
// the one first that has room for the most.
func (c *counted) suitable(takes map[string]bool) [][]*corev1.Node {
	at := map[int]int{}
	var groups [][]*corev1.Node
	for i, first := range c.asked.Equivalent {
		node := c.asked.Question.Reach.Candidates[i]
		if !takes[node.Name] {
			continue
		}
		if _, known := at[first]; !known {
			at[first] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[first]] = append(groups[at[first]], node)
	}
	for _, group := range groups {
		slices.SortStableFunc(group, func(a, b *corev1.Node) int { return c.roomOn(b) - c.roomOn(a) })
	}
	return groups
}

// roomOn returns for how many copies a node has CPU, memory and the like.
func (c *counted) roomOn(node *corev1.Node) int {
	rooms := c.asked.Question.Cluster.Nodes.RoomFor(c.asked.Question.Pod, node)
	if len(rooms) == 0 {
		return c.most.onNode
	}
	return int(min(rooms[0].Pods, int64(c.most.onNode)))
}

// filled counts where nodes do not depend on each other: on one of each kind.
func (c *counted) filled(ctx context.Context, s *cluster.Cluster, groups [][]*corev1.Node, reasons bool) error {
	first := make([]*corev1.Node, 0, len(groups))
	for _, group := range groups {
		first = append(first, group[0])
	}
	f, err := fill(ctx, c.asked.Question, s, first, c.most.onNode)
	if err != nil {
		return err
	}
	known := true
	for at, group := range groups {
		for i, node := range group {
			n := f.Copies[at]
			if i > 0 {
				n = min(n, c.roomOn(node))
			}
			c.nodes[node.Name] = &onNode{copies: n}
			c.count.AtLeast += n
		}
		known = known && f.Undecided[at] == nil
	}
	if known {
		c.count.AtMost = ptr.To(c.count.AtLeast)
	} else {
		c.atMost()
	}
	if !reasons {
		return nil
	}
	return c.reasons(ctx, f.State, groups, f.Copies)
}

// inSequence counts where nodes depend on each other: the least of several orders. Where the first
// copy decides which devices all use, each kind of nodes comes first in one, with its least room.
func (c *counted) inSequence(ctx context.Context, s *cluster.Cluster, groups [][]*corev1.Node, reasons bool) error {
	nodes := slices.Concat(groups...)
	reversed := slices.Clone(nodes)
	slices.Reverse(reversed)
	orders := [][]*corev1.Node{nodes, reversed}
	if shared(c.asked.Question) {
		orders = nil
		for _, group := range groups {
			first := group[len(group)-1]
			others := slices.DeleteFunc(slices.Clone(nodes), func(node *corev1.Node) bool { return node == first })
			orders = append(orders, slices.Insert(others, 0, first))
		}
	}
	var least *filled
	most := min(c.most.inSequence, c.reservable())
	for _, order := range orders {
		f, err := sequence(ctx, c.asked.Question, s, order, most)
		if err != nil {
			return err
		}
		if least == nil || f.Total() < least.Total() {
			least, nodes, most = f, order, f.Total()
		}
	}
	groups = make([][]*corev1.Node, 0, len(nodes))
	for i, node := range nodes {
		c.nodes[node.Name] = &onNode{copies: least.Copies[i]}
		groups = append(groups, []*corev1.Node{node})
	}
	c.count.AtLeast = least.Total()
	c.atMost()
	certain, known := Certain(c.asked.Question)
	if tied(c.asked.Question) {
		certain, known = ptr.Deref(c.count.AtMost, unlimited), true
	}
	if !known || certain != c.count.AtLeast {
		c.bounds = c.coupled
	}
	if !reasons {
		return nil
	}
	return c.reasons(ctx, least.State, groups, least.Copies)
}

// atMost proves that there are no more copies than some number, if counting can.
func (c *counted) atMost() {
	most := min(mostCopiesOf(c.asked.Question, c.suited), c.reservable())
	if most < unlimited {
		c.count.AtMost = ptr.To(max(most, c.count.AtLeast))
	}
}

// reopens reports whether copies can make nodes suitable that take none now: pods elsewhere do,
// and so does a claim that all copies use if it asks for all devices, once it has others.
func reopens(q *eligibility.Question) bool {
	return depends(q.Pod) || shared(q) && !tied(q)
}

// reservable returns for how many pods the claims can be reserved that all copies use.
func (c *counted) reservable() int {
	least := unlimited
	for i := range c.asked.Question.PodClaims {
		if pc := &c.asked.Question.PodClaims[i]; pc.Claim != nil && pc.Template == "" && pc.Group == "" && !pc.ExtendedResources {
			least = min(least, max(0, resourceapi.ResourceClaimReservedForMaxSize-len(pc.Claim.Status.ReservedFor)))
		}
	}
	return least
}

// reasons finds out why nodes take no more copies than they have in a cluster: of each
// group of nodes the first one is asked about.
func (c *counted) reasons(ctx context.Context, s *cluster.Cluster, groups [][]*corev1.Node, placed []int) error {
	first := make([]*corev1.Node, 0, len(groups))
	for _, group := range groups {
		first = append(first, group[0])
	}
	s = s.Amended(whatif.OnlyNodes(s.Snapshot, first))
	// It has a number that no copy has.
	asked, err := c.asker.Ask(ctx, s, numbered(c.asked.Question.Pod, 0), nil)
	if err != nil {
		return err
	}
	said := map[string]*api.NodeGroup{}
	for i := range asked.Answer.Nodes {
		for _, name := range asked.Answer.Nodes[i].Names {
			said[name] = &asked.Answer.Nodes[i]
		}
	}
	for at, group := range groups {
		for _, node := range group {
			on := c.nodes[node.Name]
			rooms := c.asked.Question.Cluster.Nodes.RoomFor(c.asked.Question.Pod, node)
			switch reason := said[group[0].Name]; {
			case on.copies < placed[at] && len(rooms) > 0:
				on.code, on.message = api.NodeUnsuitable, rooms[0].Reason
			case reason != nil && reason.Verdict != api.Fits:
				on.code, on.message = reason.Code, reason.Message
			}
		}
	}
	if len(asked.Answer.Nodes) > 0 && !fits(asked.Answer) && fits(c.asked.Answer) {
		nearest := &asked.Answer.Nodes[0]
		c.next = &api.CopyStop{Code: nearest.Code, Message: nearest.Message}
		if nearest.Count == 1 && asked.Answer.NodeCount > 1 {
			c.next.Message = fmt.Sprintf("node %s: %s", nearest.Names[0], nearest.Message)
		}
	}
	return nil
}

// released returns a cluster without allocated claims, and without the pods that use them.
func released(s *cluster.Cluster) *cluster.Cluster {
	users := map[*corev1.Pod]bool{}
	for _, claim := range s.Snapshot.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.ReservedFor {
			consumer := &claim.Status.ReservedFor[i]
			if pod := s.Snapshot.Pod(claim.Namespace, consumer.Name); pod != nil && pod.UID == consumer.UID && cluster.ConsumerKind(consumer) == "pod" {
				users[pod] = true
			}
		}
	}
	return s.Amended(whatif.Leave(s.Snapshot, func(pod *corev1.Pod) bool { return users[pod] },
		func(*resourceapi.ResourceClaim, *resourceapi.DeviceRequestAllocationResult) bool { return true }))
}
