// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"math"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// checkRun hands out indices in order, so that all before the end of the run have been
// tried.
type checkRun struct {
	ctx context.Context
	// left is how many steps there are for all checks, taken how many the first
	// ones took of them, as far as they are done without a gap: counted.
	left, taken int64
	counted     int

	mutex    sync.Mutex
	verdicts []NodeVerdict
	// budgets are the budgets of the started checks.
	budgets []*Budget
	// end is the index after the last relevant one.
	end int
}

func newCheckRun(ctx context.Context, nodes int) *checkRun {
	r := &checkRun{ctx: ctx, left: math.MaxInt64, verdicts: make([]NodeVerdict, nodes), budgets: make([]*Budget, 0, nodes), end: nodes}
	if b := budgetOf(ctx); b != nil {
		r.left = b.left.Load()
	}
	return r
}

func (r *checkRun) next() (int, context.Context, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	i := len(r.budgets)
	if i >= r.end || r.taken > r.left {
		return 0, nil, false
	}
	// The checks before this one may take some of them still.
	ctx, budget := newBudget(r.ctx, r.left-r.taken)
	r.budgets = append(r.budgets, budget)
	return i, ctx, true
}

func (r *checkRun) done(i int, verdict NodeVerdict) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.verdicts[i] = verdict
	r.budgets[i].End()
	for r.counted < len(r.budgets) && r.budgets[r.counted].ended {
		r.taken += r.budgets[r.counted].Used()
		r.counted++
	}
	if i >= r.end || !verdict.EndsAttempt {
		return
	}
	r.end = i + 1
	for _, budget := range r.budgets[r.end:] {
		budget.cancel(nil)
	}
}

// result returns what would come of the checks one after the other.
func (r *checkRun) result(nodes []*corev1.Node) []NodeVerdict {
	var taken int64
	for i := range r.verdicts {
		switch {
		case taken > r.left:
		case i >= r.end:
			r.verdicts[i] = NodeVerdict{Outcome: NotTried}
			continue
		default:
			taken += r.budgets[i].Used()
		}
		if taken > r.left {
			r.verdicts[i] = NodeVerdict{Outcome: GivenUp, Err: fmt.Errorf("check node %s: %w", nodes[i].Name, ErrBudgetSpent)}
		}
	}
	if b := budgetOf(r.ctx); b != nil {
		b.take(min(taken, r.left+1))
	}
	return r.verdicts
}
