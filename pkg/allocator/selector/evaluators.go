// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import "sync"

// Evaluators lends evaluators for the devices of one cluster. An evaluator
// remembers its results for the next explanation. Safe for concurrent use.
type Evaluators struct {
	newOne func() *Evaluator
	mutex  sync.Mutex
	idle   []*Evaluator
}

const (
	// maxIdle limits how many unused evaluators are kept: a question can lead to another
	// one.
	maxIdle = 2
	// maxExpressions limits how many expressions a kept evaluator may remember: each takes
	// memory for each device.
	maxExpressions = 50
)

// NewEvaluators returns evaluators that a function makes.
func NewEvaluators(newOne func() *Evaluator) *Evaluators { return &Evaluators{newOne: newOne} }

// Lend lends an evaluator to a caller, who calls back afterwards.
func (e *Evaluators) Lend() (v *Evaluator, back func()) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if last := len(e.idle) - 1; last >= 0 {
		v, e.idle = e.idle[last], e.idle[:last]
		for _, sel := range v.byExpr {
			sel.watched = 0
		}
	} else {
		v = e.newOne()
	}
	return v, func() { e.keep(v) }
}

func (e *Evaluators) keep(v *Evaluator) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if len(e.idle) < maxIdle && len(v.byExpr) <= maxExpressions {
		e.idle = append(e.idle, v)
	}
}
