// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	resourceapi "k8s.io/api/resource/v1"
)

// outcome is how the evaluation of a part of an expression went.
type outcome int

const (
	// notReached is a part that did not matter any more.
	notReached outcome = iota
	isTrue
	isFalse
	fails
)

// String gives the outcome as the contract has it.
func (o outcome) String() string {
	switch o {
	case isTrue:
		return OutcomeTrue
	case isFalse:
		return OutcomeFalse
	case fails:
		return OutcomeFails
	default:
		return "NotReached"
	}
}

// isLoop recognizes all(), exists() and the like.
func isLoop(e ast.Expr) bool { return e.Kind() == ast.ComprehensionKind }

// sighting is how a conjunct, or a part of one, went for one device.
type sighting struct {
	outcome outcome
	// values are those that it read.
	values   []string
	operands []sighting
}

// found lists the values that were read, also by the operands that were reached.
func (s *sighting) found() []string {
	if len(s.operands) == 0 {
		return s.values
	}
	var found []string
	for i := range s.operands {
		for _, value := range s.operands[i].found() {
			if !slices.Contains(found, value) {
				found = append(found, value)
			}
		}
	}
	return found
}

// needs lists what a part that fails cannot do without: the needs of the operands
// that fail, too, down to single ones.
func (s *sighting) needs(c *conjunct) []reading {
	if len(s.operands) == 0 {
		return c.needs
	}
	var needed []reading
	for i := range s.operands {
		if s.operands[i].outcome == fails {
			needed = append(needed, s.operands[i].needs(&c.operands[i])...)
		}
	}
	return needed
}

// watch evaluates an expression once more and tells how its conjuncts went. It
// is nil if that does not explain the result.
func (s *selectors) watch(ctx context.Context, sel *selector, result *selection, driver string, device *resourceapi.Device) []sighting {
	if result.seen != nil || sel.tracked.Program == nil {
		return result.seen
	}
	_, details, _ := sel.tracked.DeviceMatches(ctx, celDevice(driver, device))
	if details == nil || details.State() == nil {
		return nil
	}
	w := &watcher{state: details.State(), driver: driver, device: device}
	seen := make([]sighting, len(sel.conjuncts))
	outcomes := make([]outcome, len(sel.conjuncts))
	for i := range sel.conjuncts {
		seen[i] = w.look(&sel.conjuncts[i])
		outcomes[i] = seen[i].outcome
	}
	if conjunction(outcomes) != result.outcome() {
		return nil
	}
	result.seen = seen
	return seen
}

func (s *selection) outcome() outcome {
	switch {
	case s.err != nil:
		return fails
	case s.matches:
		return isTrue
	default:
		return isFalse
	}
}

// watcher reads the state of one evaluation.
type watcher struct {
	state  interpreter.EvalState
	driver string
	device *resourceapi.Device
}

func (w *watcher) look(c *conjunct) sighting {
	s := sighting{outcome: w.outcome(c.expr)}
	if s.outcome == notReached {
		return s.below(c)
	}
	if len(c.operands) == 0 {
		s.values = foundValues(c.reads, w.driver, w.device)
		if element, ok := w.element(c.expr); ok {
			s.values = append(s.values, element)
		}
		return s
	}
	outcomes := make([]outcome, len(c.operands))
	for i := range c.operands {
		s.operands = append(s.operands, w.look(&c.operands[i]))
		outcomes[i] = s.operands[i].outcome
	}
	if combined(c.expr, outcomes) != s.outcome {
		// The evaluation went another way than the expression is written.
		s.operands = nil
		s.values = foundValues(c.reads, w.driver, w.device)
	}
	return s
}

// below gives something that was not reached operands that were not either.
func (s sighting) below(c *conjunct) sighting {
	for i := range c.operands {
		s.operands = append(s.operands, sighting{}.below(&c.operands[i]))
	}
	return s
}

func (w *watcher) outcome(e ast.Expr) outcome {
	value, known := w.state.Value(e.ID())
	if !known {
		return notReached
	}
	switch value {
	case types.True:
		return isTrue
	case types.False:
		return isFalse
	default:
		return fails
	}
}

// element names the element of a list that made all() false or exists() true:
// the last one that was looked at.
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
	case name == operators.LogicalAnd && outcome == isFalse, name == operators.LogicalOr && outcome == isTrue:
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

// conjunction is what && makes of operands: one that is false decides, whatever
// the others do.
func conjunction(operands []outcome) outcome {
	switch {
	case slices.Contains(operands, isFalse):
		return isFalse
	case slices.Contains(operands, fails):
		return fails
	case slices.Contains(operands, notReached):
		return notReached
	default:
		return isTrue
	}
}

// combined is what a logical operator makes of its operands.
func combined(e ast.Expr, operands []outcome) outcome {
	switch e.AsCall().FunctionName() {
	case operators.LogicalAnd:
		return conjunction(operands)
	case operators.LogicalOr:
		negations := make([]outcome, len(operands))
		for i, operand := range operands {
			negations[i] = negation(operand)
		}
		return negation(conjunction(negations))
	case operators.LogicalNot:
		return negation(operands[0])
	}
	// c ? a : b
	switch operands[0] {
	case isTrue:
		return operands[1]
	case isFalse:
		return operands[2]
	default:
		return operands[0]
	}
}

func negation(o outcome) outcome {
	switch o {
	case isTrue:
		return isFalse
	case isFalse:
		return isTrue
	case fails, notReached:
	}
	return o
}
