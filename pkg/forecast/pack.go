// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

const (
	// mostRounds limits how often moves are tried, mostSources on how many nodes, and
	// mostSinks how many other nodes a pod is offered.
	mostRounds  = 4
	mostSources = 32
	mostSinks   = 4
	// mostVerified limits how many moves are tried alone.
	mostVerified = 3
)

// packing moves pods to other nodes, so that more claims of a shape fit. Nothing is said
// to be won before the allocator has placed the pods and the claims are counted again.
// It is a search that may miss a better one.
type packing struct {
	// pod has a claim of the shape, onePod a claim for one such device.
	pod, onePod *corev1.Pod
	// oneDevices are the devices that can serve such a claim for one device.
	oneDevices *devices
	// size is how many devices a claim of the shape takes.
	size int
	// plain is set if any devices do for a claim, and none is a part of another one.
	plain bool
	// later is the count with all claims released, classes are the counts of one device of
	// each class.
	later   *slotCount
	classes map[string]*slotCount
	// start has the nodes that are looked at, now and ones how many claims fit there, of
	// the shape and for one device.
	start     *cluster.Cluster
	now, ones *slotCount
	// users are the pods that can be moved, by node.
	users map[string][]*user
	// made are the moves that have won something.
	made []*plan
}

// plan is some pods of a node that go to others.
type plan struct {
	users  []*user
	from   string
	nodes  []string
	placed []whatif.Reservation
	won    int
}

// among chooses the nodes that are looked at: those where the fewest devices are in the
// way of one more claim, and those that pods can best go to.
func (p *packing) among(snap *snapshot.Snapshot, all []*mover, count, ones *slotCount) []*corev1.Node {
	users := p.later.movable(all)
	type candidate struct {
		node *corev1.Node
		rank int
	}
	var sources, sinks, beside []candidate
	for _, node := range snap.Nodes {
		here, known := count.nodes[node.Name]
		later, knownLater := p.later.nodes[node.Name]
		if !known || !knownLater {
			continue
		}
		left := p.left(count, ones, node.Name)
		if len(users[node.Name]) > 0 && here < later {
			sources = append(sources, candidate{node, max(1, p.size-left)})
		}
		switch free := p.freeOn(node.Name); {
		case free == 0:
		case later == 0:
			beside = append(beside, candidate{node, -free})
		case left > 0 || !p.plain:
			sinks = append(sinks, candidate{node, here*p.size - left})
		}
	}
	var nodes []*corev1.Node
	for _, list := range [][]candidate{sources, sinks, beside} {
		slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.rank, b.rank) })
		for _, c := range list[:min(len(list), mostSources)] {
			if !slices.Contains(nodes, c.node) {
				nodes = append(nodes, c.node)
			}
		}
	}
	return nodes
}

// changedBy returns the nodes that plans have changed.
func changedBy(plans []*plan) map[string]bool {
	changed := map[string]bool{}
	for _, plan := range plans {
		for _, name := range plan.nodes {
			changed[name] = true
		}
	}
	return changed
}

// count counts claims of the shape on the nodes of a cluster, of which plans have changed some.
func (p *packing) count(ctx context.Context, s *cluster.Cluster, before *slotCount, plans []*plan) (*slotCount, error) {
	return p.later.slotsOn(ctx, s, p.pod, p.size, before, changedBy(plans))
}

// freeOn returns how many devices of a node are free that any class has.
func (p *packing) freeOn(node string) int {
	most := 0
	for _, count := range p.classes {
		most = max(most, count.nodes[node])
	}
	return most
}

// best returns how many more claims fit after moves, at most some, and the best single
// move. What was found among some nodes is verified in the whole cluster.
func (p *packing) best(ctx context.Context, whole *cluster.Cluster, most int) (int, *api.PodMove, error) {
	count, err := p.pack(ctx, p.now.count.AtLeast+most)
	if err != nil {
		return 0, nil, err
	}
	won := count.count.AtLeast - p.now.count.AtLeast
	if won <= 0 {
		return 0, nil, nil
	}
	if placed, err := placedIn(ctx, whole, p.made); err != nil || !placed {
		return 0, nil, err
	}
	move, err := p.bestMove(ctx, whole)
	return won, move, err
}

// placedIn reports whether the pods of plans fit on the nodes that were found for them.
func placedIn(ctx context.Context, s *cluster.Cluster, plans []*plan) (bool, error) {
	to := map[[2]string]string{}
	var pods []*corev1.Pod
	for _, plan := range plans {
		for i := range plan.placed {
			pod := s.Snapshot.Pod(plan.placed[i].Pod.Namespace, plan.placed[i].Pod.Name)
			if pod == nil {
				return false, nil
			}
			key := [2]string{pod.Namespace, pod.Name}
			if to[key] == "" {
				pods = append(pods, pod)
			}
			to[key] = plan.placed[i].Node
		}
	}
	after := s.Amended(whatif.Evict(s.Snapshot, pods))
	// Those that go to one node get their devices one after another.
	for len(pods) > 0 {
		busy := map[string]bool{}
		var reservations []whatif.Reservation
		var rest []*corev1.Pod
		for _, pod := range pods {
			name := to[[2]string{pod.Namespace, pod.Name}]
			if busy[name] {
				rest = append(rest, pod)
				continue
			}
			busy[name] = true
			r, err := allocator.NewAttempt(after, after.Snapshot.Pod(pod.Namespace, pod.Name)).On(ctx, after.Snapshot.Node(name))
			if err != nil || r == nil {
				return false, ctx.Err()
			}
			reservations = append(reservations, *r)
		}
		after = after.Amended(whatif.ReserveAll(after.Snapshot, reservations))
		pods = rest
	}
	return true, nil
}

// pack makes moves until none wins any more, enough were made, or that many claims fit.
func (p *packing) pack(ctx context.Context, most int) (*slotCount, error) {
	state, count, ones := p.start, p.now, p.ones
	given := map[string]int{}
	for round := 0; round < mostRounds && count.count.AtLeast < most; round++ {
		p.users = p.later.usersAmong(moversIn(state.Snapshot))
		plans := p.plans(count, ones, given)
		if len(plans) == 0 {
			break
		}
		after, better, won, err := p.try(ctx, state, count, ones, plans)
		if err != nil {
			return nil, err
		}
		if better.count.AtLeast <= count.count.AtLeast {
			continue
		}
		for _, plan := range won {
			delete(given, plan.from)
		}
		state, count, p.made = after, better, append(p.made, won...)
		if p.onePod == p.pod {
			ones = count
		} else if ones, err = p.oneDevices.slotsOn(ctx, state, p.onePod, 1, ones, changedBy(won)); err != nil {
			return nil, err
		}
	}
	return count, nil
}

// plans proposes which pods leave their nodes: where the fewest devices are in the way
// of one more claim, those first. What was given up on a node before is not tried again.
func (p *packing) plans(count, ones *slotCount, given map[string]int) []*plan {
	type source struct {
		node    string
		missing int
	}
	var sources []source
	for name := range p.users {
		if here, known := count.nodes[name]; !known || here >= p.later.nodes[name] {
			continue
		}
		sources = append(sources, source{name, max(1, p.size-p.left(count, ones, name))})
	}
	slices.SortFunc(sources, func(a, b source) int {
		return cmp.Or(cmp.Compare(a.missing, b.missing), english.CompareNames(a.node, b.node))
	})
	var plans []*plan
	for _, s := range sources {
		choices := choicesOf(p.users[s.node], s.missing)
		if next := given[s.node]; next < len(choices) && len(plans) < mostSources {
			given[s.node]++
			plans = append(plans, &plan{users: choices[next], from: s.node})
		}
	}
	return plans
}

// left returns how many devices of a node claims of the shape leave over.
func (p *packing) left(count, ones *slotCount, node string) int {
	return ones.nodes[node] - count.nodes[node]*p.size
}

// try makes plans in a cluster, each with nodes of its own, and keeps those after which
// more claims fit on these.
func (p *packing) try(ctx context.Context, s *cluster.Cluster, count, ones *slotCount, plans []*plan) (*cluster.Cluster, *slotCount, []*plan, error) {
	plans, err := p.place(ctx, s, count, ones, plans)
	if err != nil {
		return nil, nil, nil, err
	}
	for {
		after := moved(s, plans)
		better, err := p.count(ctx, after, count, plans)
		if err != nil {
			return nil, nil, nil, err
		}
		won := slices.DeleteFunc(slices.Clone(plans), func(plan *plan) bool {
			plan.won = 0
			for _, name := range plan.nodes {
				plan.won += better.nodes[name] - count.nodes[name]
			}
			return plan.won <= 0
		})
		if len(won) == len(plans) || len(won) == 0 {
			return after, better, won, nil
		}
		plans = won
	}
}

// place finds other nodes for the pods of plans, and drops plans for which there are none.
func (p *packing) place(ctx context.Context, s *cluster.Cluster, count, ones *slotCount, plans []*plan) ([]*plan, error) {
	owner, taken := map[string]*plan{}, map[cluster.DeviceID]bool{}
	for _, plan := range plans {
		plan.nodes, plan.placed = []string{plan.from}, nil
	}
	for round := 0; len(plans) > 0; round++ {
		after := moved(s, plans)
		var kept []*plan
		more := false
		for _, plan := range plans {
			if round < len(plan.users) {
				node, r, err := p.offer(ctx, after, count, ones, plan, plan.users[round], owner)
				if err != nil {
					return nil, err
				}
				if r == nil || !take(taken, r) {
					continue
				}
				owner[plan.from], owner[node] = plan, plan
				if !slices.Contains(plan.nodes, node) {
					plan.nodes = append(plan.nodes, node)
				}
				plan.placed = append(plan.placed, *r)
			}
			more = more || round+1 < len(plan.users)
			kept = append(kept, plan)
		}
		if plans = kept; !more {
			break
		}
	}
	return plans, nil
}

// moved returns the cluster after the pods of plans have left their nodes and got their new
// places so far.
func moved(s *cluster.Cluster, plans []*plan) *cluster.Cluster {
	var pods []*corev1.Pod
	var placed []whatif.Reservation
	for _, plan := range plans {
		for _, user := range plan.users {
			pods = append(pods, user.pod)
		}
		placed = append(placed, plan.placed...)
	}
	return s.Amended(whatif.ReserveAll(whatif.Evict(s.Snapshot, pods), placed))
}

// take notes the devices of a reservation, and reports whether nobody else has them.
func take(taken map[cluster.DeviceID]bool, r *whatif.Reservation) bool {
	var ids []cluster.DeviceID
	for i := range r.Claims {
		if r.Claims[i].Allocation == nil {
			continue
		}
		for j := range r.Claims[i].Allocation.Devices.Results {
			ids = append(ids, resultID(&r.Claims[i].Allocation.Devices.Results[j]))
		}
	}
	if slices.ContainsFunc(ids, func(id cluster.DeviceID) bool { return taken[id] }) {
		return false
	}
	for _, id := range ids {
		taken[id] = true
	}
	return true
}

// offer looks for a node that a pod can go to, and that no other plan has.
func (p *packing) offer(ctx context.Context, s *cluster.Cluster, count, ones *slotCount, plan *plan, user *user, owner map[string]*plan) (string, *whatif.Reservation, error) {
	pod := s.Snapshot.Pod(user.pod.Namespace, user.pod.Name)
	free := p.classes[user.class]
	if pod == nil || free == nil || owner[plan.from] != nil && owner[plan.from] != plan {
		return "", nil, nil
	}
	type sink struct {
		node        *corev1.Node
		costs, left int
	}
	var sinks []sink
	for _, node := range s.Snapshot.Nodes {
		on, counted := count.nodes[node.Name]
		if node.Name == plan.from || owner[node.Name] != nil && owner[node.Name] != plan || free.nodes[node.Name] < user.devices {
			continue
		}
		sink := sink{node: node}
		if counted && p.later.nodes[node.Name] > 0 {
			if sink.left = p.left(count, ones, node.Name); sink.left < user.weight {
				sink.costs = on
			}
			if p.plain && sink.costs > 0 {
				// What is won on one node is lost on the other.
				continue
			}
		}
		sinks = append(sinks, sink)
	}
	slices.SortStableFunc(sinks, func(a, b sink) int { return cmp.Or(cmp.Compare(a.costs, b.costs), cmp.Compare(a.left, b.left)) })
	attempt := allocator.NewAttempt(s, pod)
	for _, sink := range sinks[:min(len(sinks), mostSinks)] {
		if err := ctx.Err(); err != nil {
			return "", nil, err
		}
		// An error means that the allocator has no answer for this node.
		if r, err := attempt.On(ctx, sink.node); err == nil && r != nil {
			return sink.node.Name, r, nil
		}
	}
	return "", nil, ctx.Err()
}

// bestMove returns the move of one pod that wins the most, alone.
func (p *packing) bestMove(ctx context.Context, whole *cluster.Cluster) (*api.PodMove, error) {
	alone := slices.DeleteFunc(slices.Clone(p.made), func(plan *plan) bool {
		pod := p.start.Snapshot.Pod(plan.users[0].pod.Namespace, plan.users[0].pod.Name)
		return len(plan.users) > 1 || pod == nil || pod.Spec.NodeName != plan.from
	})
	slices.SortStableFunc(alone, func(a, b *plan) int { return cmp.Compare(b.won, a.won) })
	for _, found := range alone[:min(len(alone), mostVerified)] {
		placed, err := placedIn(ctx, whole, []*plan{found})
		if err != nil {
			return nil, err
		}
		state := moved(p.start, []*plan{found})
		count, err := p.count(ctx, state, p.now, []*plan{found})
		if err != nil {
			return nil, err
		}
		if more := count.count.AtLeast - p.now.count.AtLeast; placed && more > 0 {
			u := found.users[0]
			var claims []string
			for _, claim := range u.claims {
				claims = append(claims, claim.Name)
			}
			return &api.PodMove{Namespace: u.pod.Namespace, Pod: u.pod.Name, Claims: claims, From: found.from, To: found.placed[0].Node, More: more}, nil
		}
	}
	return nil, nil
}

// mostChoices limits how many sets of the pods of a node are considered.
const mostChoices = 12

// usersAmong returns the movers that have some of the devices, or of their pools, by their
// node.
func (d *devices) usersAmong(movers []*mover) map[string][]*user {
	users := map[string][]*user{}
	for _, m := range movers {
		if u := d.userOf(m); u != nil {
			users[m.pod.Spec.NodeName] = append(users[m.pod.Spec.NodeName], u)
		}
	}
	for _, list := range users {
		slices.SortFunc(list, func(a, b *user) int {
			return cmp.Or(strings.Compare(a.first, b.first), strings.Compare(a.pod.Namespace, b.pod.Namespace), strings.Compare(a.pod.Name, b.pod.Name))
		})
	}
	return users
}

// userOf weighs the devices of a mover. It is nil if it has none of their pools.
func (d *devices) userOf(m *mover) *user {
	var found *user
	for _, claim := range m.claims {
		results := claim.Status.Allocation.Devices.Results
		for i := range results {
			if !d.pools[snapshot.PoolID{Driver: results[i].Driver, Name: results[i].Pool}] {
				continue
			}
			name := results[i].Pool + "/" + results[i].Device
			if found == nil {
				found = &user{mover: m, first: name}
			}
			found.first = min(found.first, name)
			if d.eligible[resultID(&results[i])] {
				found.weight++
			}
		}
	}
	if found != nil {
		found.weight = max(found.weight, 1)
	}
	return found
}

// choicesOf returns sets of pods with so many devices: single ones, and such as have
// devices side by side; the smallest first.
func choicesOf(users []*user, missing int) [][]*user {
	type choice struct{ from, to, weight int }
	var choices []choice
	for from := range users {
		weight := 0
		for to := from; to < len(users); to++ {
			if weight += users[to].weight; weight >= missing {
				choices = append(choices, choice{from, to + 1, weight})
				break
			}
		}
	}
	slices.SortStableFunc(choices, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.to-a.from, b.to-b.from))
	})
	sets := make([][]*user, 0, len(choices))
	for _, c := range choices[:min(len(choices), mostChoices)] {
		sets = append(sets, users[c.from:c.to])
	}
	return sets
}

// packedBound returns a number of claims of a shape of which it is proved that no more fit,
// whichever nodes pods are on: of the devices that can serve them, some are always in use,
// because they belong to claims that no others can serve.
func packedBound(snap *snapshot.Snapshot, all []*mover, shape *claimShape, later *slotCount) int {
	if later.divisible || len(shape.Capacity)+len(shape.Tolerations) > 0 || slices.ContainsFunc(later.unsuitable, func(node *corev1.Node) bool { return !closed(node) }) {
		return unlimited
	}
	movers := map[*resourceapi.ResourceClaim]bool{}
	for _, users := range later.movable(all) {
		for _, u := range users {
			free := slices.ContainsFunc(u.pod.Spec.Tolerations, opens)
			for _, claim := range u.claims {
				if free || !asksWithin(claim, shape) {
					movers[claim] = true
				}
			}
		}
	}
	kept := 0
	for _, claim := range snap.Claims {
		if claim.Status.Allocation == nil || movers[claim] {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			if later.eligible[resultID(&claim.Status.Allocation.Devices.Results[i])] {
				kept++
			}
		}
	}
	return max(0, len(later.eligible)-kept) / shape.Devices
}

// asksWithin reports whether a claim can be served by nothing else than what serves
// claims of a shape.
func asksWithin(claim *resourceapi.ResourceClaim, shape *claimShape) bool {
	for i := range claim.Spec.Devices.Requests {
		exactly := claim.Spec.Devices.Requests[i].Exactly
		if exactly == nil || exactly.DeviceClassName != shape.Class || len(exactly.Tolerations) > 0 || ptr.Deref(exactly.AdminAccess, false) {
			return false
		}
		for _, expression := range shape.Selectors {
			if !slices.ContainsFunc(exactly.Selectors, func(s resourceapi.DeviceSelector) bool { return s.CEL != nil && s.CEL.Expression == expression }) {
				return false
			}
		}
	}
	return true
}

// movable returns the movable users of these devices, see [devices.usersAmong].
func (d *devices) movable(all []*mover) map[string][]*user {
	if d.users == nil {
		d.users = d.usersAmong(all)
	}
	return d.users
}
