// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// A node where the claims do not fit is as near as the changes that it takes are
// few, and of as many changes, as they take little away from what is asked for:
// a cordoned node with all devices is nearer than a node with half of them.

// maxProspects limits how many different nodes are looked at closely, those first that an
// estimate says to be near.
const maxProspects = 8

// distance measures the changes after which claims fit on a node.
type distance struct {
	// changes counts what has to change.
	changes int
	// loss is how much the changes take away from the request.
	loss int
}

func (d distance) compare(other distance) int {
	return cmp.Or(cmp.Compare(d.changes, other.changes), cmp.Compare(d.loss, other.loss))
}

// farAway is a distance that is not known.
var farAway = distance{changes: 1 << 20, loss: lossSeveral} //nolint:gochecknoglobals // a constant

// Prospect is a node where the claims do not fit. It stands for all that are
// equivalent to it.
type Prospect struct {
	Nodes    []*corev1.Node
	Scenario *Scenario
	// estimate orders prospects before they are looked at closely.
	estimate estimate
	// distance was verified with the allocator.
	distance distance
	// environment has the facts to change if that is enough without a change of the
	// request; nil if it is not.
	environment []int
	// conflict is a minimal set of facts that cannot all hold, nil if none was
	// found or looked for.
	conflict []int
	searched bool
	// causes are conflicts without a common fact: each keeps the claims from fitting while
	// the facts of the others are given up. allCauses is set if there are no others.
	causes    [][]int
	allCauses bool
}

// Node returns the first of them.
func (p *Prospect) Node() *corev1.Node { return p.Nodes[0] }

// estimate is the result of counting the devices of a node one by one.
type estimate struct {
	distance
	// asking is the distance if only the request changes, besides the changes of the node
	// itself.
	asking distance
	// misfits counts what keeps the pod away from the node.
	misfits int
	// available counts the devices that are available to the requests, free the devices of
	// their classes that no claim has.
	available, free int
}

// compare orders estimates: the nearest first, and of those the ones with more devices.
func (e estimate) compare(other estimate) int {
	return cmp.Or(e.distance.compare(other.distance), e.more(other))
}

// compareAsking orders estimates by how little of the request has to change, if nothing
// else does.
func (e estimate) compareAsking(other estimate) int {
	return cmp.Or(cmp.Compare(e.misfits, other.misfits), e.asking.compare(other.asking), e.more(other))
}

// more orders estimates of the same distance: more devices first.
func (e estimate) more(other estimate) int {
	return cmp.Or(cmp.Compare(other.available, e.available), cmp.Compare(other.free, e.free))
}

// Nearest lists nodes where the claims do not fit, equivalent ones together, the
// nearest first: those that are worth a close look. The only node that the pod selects,
// if there is one and it has devices, comes before them.
func (c *Case) Nearest(ctx context.Context) []*Prospect {
	if c.Reach.Pools == nil {
		return nil
	}
	list := c.estimates(ctx)
	var only, near []*Prospect
	if at := slices.IndexFunc(list, func(e estimatedNode) bool { return e.node.Name == c.Only }); at >= 0 {
		only = append(only, &Prospect{Nodes: []*corev1.Node{list[at].node}, estimate: list[at].estimate, distance: farAway})
		list = slices.Delete(list, at, at+1)
	}
	for rest := list; len(rest) > 0 && len(near) < maxProspects; {
		equal := equallyNear(rest, rest[0])
		near, rest = append(near, c.prospects(equal)...), rest[len(equal):]
	}
	near = near[:min(len(near), maxProspects)]
	if len(list) > 0 {
		asking := slices.MinFunc(list, func(a, b estimatedNode) int { return a.compareAsking(b.estimate) })
		if !slices.ContainsFunc(near, func(p *Prospect) bool { return p.Node() == asking.node }) {
			for _, p := range c.prospects(equallyNear(list, asking)) {
				if p.Node() == asking.node {
					near = append(near, p)
				}
			}
		}
	}
	for _, p := range slices.Concat(only, near) {
		c.look(ctx, p)
		if ctx.Err() != nil {
			break
		}
	}
	slices.SortStableFunc(near, func(a, b *Prospect) int {
		return cmp.Or(a.distance.compare(b.distance), a.estimate.compare(b.estimate))
	})
	return slices.DeleteFunc(slices.Concat(only, near), func(p *Prospect) bool { return p.Scenario == nil })
}

// estimatedNode is one of the nodes with devices, all of which are estimated: that
// takes less than to find out which are equivalent.
type estimatedNode struct {
	node *corev1.Node
	estimate
}

// estimates returns the estimates of the nodes with devices, the nearest first, and equally
// near ones by name.
func (c *Case) estimates(ctx context.Context) []estimatedNode {
	var list []estimatedNode
	for _, node := range c.Nodes {
		if len(c.Reach.Pools[node.Name]) > 0 || len(c.Claims) == 0 {
			list = append(list, estimatedNode{node, estimateNode(ctx, c.Question, node)})
		}
	}
	slices.SortFunc(list, func(a, b estimatedNode) int {
		return cmp.Or(a.compare(b.estimate), english.CompareNames(a.node.Name, b.node.Name))
	})
	return list
}

// equallyNear returns the elements of a sorted list that are as near as one of them.
func equallyNear(list []estimatedNode, as estimatedNode) []estimatedNode {
	first, _ := slices.BinarySearchFunc(list, as.estimate, func(e estimatedNode, to estimate) int { return e.compare(to) })
	n := first
	for n < len(list) && list[n].compare(as.estimate) == 0 {
		n++
	}
	return list[first:n]
}

// prospects puts equivalent nodes together.
func (c *Case) prospects(list []estimatedNode) []*Prospect {
	nodes, estimates := make([]*corev1.Node, len(list)), make(map[*corev1.Node]estimate, len(list))
	for i, e := range list {
		nodes[i], estimates[e.node] = e.node, e.estimate
	}
	var found []*Prospect
	for _, equivalent := range c.Contents.GroupsByUse(c.Question, nodes) {
		found = append(found, &Prospect{Nodes: equivalent, estimate: estimates[equivalent[0]], distance: farAway})
	}
	return found
}

// estimateNode counts, request by request, what a node has and what of it is in use.
func estimateNode(ctx context.Context, q *eligibility.Question, node *corev1.Node) estimate {
	e := estimate{misfits: len(q.Reach.Misfits[node.Name])}
	loss, never := 0, false
	releases := map[string]bool{}
	for i := range q.Claims {
		for _, alternatives := range q.Claims[i].Funnels {
			if len(alternatives) > 0 && !eligibility.NeededOn(q, &q.Claims[i], alternatives[0].Request.Base, node) {
				continue
			}
			var best *requestEstimate
			for _, f := range alternatives {
				if r := estimateRequest(ctx, q, f, node); best == nil || r.nearer(best) {
					best = r
				}
			}
			if best == nil {
				continue
			}
			e.available, e.free = e.available+best.available, e.free+best.free
			loss, never = max(loss, best.loss), never || best.short
			for _, cause := range best.releases {
				releases[cause] = true
			}
		}
	}
	misfitLoss := lossOfMisfits(q, node)
	e.asking = distance{e.misfits + 1, max(loss, misfitLoss)}
	if loss == lossNone {
		e.asking.changes--
	}
	e.distance = e.asking
	if without := (distance{e.misfits + len(releases), misfitLoss}); !never && without.compare(e.distance) < 0 {
		e.distance = without
	}
	return e
}

// requestEstimate counts a node's devices for one request.
type requestEstimate struct {
	available, free int
	// releases are the claims, taints and pools of which something is needed.
	releases []string
	// short is true if the node has too few devices, whichever claims use them.
	short bool
	loss  int
}

func (r *requestEstimate) nearer(other *requestEstimate) bool {
	return cmp.Or(cmp.Compare(r.loss, other.loss), cmp.Compare(len(r.releases), len(other.releases))) < 0
}

func estimateRequest(ctx context.Context, q *eligibility.Question, f *eligibility.Funnel, node *corev1.Node) *requestEstimate {
	r := &requestEstimate{}
	causes := english.Tally{}
	for _, pool := range q.Reach.Pools[node.Name] {
		eligibility.EachDevice(pool, func(d *cluster.Device, kept *eligibility.Reason) {
			why := kept
			switch {
			case f.OtherClass(d):
				return
			case kept == nil:
				why = f.Checks.Device(ctx, d, node)
			}
			if !q.Cluster.Usage.InUse(d.ID) {
				r.free++
			}
			switch {
			case why == nil:
				r.available++
			case why.MayPass():
				causes[why.Fact.Object.String()]++
			}
		})
	}
	needs := int(min(f.Request.Count, resourceapi.AllocationResultsMaxSize+1))
	if f.Request.All() {
		needs = max(1, r.available)
		for _, count := range causes {
			needs += count
		}
	}
	r.loss = lossOf(int64(r.available), int64(needs))
	if r.available == 0 {
		r.loss = lossOther
	}
	missing := needs - r.available
	for _, cause := range causes.Sorted() {
		if missing <= 0 {
			break
		}
		missing -= causes[cause]
		r.releases = append(r.releases, cause)
	}
	r.short = missing > 0
	return r
}

// Enough reports whether a node has as many devices as a request needs, whichever
// claims use them.
func Enough(ctx context.Context, q *eligibility.Question, f *eligibility.Funnel, node *corev1.Node) bool {
	return !estimateRequest(ctx, q, f, node).short
}

// look finds out how far a node is, and what has to change there.
func (c *Case) look(ctx context.Context, p *Prospect) {
	s, err := c.Scenario(p.Node())
	if err != nil || len(s.facts) > maxFacts {
		return
	}
	p.Scenario = s
	if slices.ContainsFunc(c.Reach.Misfits[p.Node().Name], func(u eligibility.UnsuitableNode) bool { return u.Claim != nil }) {
		// The pod's own claims keep it away: it is not for the node to change.
		return
	}
	var restrictions, others, rest []int
	for i := range s.facts {
		switch f := &s.facts[i]; {
		case f.kind == factRestriction:
			restrictions = append(restrictions, i)
		case f.environmental() && (f.kind != factHolder || !isOwnClaim(c.Question, f.holder)):
			others = append(others, i)
		default:
			rest = append(rest, i)
		}
	}
	fits := func(holding ...int) bool {
		ok, err := s.fits(ctx, holding)
		return ok && err == nil
	}
	switch {
	case fits(slices.Concat(rest, others)...):
		p.environment = restrictions
	case len(others) > 0 && fits(rest...):
		given, err := s.fewest(ctx, rest, others)
		if err != nil {
			return
		}
		p.environment = slices.Concat(restrictions, given)
	}
	if p.environment != nil {
		p.distance = distance{len(p.environment), lossOfMisfits(c.Question, p.Node())}
		if len(p.environment) <= len(restrictions)+1 {
			return
		}
	}
	if loss, ok := s.leastLoss(ctx, slices.Concat(rest, others)); ok {
		if asking := (distance{len(restrictions) + 1, max(loss, lossOfMisfits(c.Question, p.Node()))}); asking.compare(p.distance) < 0 {
			p.distance = asking
		}
	}
}

// misfitLoss returns what it takes away to make a node suitable for the pod.
func misfitLoss(u eligibility.UnsuitableNode) int {
	switch {
	case u.Claim != nil:
		// The devices that the pod has already would be given up.
		return lossSeveral
	case u.Misfit.Filter == cluster.FilterResources:
		return lossOf(u.Misfit.Available.MilliValue(), u.Misfit.Required.MilliValue())
	case u.Misfit.Filter == cluster.FilterNodeSelector, u.Misfit.Filter == cluster.FilterNodeAffinity:
		return lossCondition
	case u.Misfit.Filter == cluster.FilterNodeName:
		return lossOther
	default:
		return lossNone
	}
}

// lossOfMisfits returns the most that one of a node's misfits takes away.
func lossOfMisfits(q *eligibility.Question, node *corev1.Node) int {
	most := lossNone
	for _, u := range q.Reach.Misfits[node.Name] {
		most = max(most, misfitLoss(u))
	}
	return most
}

// environmental reports whether a fact concerns the cluster and may pass, and not the
// request or the hardware.
func (f *fact) environmental() bool {
	switch f.kind {
	case factRestriction, factGate, factPool, factTaint, factHolder:
		return true
	default:
		return false
	}
}

// required reports whether the fact is something that claims ask for.
func (f *fact) required() bool { return f.kind <= factConstraint && f.kind != factRequest }

// maxPairs bounds the facts of which two are tried together.
const maxPairs = 12

// fewest chooses facts to be given up, so that the claims fit while rest holds:
// one if that is enough, else two, else as few as can be found by keeping them
// one after the other. Claims of pods with a low priority come first.
func (s *Scenario) fewest(ctx context.Context, rest, others []int) ([]int, error) {
	others = slices.Clone(others)
	priorities := map[int]int64{}
	for _, i := range others {
		priorities[i] = -1 << 40
		if f := &s.facts[i]; f.kind == factHolder {
			priorities[i] = int64(priority(s.whole.Question, f.holder))
		}
	}
	slices.SortStableFunc(others, func(a, b int) int { return cmp.Compare(priorities[a], priorities[b]) })
	without := func(given ...int) (bool, error) {
		holding := slices.Clone(rest)
		for _, i := range others {
			if !slices.Contains(given, i) {
				holding = append(holding, i)
			}
		}
		return s.fits(ctx, holding)
	}
	for _, i := range others {
		if ok, err := without(i); err != nil || ok {
			return []int{i}, err
		}
	}
	if len(others) <= maxPairs {
		for n, i := range others {
			for _, j := range others[:n] {
				if ok, err := without(i, j); err != nil || ok {
					return []int{j, i}, err
				}
			}
		}
	}
	given := slices.Clone(others)
	for _, i := range slices.Backward(others) {
		at := slices.Index(given, i)
		fewer := slices.Delete(slices.Clone(given), at, at+1)
		ok, err := without(fewer...)
		if err != nil {
			return nil, err
		}
		if ok {
			given = fewer
		}
	}
	return given, nil
}

// leastLoss returns the loss of the smallest change of a request after which the claims fit
// in the same environment. It is false if no single change is enough.
func (s *Scenario) leastLoss(ctx context.Context, holding []int) (int, bool) {
	least, found := 0, false
	for at, i := range holding {
		f := &s.facts[i]
		loss := lossCondition
		switch f.kind {
		case factCount, factAll, factSelector, factCapacity, factConstraint:
		default:
			continue
		}
		ok, err := s.fits(ctx, slices.Delete(slices.Clone(holding), at, at+1))
		if err != nil {
			return 0, false
		}
		if !ok {
			continue
		}
		if f.kind == factCount {
			loss = s.lossOfCount(ctx, f, holding)
		}
		if !found || loss < least {
			least, found = loss, true
		}
	}
	return least, found
}

// lossOfCount returns the loss with the most devices that a request can get.
func (s *Scenario) lossOfCount(ctx context.Context, f *fact, holding []int) int {
	holds := make([]bool, len(s.facts))
	for _, i := range holding {
		holds[i] = true
	}
	required := *f.at.in(s.claims).count
	low, high := int64(1), min(required, resourceapi.AllocationResultsMaxSize+1)
	for high-low > 1 {
		count := (low + high) / 2
		h := s.given(func(i int) bool { return holds[i] })
		*f.at.in(h.Claims).count = count
		if ok, err := s.try(ctx, h); ok && err == nil {
			low = count
		} else {
			high = count
		}
	}
	return lossOf(low, required)
}

// isOwnClaim reports whether a claim is one of the pod's.
func isOwnClaim(q *eligibility.Question, claim *resourceapi.ResourceClaim) bool {
	return slices.ContainsFunc(q.PodClaims, func(pc cluster.PodClaim) bool {
		return pc.Claim != nil && pc.Claim.Namespace == claim.Namespace && pc.Claim.Name == claim.Name
	})
}

// priority returns the highest of the pods that use a claim.
func priority(q *eligibility.Question, claim *resourceapi.ResourceClaim) int32 {
	highest := int32(0)
	for i, pod := range lifecycle.PodsUsing(q.Cluster.Snapshot, claim) {
		if priority := ptr.Deref(pod.Spec.Priority, 0); i == 0 || priority > highest {
			highest = priority
		}
	}
	return highest
}
