// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	resourceapi "k8s.io/api/resource/v1"
)

// Found lists the values that were read, including the values of evaluated operands.
func (s *Trace) Found() []string {
	if len(s.Operands) == 0 {
		return s.Values
	}
	var found []string
	for i := range s.Operands {
		for _, value := range s.Operands[i].Found() {
			if !slices.Contains(found, value) {
				found = append(found, value)
			}
		}
	}
	return found
}

// needs lists the values that a failing part requires: the needs of the failing operands,
// too, down to single ones.
func (s *Trace) needs(p *Part) []Reading {
	if len(s.Operands) == 0 {
		return p.needs
	}
	var needed []Reading
	for i := range s.Operands {
		if s.Operands[i].Outcome == Fails {
			needed = append(needed, s.Operands[i].needs(&p.Operands[i])...)
		}
	}
	return needed
}

// watch evaluates an expression once more and returns the outcomes of its conjuncts. It is
// nil if that does not explain the result.
func (r *Result) watch(ctx context.Context) []Trace {
	var endless *UnendingError
	if r.sel.tracked.Program == nil || errors.As(r.Err, &endless) {
		return nil
	}
	_, details, _ := r.sel.tracked.DeviceMatches(ctx, celDevice(r.driver, r.device))
	if details == nil || details.State() == nil {
		return nil
	}
	w := &watcher{state: details.State(), driver: r.driver, device: r.device}
	seen := make([]Trace, len(r.sel.Conjuncts))
	outcomes := make([]Outcome, len(r.sel.Conjuncts))
	for i := range r.sel.Conjuncts {
		seen[i] = w.look(&r.sel.Conjuncts[i])
		outcomes[i] = seen[i].Outcome
	}
	if conjunction(outcomes) != r.Outcome() {
		return nil
	}
	return seen
}

// Outcome returns the outcome of the whole expression.
func (r *Result) Outcome() Outcome {
	switch {
	case r.Err != nil:
		return Fails
	case r.Matches:
		return True
	default:
		return False
	}
}

// watcher reads the state of one evaluation.
type watcher struct {
	state  interpreter.EvalState
	driver string
	device *resourceapi.Device
}

func (w *watcher) look(p *Part) Trace {
	s := Trace{Outcome: w.outcome(p.expr)}
	if s.Outcome == NotEvaluated {
		return Unreached(p)
	}
	if len(p.Operands) == 0 {
		s.Values = foundValues(p.Reads, w.driver, w.device)
		if element, ok := w.element(p.expr); ok {
			s.Values = append(s.Values, element)
		}
		return s
	}
	outcomes := make([]Outcome, len(p.Operands))
	for i := range p.Operands {
		s.Operands = append(s.Operands, w.look(&p.Operands[i]))
		outcomes[i] = s.Operands[i].Outcome
	}
	if combined(p.expr, outcomes) != s.Outcome {
		// The evaluation went another way than the expression is written.
		s.Operands = nil
		s.Values = foundValues(p.Reads, w.driver, w.device)
	}
	return s
}

// Unreached returns the trace of a part that did not matter any more.
func Unreached(p *Part) Trace {
	s := Trace{Outcome: NotEvaluated}
	for i := range p.Operands {
		s.Operands = append(s.Operands, Unreached(&p.Operands[i]))
	}
	return s
}

func (w *watcher) outcome(e ast.Expr) Outcome {
	value, known := w.state.Value(e.ID())
	if !known {
		return NotEvaluated
	}
	switch value {
	case types.True:
		return True
	case types.False:
		return False
	default:
		return Fails
	}
}

// element returns the element of a list that made all() false or exists() true, which is
// the last element evaluated.
func (w *watcher) element(e ast.Expr) (string, bool) {
	if !isLoop(e) {
		return "", false
	}
	loop := e.AsComprehension()
	step := loop.LoopStep()
	if step.Kind() != ast.CallKind || loop.HasIterVar2() {
		return "", false
	}
	outcome := w.outcome(e)
	switch name := step.AsCall().FunctionName(); {
	case name == operators.LogicalAnd && outcome == False, name == operators.LogicalOr && outcome == True:
	default:
		return "", false
	}
	args := step.AsCall().Args()
	use := certainUse(args[len(args)-1], loop.IterVar())
	if use == nil {
		return "", false
	}
	value, known := w.state.Value(use.ID())
	if !known {
		return "", false
	}
	text, ok := valueText(value.Value())
	return fmt.Sprintf("%s is %s", loop.IterVar(), text), ok
}

// certainUse finds a place where a variable is read whenever the expression is
// evaluated.
func certainUse(e ast.Expr, name string) ast.Expr {
	if e.Kind() == ast.IdentKind && e.AsIdent() == name {
		return e
	}
	for i, child := range childrenOf(e) {
		if i > 0 && isLazy(e, i) || shadows(e, name) {
			continue
		}
		if use := certainUse(child, name); use != nil {
			return use
		}
	}
	return nil
}

// valueText formats a value that CEL computed, if it is a simple one.
func valueText(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return fmt.Sprintf("%q", v), true
	case bool, int64, uint64, float64:
		return fmt.Sprint(v), true
	case fmt.Stringer:
		return v.String(), true
	default:
		return "", false
	}
}

// conjunction returns the outcome of && for operands: a false operand decides, whatever the
// others do.
func conjunction(operands []Outcome) Outcome {
	switch {
	case slices.Contains(operands, False):
		return False
	case slices.Contains(operands, Fails):
		return Fails
	case slices.Contains(operands, NotEvaluated):
		return NotEvaluated
	default:
		return True
	}
}

// combined returns the outcome of a logical operator for its operands.
func combined(e ast.Expr, operands []Outcome) Outcome {
	switch e.AsCall().FunctionName() {
	case operators.LogicalAnd:
		return conjunction(operands)
	case operators.LogicalOr:
		negations := make([]Outcome, len(operands))
		for i, operand := range operands {
			negations[i] = negation(operand)
		}
		return negation(conjunction(negations))
	case operators.LogicalNot:
		return negation(operands[0])
	}
	// c ? a : b
	switch operands[0] {
	case True:
		return operands[1]
	case False:
		return operands[2]
	default:
		return operands[0]
	}
}

func negation(o Outcome) Outcome {
	switch o {
	case True:
		return False
	case False:
		return True
	case Fails, NotEvaluated:
	}
	return o
}
