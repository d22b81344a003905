// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"context"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// environment proposes changes that are enough on a node without a change of the request:
// once by the user wherever there is a choice, once by an administrator.
func (r *remedies) environment(ctx context.Context, p *Prospect) error {
	if len(p.environment) == 0 {
		return nil
	}
	var choices [][]measure
	var holders []*fact
	for _, i := range p.environment {
		f := &p.Scenario.facts[i]
		if f.kind == factHolder {
			if r.keeps(f.holder) {
				return nil
			}
			holders = append(holders, f)
			continue
		}
		choices = append(choices, r.measures(p, f))
	}
	if len(holders) > 0 {
		choices = append(choices, []measure{r.release(holders)})
	}
	for _, preferred := range []string{api.ActorUser, api.ActorAdmin} {
		c := change{changes: len(p.environment)}
		var texts []string
		var operations []claimEdit
		for _, measures := range choices {
			if len(measures) == 0 {
				return nil
			}
			m := measures[max(0, slices.IndexFunc(measures, func(m measure) bool { return m.actor == preferred }))]
			texts = append(texts, m.text)
			operations = append(operations, m.pod...)
			c.objects, c.claims = append(c.objects, m.objects...), append(c.claims, m.claims...)
			if len(choices) == 1 {
				c.lessOf = m.lessOf
			}
			c.silent, c.loss, c.gate = c.silent || m.silent, max(c.loss, m.loss), cmp.Or(c.gate, m.gate)
			c.actor = together(c.actor, m.actor)
		}
		if len(operations) > 0 {
			edits, silent := r.podEdits(mergedPodEdits(r.Pod, operations))
			if len(edits) == 0 {
				continue
			}
			c.objects, c.silent = append(c.objects, edits...), c.silent || silent
		}
		// From the end of a list, so that the places of the others stay right.
		slices.SortStableFunc(c.objects, func(a, b api.Edit) int {
			return cmp.Or(cmp.Compare(a.Object.String(), b.Object.String()), english.CompareNames(b.Path, a.Path))
		})
		c.text = strings.Join(texts, "; and ")
		if _, err := r.propose(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// released proposes that the fewest claims are released that are enough.
func (r *remedies) released(ctx context.Context) error {
	if r.scenario == nil {
		return nil
	}
	var others, holders []int
	for i := range r.scenario.facts {
		if f := &r.scenario.facts[i]; f.kind != factHolder || r.keeps(f.holder) {
			others = append(others, i)
		} else {
			holders = append(holders, i)
		}
	}
	if len(holders) == 0 {
		return nil
	}
	if ok, err := r.scenario.fits(ctx, others); err != nil || !ok {
		return err
	}
	given, err := r.scenario.fewest(ctx, others, holders)
	if err != nil || len(given) == 0 {
		return err
	}
	facts := make([]*fact, 0, len(given))
	for _, i := range given {
		facts = append(facts, &r.scenario.facts[i])
	}
	m := r.release(facts)
	_, err = r.propose(ctx, change{actor: m.actor, text: m.text, objects: m.objects, silent: m.silent, changes: len(given)})
	return err
}

// keeps reports whether the claim belongs to the target or to another pod of its workload,
// whose controller would create that pod again, with the same needs.
func (c *Case) keeps(claim *resourceapi.ResourceClaim) bool {
	return isOwnClaim(c.Question, claim) || c.Target.Workload && slices.ContainsFunc(lifecycle.PodsUsing(c.Cluster.Snapshot, claim), c.concerns)
}
