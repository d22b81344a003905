// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Conflict looks for a conflict on the node. It is nil if there is none, or none
// was found in time.
func (p *Prospect) Conflict(ctx context.Context) *api.Conflict {
	p.searched = true
	if !p.Scenario.whole.aboutFacts() {
		return nil
	}
	p.findConflict(ctx)
	if len(p.conflict) == 0 {
		return nil
	}
	c := p.Scenario.describe(ctx, p.conflict)
	if len(p.conflict) == 1 {
		for _, cause := range p.causes {
			if f := &p.Scenario.facts[cause[0]]; len(cause) == 1 && cause[0] != p.conflict[0] {
				c.Besides = append(c.Besides, api.ConflictFact{Text: f.text, Evidence: f.evidence})
			}
		}
	}
	return c
}

func (p *Prospect) findConflict(ctx context.Context) {
	if chosen, err := p.Scenario.Conflict(ctx); err == nil {
		p.conflict = chosen
	}
	p.causes, p.allCauses = p.Scenario.causes(ctx, p.conflict)
}

// maxCauses bounds the causes that are looked for.
const maxCauses = 4

// causes finds conflicts without a common fact, one after the other, and reports whether
// the claims fit if the facts of all of them are given up. What makes the node unsuitable
// for the pod is no part of them. The conflict of all facts, if it is known, is the first
// where nothing does.
func (s *Scenario) causes(ctx context.Context, known []int) (causes [][]int, all bool) {
	var given []int
	for i := range s.facts {
		if s.facts[i].kind == factRestriction {
			given = append(given, i)
		}
	}
	if len(given) == 0 && len(known) > 0 {
		causes, given = append(causes, known), append(given, known...)
	}
	for {
		if ok, err := s.try(ctx, s.given(func(i int) bool { return !slices.Contains(given, i) })); err != nil || ok {
			return causes, ok
		}
		chosen, _, err := s.conflict(ctx, given)
		if err != nil || len(chosen) == 0 || len(causes) == maxCauses {
			return causes, false
		}
		causes, given = append(causes, chosen), append(given, chosen...)
	}
}

// Cause is one of several conflicts without a common fact.
type Cause struct {
	// Requirements are the facts that the claims ask for; there are none where all that is
	// in the way may pass.
	Requirements []Requirement
	// Alone is the node where nothing else is in the way.
	Alone Hypothesis
}

// Causes returns the conflicts without a common fact, the first of them first.
func (p *Prospect) Causes() []Cause {
	list := make([]Cause, 0, len(p.causes))
	for _, cause := range p.causes {
		c := Cause{Alone: p.Scenario.given(func(i int) bool {
			ofOthers := slices.ContainsFunc(p.causes, func(other []int) bool { return slices.Contains(other, i) })
			return slices.Contains(cause, i) || !p.Scenario.facts[i].environmental() && !ofOthers
		})}
		for _, i := range cause {
			if f := &p.Scenario.facts[i]; f.required() {
				c.Requirements = append(c.Requirements, requirementOf(f))
			}
		}
		list = append(list, c)
	}
	return list
}

// describe puts a conflict into its public form.
func (s *Scenario) describe(ctx context.Context, chosen []int) *api.Conflict {
	c := &api.Conflict{Node: s.node.Name, AnyOneSuffices: true}
	for _, i := range chosen {
		c.Facts = append(c.Facts, api.ConflictFact{Text: s.facts[i].text, Evidence: s.facts[i].evidence})
		c.AnyOneSuffices = c.AnyOneSuffices && s.enough(ctx, i)
	}
	if len(chosen) == 1 && s.facts[chosen[0]].kind == factRestriction {
		for i := range s.facts {
			if f := &s.facts[i]; i != chosen[0] && f.kind == factRestriction {
				c.Besides = append(c.Besides, api.ConflictFact{Text: f.text, Evidence: f.evidence})
			}
		}
	}
	c.OtherNodeCount = s.sameOn(ctx, chosen)
	return c
}

// Staying returns the node without everything that may pass and is no part of the conflict.
func (p *Prospect) Staying() Hypothesis { return p.Scenario.given(p.stays) }

// Requirement is a fact that the claims ask for.
type Requirement struct {
	api.ConflictFact
	// Count is true if it is how many devices a request needs.
	Count bool
}

func requirementOf(f *fact) Requirement {
	return Requirement{ConflictFact: api.ConflictFact{Text: f.text, Evidence: f.evidence}, Count: f.kind == factCount}
}

// Decides returns the requirement that alone keeps the claims from fitting on the nodes,
// whatever else passes; ok is false if there is none.
func (p *Prospect) Decides() (decisive Requirement, ok bool) {
	if len(p.conflict) != 1 {
		return Requirement{}, false
	}
	f := &p.Scenario.facts[p.conflict[0]]
	return requirementOf(f), f.required()
}

func (p *Prospect) stays(i int) bool {
	f := &p.Scenario.facts[i]
	// Where the pod cannot use the node, the conflict is about that alone.
	whole := len(p.conflict) == 0 || slices.ContainsFunc(p.conflict, func(i int) bool { return p.Scenario.facts[i].kind == factRestriction })
	return f.kind != factRestriction && (whole || !f.environmental() || slices.Contains(p.conflict, i))
}

// Passed reports whether claims, and taints of devices, are among what has passed then.
func (p *Prospect) Passed() (claims, taints bool) {
	for i := range p.Scenario.facts {
		if !p.stays(i) {
			claims = claims || p.Scenario.facts[i].kind == factHolder
			taints = taints || p.Scenario.facts[i].kind == factTaint
		}
	}
	return claims, taints
}

// enough reports whether giving up one fact makes the claims fit.
func (s *Scenario) enough(ctx context.Context, given int) bool {
	h := s.given(func(i int) bool { return i != given })
	if own := s.facts[given].holder; own != nil && isOwnClaim(s.whole.Question, own) {
		// The pod needs devices for that claim all the same.
		h.Claims = append(h.Claims, whatif.Unallocated(own))
		h.Snap.Claims = slices.DeleteFunc(slices.Clone(h.Snap.Claims), func(c *resourceapi.ResourceClaim) bool {
			return c.Namespace == own.Namespace && c.Name == own.Name
		})
	}
	ok, err := s.try(ctx, h)
	return ok && err == nil
}

// Conflict finds a minimal set of facts that cannot all hold. It is nil if
// the claims do not fit even without all of them.
func (s *Scenario) Conflict(ctx context.Context) ([]int, error) {
	chosen, assumed, err := s.conflict(ctx, nil)
	s.assumed = assumed
	return chosen, err
}

// conflict finds a minimal set of facts that cannot all hold where some are given up, and
// the kinds of facts that it assumes. Earlier facts are preferred.
func (s *Scenario) conflict(ctx context.Context, given []int) (chosen []int, assumed []factKind, err error) {
	suspected, granted, assumed, err := s.suspects(ctx, given)
	if err != nil || suspected == nil {
		return nil, nil, err
	}
	chosen, err = Minimal(func(facts []int) (bool, error) {
		ok, err := s.fits(ctx, facts)
		return !ok, err
	}, granted, suspected)
	if err != nil {
		return nil, nil, err
	}
	// The method assumes that giving up a fact never hurts. It may: a
	// selector can fail on a device that was in use before.
	if ok, err := s.fits(ctx, slices.Concat(granted, chosen)); err != nil || ok {
		return nil, nil, err
	}
	for i := range chosen {
		rest := slices.Delete(slices.Clone(chosen), i, i+1)
		if ok, err := s.fits(ctx, slices.Concat(granted, rest)); err != nil || !ok {
			return nil, nil, err
		}
	}
	return chosen, assumed, nil
}

// suspects tells which facts may be part of the conflict, and which are taken for
// granted: that there are requests, and what classes select, as long as giving
// up other facts helps. Where each request fits alone, the others are suspected
// before the classes. There is nothing to suspect if not even all of it helps.
func (s *Scenario) suspects(ctx context.Context, given []int) (suspected, granted []int, assumed []factKind, err error) {
	orders := [][]factKind{{factRequest, factClass}, {factRequest}, {factClass}, {}}
	for level := range orders {
		if level == 1 && s.eachAlone(ctx, given) {
			orders[1], orders[2] = orders[2], orders[1]
		}
		suspected, granted = nil, nil
		for i := range s.facts {
			switch {
			case slices.Contains(given, i):
			case slices.Contains(orders[level], s.facts[i].kind):
				granted = append(granted, i)
			default:
				suspected = append(suspected, i)
			}
		}
		ok, err := s.fits(ctx, granted)
		if err != nil {
			return nil, nil, nil, err
		}
		if ok {
			return suspected, granted, orders[level], nil
		}
	}
	return nil, nil, nil, nil
}

// eachAlone reports whether each request fits without the others, and without the facts
// that are given up.
func (s *Scenario) eachAlone(ctx context.Context, given []int) bool {
	several := false
	for i := range s.facts {
		if s.facts[i].kind != factRequest {
			continue
		}
		several = true
		ok, err := s.try(ctx, s.given(func(j int) bool {
			return j == i || s.facts[j].kind != factRequest && !slices.Contains(given, j)
		}))
		if err != nil || !ok {
			return false
		}
	}
	return several
}

// maxSame bounds the nodes that are compared with the one of the conflict.
const maxSame = 500

// sameOn counts the other nodes with the same conflict: the same requirements, with the
// claims, taints or pools of that node. There, too, they cannot all hold, but without any
// one of the requirements, or without all facts of one kind, they could. It is 0 if there
// are too many nodes to tell.
func (s *Scenario) sameOn(ctx context.Context, chosen []int) int {
	var others []*corev1.Node
	for _, node := range s.whole.Reach.Candidates {
		if node != s.node && len(s.whole.Reach.Pools[node.Name]) > 0 {
			others = append(others, node)
		}
	}
	groups, ok := s.whole.Contents.FewGroups(s.whole.Question, others, maxSame)
	if !ok {
		return 0
	}
	same := 0
	for _, nodes := range groups {
		other, err := s.whole.Scenario(nodes[0])
		if err != nil || len(other.facts) > maxFacts {
			continue
		}
		if other.sharesConflict(ctx, s, chosen) {
			same += len(nodes)
		}
		if ctx.Err() != nil {
			return 0
		}
	}
	return same
}

// sharesConflict reports whether a scenario has the conflict of another one.
func (s *Scenario) sharesConflict(ctx context.Context, model *Scenario, chosen []int) bool {
	// part tells which of the chosen facts one of this scenario stands for.
	part := make([]int, len(s.facts))
	for i := range s.facts {
		part[i] = slices.IndexFunc(chosen, func(c int) bool { return model.facts[c].sameAs(&s.facts[i]) })
	}
	fits := func(without int) bool {
		ok, err := s.try(ctx, s.given(func(i int) bool {
			return part[i] >= 0 && part[i] != without || slices.Contains(model.assumed, s.facts[i].kind)
		}))
		return ok || err != nil
	}
	if fits(-1) {
		return false
	}
	for at := range chosen {
		// Facts of one kind that are in the way are taken together.
		if first := slices.IndexFunc(chosen, func(c int) bool { return model.facts[c].sameAs(&model.facts[chosen[at]]) }); first != at {
			continue
		}
		if !fits(at) {
			return false
		}
	}
	return true
}

// sameAs reports whether another fact, perhaps of another node, can be taken for
// this one: if it is the same requirement, or in the way as this one is.
func (f *fact) sameAs(other *fact) bool {
	if f.kind > factConstraint && f.kind != factClass {
		return f.kind == other.kind
	}
	return f.kind == other.kind && f.at == other.at && f.selector == other.selector && f.conjunct == other.conjunct &&
		f.capacity == other.capacity && f.constraint == other.constraint && f.class == other.class
}

// Minimal returns a minimal part of candidates with which, and with a background, a condition holds.
// It must hold with all of them. The method is QuickXplain (Junker, AAAI 2004); earlier candidates
// are preferred. It assumes that more candidates never end what holds: where they may, the caller
// checks the result.
func Minimal(holds func([]int) (bool, error), background, candidates []int) ([]int, error) {
	return minimal(holds, background, false, candidates)
}

// minimal recurs for Minimal. grown reports whether something was added to the background
// since it was last checked.
func minimal(holds func([]int) (bool, error), background []int, grown bool, candidates []int) ([]int, error) {
	if grown {
		ok, err := holds(background)
		if err != nil || ok {
			return nil, err
		}
	}
	if len(candidates) <= 1 {
		return candidates, nil
	}
	half := len(candidates) / 2
	first, second := candidates[:half], candidates[half:]
	fromSecond, err := minimal(holds, slices.Concat(background, first), true, second)
	if err != nil {
		return nil, err
	}
	fromFirst, err := minimal(holds, slices.Concat(background, fromSecond), len(fromSecond) > 0, first)
	if err != nil {
		return nil, err
	}
	return slices.Concat(fromFirst, fromSecond), nil
}
