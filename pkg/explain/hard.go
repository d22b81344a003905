// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/behavior"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/counting"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
)

// Where counting proves that nothing fits, the allocator is not waited for long.
const (
	// triedHard is on how many such nodes it is asked all the same, provedSteps how
	// many steps it may take on each: some hundredths of a second.
	triedHard   = 2
	provedSteps = 300_000
	// schedulerLimit is how long the scheduler waits, where it has a limit.
	schedulerLimit = 10 * time.Second
)

// check asks the allocator about the candidates, of equivalent ones about
// the first. Nodes that have too few devices, and those that it would search for long although
// counting says that nothing fits there, are not asked about. The latter are returned as hard.
// About the first node it is asked in any case: an error that is the same for all nodes is one
// there, too.
func check(ctx context.Context, q *funnel.Question, equivalent []int, isHard func(context.Context, *funnel.Question, *corev1.Node) bool) (verdicts []allocator.Verdict, hard []int) {
	var first []int
	var nodes []*corev1.Node
	for i, node := range q.Reach.Candidates {
		if equivalent[i] == i {
			first, nodes = append(first, i), append(nodes, node)
		}
	}
	verdicts = make([]allocator.Verdict, len(equivalent))
	few := map[*corev1.Node]bool{}
	asked, notAsked := counting.CheckUnless(ctx, q, nodes, func(ctx context.Context, node *corev1.Node) bool {
		few[node] = node != nodes[0] && counting.TooFew(ctx, q, node)
		return few[node] || isHard(ctx, q, node)
	})
	for at, verdict := range asked {
		verdicts[first[at]] = verdict
	}
	for _, at := range notAsked {
		if !few[nodes[at]] {
			hard = append(hard, first[at])
		}
	}
	spread(equivalent, verdicts)
	return verdicts, hard
}

// spread gives nodes the verdict of the one that they are equivalent to, and makes those
// after an error that ends the attempt NotTried.
func spread(equivalent []int, verdicts []allocator.Verdict) {
	for i, first := range equivalent {
		if first != i {
			verdicts[i] = verdicts[first]
		}
	}
	end := slices.IndexFunc(verdicts, func(v allocator.Verdict) bool { return v.EndsAttempt })
	for i := range verdicts {
		if end >= 0 && i > end {
			verdicts[i] = allocator.Verdict{Outcome: allocator.NotTried}
		}
	}
}

func anyFits(verdicts []allocator.Verdict) bool {
	return slices.ContainsFunc(verdicts, func(v allocator.Verdict) bool { return v.Outcome == allocator.Fits })
}

// search is the allocator's own search on nodes that were decided by counting.
// It goes on in the background until it has taken provedSteps.
type search struct {
	nodes    []int
	verdicts []allocator.Verdict
	budgets  []*allocator.Budget
	workers  sync.WaitGroup
}

func startSearch(ctx context.Context, q *funnel.Question, hard []int) *search {
	s := &search{nodes: hard[:min(len(hard), triedHard)]}
	s.verdicts = make([]allocator.Verdict, len(s.nodes))
	for at, i := range s.nodes {
		node := q.Reach.Candidates[i]
		claims, err := q.ClaimsFor(node)
		if err != nil {
			s.verdicts[at] = allocator.Verdict{Outcome: allocator.NodeError, Err: err}
			continue
		}
		limited, budget := allocator.WithBudget(ctx, provedSteps)
		s.budgets = append(s.budgets, budget)
		s.workers.Go(func() { s.verdicts[at] = allocator.Of(q.Cluster).Check(limited, node, claims) })
	}
	return s
}

func (s *search) stop() {
	for _, budget := range s.budgets {
		budget.End()
	}
	s.workers.Wait()
}

// await waits for the search. It corrects the verdicts, and reports whether it
// had to, where the allocator says something else than counting, or would make
// the scheduler give up although there is a node where the claims fit.
func (x *builder) await(ctx context.Context, s *search, equivalent []int, verdicts []allocator.Verdict) (changed bool, err error) {
	s.workers.Wait()
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("check the nodes: %w", err)
	}
	slow := -1
	for at, i := range s.nodes {
		switch verdict := s.verdicts[at]; verdict.Outcome {
		case allocator.DoesNotFit:
		case allocator.GivenUp, allocator.TimedOut:
			if slow < 0 {
				slow = i
			}
		default:
			verdicts[i], changed = verdict, true
		}
	}
	if changed {
		spread(equivalent, verdicts)
	}
	if slow < 0 || verdicts[slow].Outcome != allocator.DoesNotFit {
		return changed, ctx.Err()
	}
	if !anyFits(verdicts) {
		x.slowNode = x.Reach.Candidates[slow].Name
		return changed, nil
	}
	if !x.Cluster.Behaves(behavior.TimeoutEndsAttempt) {
		return changed, nil
	}
	claims, err := x.ClaimsFor(x.Reach.Candidates[slow])
	if err != nil {
		return false, err
	}
	c := allocator.Reopen(x.Cluster, allocator.WithTimeout(schedulerLimit))
	if verdict := allocator.Of(c).Check(ctx, x.Reach.Candidates[slow], claims); verdict.Outcome == allocator.TimedOut {
		verdicts[slow], changed = verdict, true
	}
	return changed, ctx.Err()
}
