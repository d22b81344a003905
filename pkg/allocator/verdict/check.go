// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// Where counting proves that nothing fits, the allocator is not waited for long.
const (
	// triedHard is on how many such nodes it is asked all the same, ProvedSteps how
	// many steps it may take on each: some hundredths of a second.
	triedHard   = 2
	ProvedSteps = 300_000
	// SchedulerLimit is how long the scheduler waits, where it has a limit.
	SchedulerLimit = 10 * time.Second
)

// check asks the allocator about the candidates, of equivalent ones about the first. It is not
// asked about nodes that have too few devices. Nodes that it would search for long although
// counting says that nothing fits there are hard: it may take few steps on the first of these.
// About the first candidate it is asked in any case: an error that is the same for all nodes is
// one there, too.
func (v *Verdict) check(ctx context.Context) error {
	candidates := v.Reach.Candidates
	v.Signatures = NewNodeSignatures(v.Question)
	v.Equivalent, v.TooFew = make([]int, len(candidates)), make([]bool, len(candidates))
	var others []int
	var compared []*corev1.Node
	few := -1
	for i, node := range candidates {
		if v.TooFew[i] = i > 0 && TooFewDevices(ctx, v.Question, node); !v.TooFew[i] {
			others, compared = append(others, i), append(compared, node)
			continue
		}
		if few < 0 {
			few = i
		}
		v.Equivalent[i] = few
	}
	for at, of := range v.Signatures.Equivalent(ctx, compared) {
		v.Equivalent[others[at]] = others[of]
	}
	hard := v.ask(ctx)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("check the nodes: %w", err)
	}
	if err := v.search(ctx, hard); err != nil {
		return err
	}
	for i := range v.Checked {
		switch v.Checked[i].Outcome {
		case allocator.Fits, allocator.DoesNotFit, allocator.NodeError, allocator.Failed, allocator.TimedOut, allocator.NotTried:
		default:
			return fmt.Errorf("check node %s: %w", candidates[i].Name, v.Checked[i].Err)
		}
	}
	return ctx.Err()
}

// ask asks the allocator about the nodes that are not hard, whose indices it returns.
func (v *Verdict) ask(ctx context.Context) (hard []int) {
	var first []int
	var nodes []*corev1.Node
	v.Checked = make([]allocator.NodeVerdict, len(v.Equivalent))
	for i, node := range v.Reach.Candidates {
		switch {
		case v.TooFew[i]:
			v.Checked[i] = allocator.NodeVerdict{Outcome: allocator.DoesNotFit}
		case v.Equivalent[i] == i:
			first, nodes = append(first, i), append(nodes, node)
		}
	}
	asked, notAsked := CheckUnless(ctx, v.Question, nodes, func(ctx context.Context, node *corev1.Node) bool {
		return IsHard(ctx, v.Question, node)
	})
	for at, verdict := range asked {
		v.Checked[first[at]] = verdict
	}
	for _, at := range notAsked {
		hard = append(hard, first[at])
	}
	v.spread()
	return hard
}

// CheckNode asks the allocator about one node, whether it is a candidate or not, unless counting
// says that nothing fits there and the search would take long.
func CheckNode(ctx context.Context, q *eligibility.Question, node *corev1.Node) allocator.NodeVerdict {
	verdicts, _ := CheckUnless(ctx, q, []*corev1.Node{node}, func(ctx context.Context, node *corev1.Node) bool {
		return IsHard(ctx, q, node)
	})
	return verdicts[0]
}

// spread gives nodes the verdict of their equivalent node, and sets nodes after an error
// that ends the attempt to NotTried.
func (v *Verdict) spread() {
	for i, first := range v.Equivalent {
		if first != i {
			v.Checked[i] = v.Checked[first]
		}
	}
	end := slices.IndexFunc(v.Checked, func(checked allocator.NodeVerdict) bool { return checked.EndsAttempt })
	for i := range v.Checked {
		if end >= 0 && i > end {
			v.Checked[i] = allocator.NodeVerdict{Outcome: allocator.NotTried}
		}
	}
}

// search asks the allocator about the first hard nodes, for ProvedSteps steps. It corrects
// the verdicts where the allocator disagrees with counting, or would make the scheduler
// give up although the claims fit on a node.
func (v *Verdict) search(ctx context.Context, hard []int) error {
	hard = hard[:min(len(hard), triedHard)]
	found := make([]allocator.NodeVerdict, len(hard))
	var workers sync.WaitGroup
	for at, i := range hard {
		node := v.Reach.Candidates[i]
		claims, err := v.ClaimsFor(node)
		if err != nil {
			found[at] = allocator.NodeVerdict{Outcome: allocator.NodeError, Err: err}
			continue
		}
		limited, budget := allocator.WithBudget(ctx, ProvedSteps)
		defer budget.End()
		workers.Go(func() { found[at] = allocator.Of(v.Cluster).Check(limited, node, claims) })
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("check the nodes: %w", err)
	}
	slow, changed := -1, false
	for at, i := range hard {
		switch found[at].Outcome {
		case allocator.DoesNotFit:
		case allocator.GivenUp, allocator.TimedOut:
			if slow < 0 {
				slow = i
			}
		default:
			v.Checked[i], changed = found[at], true
		}
	}
	if changed {
		v.spread()
	}
	if slow < 0 || v.Checked[slow].Outcome != allocator.DoesNotFit {
		return nil
	}
	node := v.Reach.Candidates[slow]
	switch {
	case !slices.ContainsFunc(v.Checked, func(checked allocator.NodeVerdict) bool { return checked.Outcome == allocator.Fits }):
		v.SlowNode = node.Name
		return nil
	case !v.Cluster.Behaves(cluster.TimeoutEndsAttempt):
		return nil
	}
	claims, err := v.ClaimsFor(node)
	if err != nil {
		return err
	}
	limited := allocator.Reopen(v.Cluster, allocator.WithTimeout(SchedulerLimit))
	if verdict := allocator.Of(limited).Check(ctx, node, claims); verdict.Outcome == allocator.TimedOut {
		v.Checked[slow] = verdict
	}
	return nil
}
