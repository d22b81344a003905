// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"sync/atomic"
)

// Budget bounds the work for an answer. It counts steps and not time, so that
// the same question has the same answer on a slow or busy machine as on any
// other. When more steps are taken than it has, its context is done, with
// [ErrBudgetSpent] as the cause.
//
// A step is about as much work as to try one device, some tenths of a microsecond.
// Searches look at their context now and then, and each look takes steps where
// the context is [Counted]: upstream's search looks before each device that it
// adds to an allocation, for which it may try all devices of the node, and for
// each evaluation of a selector; counting looks every few thousand combinations.
//
// A budget within a budget has the steps that are left in both, and uses up both.
// What is checked in parallel is counted in the order of the nodes, see
// [Allocator.CheckAll], so that it makes no difference which check ends first.
type Budget struct {
	steps  int64
	left   atomic.Int64
	parent *Budget
	cancel context.CancelCauseFunc
	ended  bool
}

// ErrBudgetSpent is why work was given up that takes more steps than its
// [Budget] has.
var ErrBudgetSpent = errors.New("given up after too many steps")

// budgetKey finds the innermost budget of a context.
type budgetKey struct{}

// WithBudget returns a context for work that may take so many steps, and its
// budget, which the caller ends when the work is done.
func WithBudget(ctx context.Context, steps int64) (context.Context, *Budget) {
	parent := budgetOf(ctx)
	if parent != nil {
		steps = min(steps, parent.left.Load())
	}
	ctx, b := newBudget(ctx, steps)
	b.parent = parent
	return ctx, b
}

// newBudget returns a budget that takes nothing from those around it.
func newBudget(ctx context.Context, steps int64) (context.Context, *Budget) {
	b := &Budget{steps: steps}
	b.left.Store(steps)
	ctx, b.cancel = context.WithCancelCause(ctx)
	return context.WithValue(ctx, budgetKey{}, b), b
}

// budgetOf returns the innermost budget of a context, nil if it has none.
func budgetOf(ctx context.Context) *Budget {
	b, _ := ctx.Value(budgetKey{}).(*Budget)
	return b
}

// End releases the context. The steps that were taken count for the budget
// around this one.
func (b *Budget) End() {
	b.cancel(nil)
	if b.parent != nil && !b.ended {
		b.parent.take(b.Used())
	}
	b.ended = true
}

// Used returns how many steps were taken.
func (b *Budget) Used() int64 { return b.steps - b.left.Load() }

// Spent reports whether work was given up because it takes more steps than
// there were.
func (b *Budget) Spent() bool { return b.left.Load() < 0 }

func (b *Budget) take(steps int64) {
	if b.left.Add(-steps) < 0 {
		b.cancel(ErrBudgetSpent)
	}
}

// Counted returns a context each look at which takes so many steps of its
// budget. Contexts that are made from it are not counted.
func Counted(ctx context.Context, steps int64) context.Context {
	if b := budgetOf(ctx); b != nil {
		return countedContext{ctx, b, steps}
	}
	return ctx
}

type countedContext struct {
	context.Context
	budget *Budget
	steps  int64
}

func (c countedContext) Err() error {
	c.budget.take(c.steps)
	return c.Context.Err()
}

// stepsPerEvaluation is the cost of a CEL program in steps: it asks for this channel twice.
const stepsPerEvaluation = 100

func (c countedContext) Done() <-chan struct{} {
	c.budget.take(stepsPerEvaluation / 2)
	return c.Context.Done()
}
