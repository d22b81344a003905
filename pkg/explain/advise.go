// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// adviceSteps bounds the search for a conflict and for remedies, besides what the
// nodes take anyway: a few seconds.
const adviceSteps = 30_000_000

// advise finds the conflict on the most promising node, and what would make the
// claims fit. It returns the reason why they do not, empty where no more is known of
// it than the nodes say. Where the search was given up, an assumption says so.
func (x *builder) advise(ctx context.Context) (reason, error) {
	if pod := x.Pod; pod != nil && pod.Spec.NodeName != "" {
		// It is too late to change anything.
		return reason{}, nil
	}
	steps := adviceSteps + advice.StepsOfNodes(len(x.Reach.Candidates))
	limited, budget := allocator.WithBudget(ctx, steps)
	defer budget.End()
	h := &headlines{Question: x.Question, out: x.out, target: x.Target, confirmer: x.confirmer, reasons: x.reasons}
	if text := h.nominated(limited); text != "" && x.out.Verdict == api.DoesNotFit {
		return reason{what: text}, ctx.Err()
	}
	c := x.conflictCase()
	near := c.Nearest(limited)
	if len(near) > 0 {
		found := near[0].Conflict(limited)
		if c.Only == "" || near[0].Node().Name == c.Only {
			x.out.Conflict = found
		}
	}
	var said reason
	if x.out.Verdict == api.DoesNotFit {
		nearestFirst(x.out.Nodes, near, c.Only)
		if x.Target.Only == nil {
			said = h.of(limited, near)
		}
	}
	x.out.NextSteps = append(x.out.NextSteps, measureSteps(x.Question)...)
	var undecided int
	x.out.Remedies, x.out.MoreRemedies, undecided = c.Remedies(limited, near)
	switch {
	case budget.Spent():
		x.out.Assumptions = append(x.out.Assumptions, fmt.Sprintf("not evaluated: further conflicts and remedies (the search stops after %s steps)", english.Thousands(adviceSteps)))
	case undecided > 0 && len(x.out.Remedies) == 0:
		x.out.Assumptions = append(x.out.Assumptions, fmt.Sprintf("not evaluated: %s that may help (the allocator's search takes too many steps)", english.Count(undecided, "change")))
	}
	return said, ctx.Err()
}

// measureSteps returns the steps for values that selectors read and drivers have not
// measured.
func measureSteps(q *eligibility.Question) []api.NextStep {
	var steps []api.NextStep
	for i := range q.Claims {
		for _, f := range slices.Concat(q.Claims[i].Funnels...) {
			selectors := f.Request.Selectors
			if f.Checks.Class != nil {
				selectors = slices.Concat(f.Checks.Class.Spec.Selectors, selectors)
			}
			for _, s := range selectors {
				if s.CEL == nil {
					continue
				}
				sel := q.Selectors.Compile(s.CEL.Expression)
				for c := range sel.Conjuncts {
					unmeasured := q.Catalog.UnmeasuredBy(&sel.Conjuncts[c])
					drivers := slices.DeleteFunc(slices.Clone(unmeasured.Drivers), func(driver string) bool {
						return !slices.ContainsFunc(f.Devices, func(d cluster.Device) bool { return d.ID.Driver == driver })
					})
					step := api.NextStep{Actor: api.ActorAdmin, Text: fmt.Sprintf("find out why driver %s does not measure the %s of its devices: see its log", english.JoinAnd(drivers), unmeasured.Read.Noun())}
					if len(drivers) > 0 && !slices.ContainsFunc(steps, func(have api.NextStep) bool { return have.Text == step.Text }) {
						steps = append(steps, step)
					}
				}
			}
		}
	}
	return steps
}

// conflictCase returns what conflicts and remedies are looked for with.
func (x *builder) conflictCase() *advice.Case {
	c := &advice.Case{
		Verdict: x.Verdict, Nodes: reachable(x.Verdict), Contents: x.contents, Confirmer: x.confirmer, Only: x.Reach.OnlyNode(),
	}
	if len(x.out.Nodes) > 0 {
		c.NodeCode = x.out.Nodes[0].Code
	}
	return c
}

// reachable returns the nodes on which changes could make the claims fit. A DaemonSet
// creates each pod for one node: whatever changes, it does not run on another one.
func reachable(v *verdict.Verdict) []*corev1.Node {
	nodes := v.Target.Nodes(v.Cluster)
	if v.Pod == nil || snapshot.DaemonNode(v.Pod) == "" {
		return nodes
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(node *corev1.Node) bool { return node.Name != snapshot.DaemonNode(v.Pod) })
}

// nearestFirst sorts groups of nodes by how near one of their nodes is. The only node
// that a pod selects, if there is one, is nearer than all others.
func nearestFirst(groups []api.NodeGroup, near []*advice.Prospect, only string) {
	rank := map[string]int{}
	for i, p := range near {
		for _, node := range p.Nodes {
			rank[node.Name] = len(near) - i
		}
	}
	rank[only] = len(near) + 1
	rankOf := func(g api.NodeGroup) int {
		highest := 0
		for _, name := range g.Names {
			highest = max(highest, rank[name])
		}
		return highest
	}
	slices.SortStableFunc(groups, func(a, b api.NodeGroup) int { return cmp.Compare(rankOf(b), rankOf(a)) })
}
