// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// proofTime bounds the search for a conflict and for remedies.
const proofTime = 3 * time.Second

// prove finds out which facts cannot hold together on the most promising node,
// and what would make the claims fit. It adds nothing if that cannot be told,
// or not in time.
func (x *inquiry) prove(ctx context.Context) error {
	if pod := x.Pod; pod != nil && pod.Spec.NodeName != "" {
		// It is too late to change anything.
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	if text := x.nominated(limited); text != "" && x.out.Verdict == api.DoesNotFit {
		x.out.Summary = text
		return ctx.Err()
	}
	all := x.prospects(limited)
	near := slices.DeleteFunc(slices.Clone(all), func(p *prospect) bool { return p.scenario == nil })
	if len(near) > 0 {
		p := near[0]
		p.searched = true
		if x.aboutFacts() {
			x.findConflict(limited, p)
			if len(p.conflict) > 0 {
				x.out.Conflict = p.scenario.describe(limited, p.conflict)
			}
		}
		if x.out.Verdict == api.DoesNotFit {
			x.lead(limited, near)
		}
		if asking := x.nearestAsking(near); asking != p && x.aboutFacts() {
			asking.searched = true
			x.findConflict(limited, asking)
		}
	} else if text := x.noDevices(); text != "" && x.out.Verdict == api.DoesNotFit {
		x.out.Summary = text
	}
	x.findRemedies(limited, near)
	return ctx.Err()
}

// findConflict looks for the conflict on a node.
func (x *inquiry) findConflict(ctx context.Context, p *prospect) {
	if chosen, err := p.scenario.conflict(ctx); err == nil {
		p.conflict = chosen
	}
}

// lead puts the nearest nodes first, and what is to be said of the nearest one
// into the summary.
func (x *inquiry) lead(ctx context.Context, near []*prospect) {
	rank := map[string]int{}
	for i, p := range near {
		for _, node := range p.nodes {
			rank[node.Name] = len(near) - i
		}
	}
	rankOf := func(g api.NodeGroup) int {
		highest := 0
		for _, name := range g.Names {
			highest = max(highest, rank[name])
		}
		return highest
	}
	slices.SortStableFunc(x.out.Nodes, func(a, b api.NodeGroup) int { return cmp.Compare(rankOf(b), rankOf(a)) })
	if x.subject.only != nil {
		return
	}
	if text := x.headline(ctx, near); text != "" {
		x.out.Summary = text
	}
}

// aboutFacts reports whether the answer is one that facts can explain: not if the
// allocator gives up before it looks at any devices.
func (x *inquiry) aboutFacts() bool {
	return x.out.Verdict == api.DoesNotFit ||
		slices.Contains([]api.Code{api.ClaimLimitExceeded, api.PoolIncomplete, api.PoolInvalid}, x.out.Nodes[0].Code)
}

// describe puts a conflict into its public form.
func (s *scenario) describe(ctx context.Context, chosen []int) *api.Conflict {
	c := &api.Conflict{Node: s.node.Name, AnyOneSuffices: true}
	for _, i := range chosen {
		c.Facts = append(c.Facts, api.ConflictFact{Text: s.facts[i].text, Evidence: s.facts[i].evidence})
		c.AnyOneSuffices = c.AnyOneSuffices && s.enough(ctx, i)
	}
	c.OtherNodeCount = s.sameOn(ctx, chosen)
	return c
}

// enough reports whether giving up one fact makes the claims fit.
func (s *scenario) enough(ctx context.Context, given int) bool {
	h := s.given(func(i int) bool { return i != given })
	if own := s.facts[given].holder; own != nil && isOwnClaim(s.x.Question, own) {
		// The pod needs devices for that claim all the same.
		h.claims = append(h.claims, whatif.Unallocated(own))
		h.snap.Claims = slices.DeleteFunc(slices.Clone(h.snap.Claims), func(c *resourceapi.ResourceClaim) bool {
			return c.Namespace == own.Namespace && c.Name == own.Name
		})
	}
	ok, err := s.try(ctx, h)
	return ok && err == nil
}

// conflict finds a minimal set of facts that cannot hold together. It is nil if
// the claims do not fit even without all of them. The method is QuickXplain
// (Junker, AAAI 2004); earlier facts are preferred.
func (s *scenario) conflict(ctx context.Context) ([]int, error) {
	all, granted, err := s.doubt(ctx)
	if err != nil || all == nil {
		return nil, err
	}
	chosen, err := s.explain(ctx, granted, false, all)
	if err != nil {
		return nil, err
	}
	// The method assumes that giving up a fact never hurts. It may: a
	// selector can fail on a device that was in use before.
	if ok, err := s.fits(ctx, slices.Concat(granted, chosen)); err != nil || ok {
		return nil, err
	}
	for i := range chosen {
		rest := slices.Delete(slices.Clone(chosen), i, i+1)
		if ok, err := s.fits(ctx, slices.Concat(granted, rest)); err != nil || !ok {
			return nil, err
		}
	}
	return chosen, nil
}

// doubt tells which facts may be part of the conflict, and which are taken for
// granted: that there are requests, and what classes select, as long as giving
// up other facts helps. Where each request fits alone, the others are doubted
// before the classes. There is nothing to doubt if not even all of it helps.
func (s *scenario) doubt(ctx context.Context) (doubted, granted []int, err error) {
	orders := [][]factKind{{factRequest, factClass}, {factRequest}, {factClass}, {}}
	for level, undoubted := range orders {
		if level == 1 && s.eachAlone(ctx) {
			orders[1], orders[2] = orders[2], orders[1]
			undoubted = orders[1]
		}
		doubted, granted = nil, nil
		for i := range s.facts {
			if slices.Contains(undoubted, s.facts[i].kind) {
				granted = append(granted, i)
			} else {
				doubted = append(doubted, i)
			}
		}
		ok, err := s.fits(ctx, granted)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			s.undoubted = undoubted
			return doubted, granted, nil
		}
	}
	return nil, nil, nil
}

// eachAlone reports whether each request fits without the others.
func (s *scenario) eachAlone(ctx context.Context) bool {
	several := false
	for i := range s.facts {
		if s.facts[i].kind != factRequest {
			continue
		}
		several = true
		ok, err := s.try(ctx, s.given(func(j int) bool { return s.facts[j].kind != factRequest || j == i }))
		if err != nil || !ok {
			return false
		}
	}
	return several
}

// explain is the recursion of QuickXplain: a minimal part of candidates that
// conflict with background. grown reports whether something was added
// to the background since it was last checked.
func (s *scenario) explain(ctx context.Context, background []int, grown bool, candidates []int) ([]int, error) {
	if grown {
		ok, err := s.fits(ctx, background)
		if err != nil || !ok {
			return nil, err
		}
	}
	if len(candidates) <= 1 {
		return candidates, nil
	}
	half := len(candidates) / 2
	first, second := candidates[:half], candidates[half:]
	fromSecond, err := s.explain(ctx, slices.Concat(background, first), true, second)
	if err != nil {
		return nil, err
	}
	fromFirst, err := s.explain(ctx, slices.Concat(background, fromSecond), len(fromSecond) > 0, first)
	if err != nil {
		return nil, err
	}
	return slices.Concat(fromFirst, fromSecond), nil
}

// maxSame bounds the nodes that are compared with the one of the conflict.
const maxSame = 500

// sameOn counts the other nodes with the same conflict: the same wishes, and
// all claims, taints or pools of that node in the place of those of this one.
// There, too, they cannot hold together, but without any one of the wishes, or
// without all facts of one kind, they could. It is 0 if there are too many
// nodes to tell.
func (s *scenario) sameOn(ctx context.Context, chosen []int) int {
	var others []*corev1.Node
	for _, node := range s.x.Cluster.Candidates {
		if node != s.node && len(s.x.Cluster.Pools[node.Name]) > 0 {
			others = append(others, node)
		}
	}
	groups := s.x.contents.Groups(s.x.Question, others)
	if len(groups) > maxSame {
		return 0
	}
	same := 0
	for _, nodes := range groups {
		other, err := s.x.newScenario(nodes[0])
		if err != nil || len(other.facts) > maxFacts {
			continue
		}
		if other.like(ctx, s, chosen) {
			same += len(nodes)
		}
		if ctx.Err() != nil {
			return 0
		}
	}
	return same
}

// like reports whether a scenario has the conflict of another one.
func (s *scenario) like(ctx context.Context, model *scenario, chosen []int) bool {
	// part tells which of the chosen facts one of this scenario stands for.
	part := make([]int, len(s.facts))
	for i := range s.facts {
		part[i] = slices.IndexFunc(chosen, func(c int) bool { return model.facts[c].stands(&s.facts[i]) })
	}
	fits := func(without int) bool {
		ok, err := s.try(ctx, s.given(func(i int) bool {
			return part[i] >= 0 && part[i] != without || slices.Contains(model.undoubted, s.facts[i].kind)
		}))
		return ok || err != nil
	}
	if fits(-1) {
		return false
	}
	for at := range chosen {
		// Facts of one kind that are in the way are taken together.
		if first := slices.IndexFunc(chosen, func(c int) bool { return model.facts[c].stands(&model.facts[chosen[at]]) }); first != at {
			continue
		}
		if !fits(at) {
			return false
		}
	}
	return true
}

// stands reports whether another fact, perhaps of another node, can be taken for
// this one: if it is the same wish, or in the way as this one is.
func (f *fact) stands(other *fact) bool {
	if f.kind > factConstraint && f.kind != factClass {
		return f.kind == other.kind
	}
	return f.kind == other.kind && f.at == other.at && f.selector == other.selector && f.conjunct == other.conjunct &&
		f.capacity == other.capacity && f.constraint == other.constraint && f.class == other.class
}
