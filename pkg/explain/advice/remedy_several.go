// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// several proposes one change of several edits, where no user can do anything with one.
func (r *remedies) several(ctx context.Context, p *Prospect) error {
	if len(r.conflict) == 0 || slices.ContainsFunc(r.found, func(have remedy) bool { return have.Actor == api.ActorUser }) {
		return nil
	}
	if ok, err := r.mildest(ctx, p); ok || err != nil {
		return err
	}
	return r.dropped(ctx)
}

// mildest proposes one change that has the mildest edit for each cause. The edits are found
// one after the other: an edit helps if fewer causes are left with it.
func (r *remedies) mildest(ctx context.Context, p *Prospect) (bool, error) {
	unsuitable := slices.ContainsFunc(r.scenario.facts, func(f fact) bool { return f.kind == factRestriction })
	// Each change alone was tried before.
	if !p.allCauses || len(p.causes) < 2 && !unsuitable {
		return false, nil
	}
	here, causes := r, p.causes
	for len(causes) > 0 {
		then, left, ok := here.without(ctx, causes)
		if !ok {
			return false, ctx.Err()
		}
		here, causes = then, left
	}
	waits := slices.ContainsFunc(r.found, func(have remedy) bool { return have.Actor == api.ActorNobody })
	if waits && !unsuitable && !slices.ContainsFunc(here.made, func(made change) bool { return made.actor != api.ActorNobody }) {
		// One remedy waits for all claims already.
		return false, nil
	}
	c := joined(here.made)
	c.loss, c.claims = max(c.loss, lossSeveral), merged(c.claims)
	if unsuitable {
		operations, texts := suitable(r.scenario)
		if len(operations) == 0 {
			return false, nil
		}
		edits, silent := r.podEdits(mergedPodEdits(r.Pod, operations))
		c.actor, c.objects, c.silent = api.ActorUser, append(c.objects, edits...), c.silent || silent
		c.changes, c.text = c.changes+len(texts), strings.Join(slices.DeleteFunc(append(texts, c.text), func(text string) bool { return text == "" }), "; and ")
	}
	if c.changes < 2 {
		return false, nil
	}
	return r.propose(ctx, c)
}

// without makes the mildest edit for the first cause after which fewer causes are left.
func (r *remedies) without(ctx context.Context, causes [][]int) (then *remedies, left [][]int, ok bool) {
	var others []string
	for _, cause := range causes[1:] {
		for _, i := range cause {
			others = append(others, r.scenario.facts[i].text)
		}
	}
	// helps reports whether the claims fit after a change, where the other causes are given up.
	helps := func(ctx context.Context, c change) (*remedies, bool) {
		then, err := r.with(c)
		if err != nil || then == nil {
			return nil, false
		}
		s := then.scenario
		ok, err := s.try(ctx, s.given(func(i int) bool {
			return s.facts[i].kind != factRestriction && !slices.Contains(others, s.facts[i].text)
		}))
		return then, err == nil && ok
	}
	var options []change
	var holders []*fact
	for _, i := range causes[0] {
		switch f := &r.scenario.facts[i]; f.kind { //nolint:exhaustive // others cannot be combined
		case factTaint:
			if tolerate := r.scenario.tolerate(f); len(tolerate.claims) > 0 {
				options = append(options, tolerate)
			}
		case factHolder:
			if !r.keeps(f.holder) {
				holders = append(holders, f)
			}
		default:
			if f.kind == factSelector {
				for _, c := range correctedInClaims(ctx, r.Case) {
					if c.at == f.at && c.index == f.selector {
						options = append(options, correction(r.waiting(), c))
					}
				}
			}
			if !r.scenario.extended(f.at.claim) {
				options = append(options, milder(ctx, r.scenario, f, func(ctx context.Context, edits ...claimEdit) bool {
					_, ok := helps(ctx, change{claims: edits})
					return ok
				})...)
			}
		}
	}
	slices.SortStableFunc(options, func(a, b change) int { return cmp.Compare(a.loss, b.loss) })
	if len(options) == 0 && len(holders) > 0 {
		m := r.release(holders)
		options = append(options, change{actor: m.actor, text: m.text, objects: m.objects, silent: m.silent})
	}
	for _, option := range options {
		if then, ok := helps(ctx, option); ok {
			left, all := then.scenario.causes(ctx, nil)
			return then, left, all && len(left) < len(causes)
		}
	}
	return nil, nil, false
}

// with looks for remedies on the same node after a change; it is nil if something else is
// in the way then.
func (r *remedies) with(c change) (*remedies, error) {
	from, made := cmp.Or(r.from, r.proposals), append(slices.Clone(r.made), c)
	q, err := from.changed(joined(made))
	if err != nil || q == nil {
		return nil, err
	}
	if len(q.Claims) != len(r.Claims) {
		return nil, nil
	}
	for i := range q.Claims {
		if len(q.Claims[i].Funnels) == 0 {
			// No change removes a request.
			q.Claims[i].Funnels = r.Claims[i].Funnels
		}
	}
	after, asked := *r.Case, *r.Verdict
	asked.Question = q
	after.Verdict = &asked
	scenario, err := after.Scenario(r.scenario.node)
	if err != nil {
		return nil, err
	}
	return &remedies{proposals: &proposals{Case: &after, scenario: scenario, from: from, made: made}}, nil
}

// merged leaves out edits of fields that a later edit replaces or removes.
func merged(edits []claimEdit) []claimEdit {
	var list []claimEdit
	for i, e := range edits {
		if e.op == "replace" && slices.ContainsFunc(edits[i+1:], func(later claimEdit) bool {
			return later.claim == e.claim && (later.op == "replace" && later.path == e.path || later.op == "remove" && strings.HasPrefix(e.path, later.path+"/"))
		}) {
			continue
		}
		list = append(list, e)
	}
	return list
}

// dropped gives up as many requirements as it takes.
func (r *remedies) dropped(ctx context.Context) error {
	operations, _ := suitable(r.scenario)
	suitable := len(operations) > 0
	var kept, given []int
	for i := range r.scenario.facts {
		required := false
		switch f := &r.scenario.facts[i]; f.kind { //nolint:exhaustive // the others are no requirements, or cannot be combined
		case factCount, factSelector, factCapacity, factConstraint:
			required = !r.scenario.extended(f.at.claim)
		case factTaint:
			required = true
		case factRestriction:
			required = suitable
		}
		if !required {
			kept = append(kept, i)
		}
	}
	if ok, err := r.scenario.fits(ctx, kept); err != nil || !ok {
		return err
	}
	for i := range r.scenario.facts {
		if slices.Contains(kept, i) {
			continue
		}
		ok, err := r.scenario.fits(ctx, append(slices.Clone(kept), i))
		if err != nil {
			return err
		}
		if ok {
			kept = append(kept, i)
		} else {
			given = append(given, i)
		}
	}
	if len(given) < 2 {
		return nil
	}
	_, err := r.propose(ctx, giveUp(r.scenario, given))
	return err
}

// giveUp makes one change of several.
func giveUp(s *Scenario, given []int) change {
	c := change{actor: api.ActorUser, loss: lossSeveral, changes: len(given)}
	var texts []string
	add := func(part change) {
		texts = append(texts, part.text)
		c.claims = append(c.claims, part.claims...)
	}
	restricted := slices.ContainsFunc(given, func(i int) bool { return s.facts[i].kind == factRestriction })
	if restricted {
		operations, reasons := suitable(s)
		c.objects, c.silent = s.whole.podEdits(mergedPodEdits(s.whole.Pod, operations))
		texts = append(texts, strings.Join(reasons, "; and "))
	}
	done, removed := map[[4]int]bool{}, map[int]int{}
	// From the end, so that the indices of what is removed stay right.
	for _, i := range slices.Backward(given) {
		f := &s.facts[i]
		name := ""
		if f.kind <= factCapacity {
			name = s.nameOf(f.at)
		}
		switch f.kind {
		case factCount:
			add(change{
				text:   fmt.Sprintf("request 1 device in request %s", name),
				claims: []claimEdit{{f.at.claim, "replace", f.at.pointer() + "/count", 1}},
			})
		case factSelector:
			key := [4]int{f.at.claim, f.at.request, f.at.alternative, f.selector}
			if done[key] {
				continue
			}
			done[key] = true
			sel := s.whole.Selectors.Compile((*f.at.in(s.claims).selectors)[f.selector].CEL.Expression)
			var conjuncts []int
			var required []string
			for _, j := range given {
				if other := &s.facts[j]; other.kind == factSelector && other.at == f.at && other.selector == f.selector {
					conjuncts = append(conjuncts, other.conjunct)
					required = append(required, sel.Conjuncts[other.conjunct].String())
				}
			}
			add(change{
				text:   fmt.Sprintf("remove the selector %s from request %s", english.JoinAnd(required), name),
				claims: withoutParts(s, f.at, f.selector, conjuncts),
			})
		case factCapacity:
			path := f.at.pointer() + "/capacity/requests/" + whatif.PointerToken(string(f.capacity))
			add(change{text: fmt.Sprintf("remove the capacity %s from request %s", f.capacity, name), claims: []claimEdit{{f.at.claim, "remove", path, nil}}})
			c.unbounded = append(c.unbounded, f.at)
		case factConstraint:
			part := withoutConstraint(s, f)
			if removed[f.at.claim]++; removed[f.at.claim] < len(s.claims[f.at.claim].Spec.Devices.Constraints) {
				part.claims[0].path = fmt.Sprintf("/devices/constraints/%d", f.constraint)
			} else {
				// An empty list is not what people write.
				part.claims[0].path = "/devices/constraints"
			}
			add(part)
		case factTaint:
			add(s.tolerate(f))
		case factAll, factRequest, factRestriction, factGate, factPool, factHolder, factCounters, factGroups, factClass:
		}
	}
	slices.Reverse(texts)
	c.text = strings.Join(texts, "; and ")
	return c
}
