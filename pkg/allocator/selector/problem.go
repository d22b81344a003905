// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// CompileError is a compile error of an expression.
type CompileError struct {
	// Line and Column are the position, both from 1. They are 0 for an error of the whole,
	// such as a result that is no truth value.
	Line, Column int
	// Near is the rest of that line, shortened.
	Near string
	// Reason is the compiler's message, in one line.
	Reason string
	// More is the number of further errors.
	More int
}

// maxNear limits how much of a line is shown after an error.
const maxNear = 40

// Problem returns the compile error of an expression; nil if it compiles.
func (v *Evaluator) Problem(sel *Selector) *CompileError {
	if sel.Err == nil {
		return nil
	}
	problem := &CompileError{Reason: strings.Join(strings.Fields(sel.compiled.Error.Detail), " ")}
	env := v.environment()
	if env == nil {
		return problem
	}
	_, issues := env.Compile(sel.Expression)
	if issues.Err() == nil || len(issues.Errors()) == 0 {
		return problem
	}
	first := issues.Errors()[0]
	problem.Line, problem.Column = first.Location.Line(), first.Location.Column()+1
	// Expressions of DRA are in no container, but the compiler mentions one.
	problem.Reason = strings.TrimSuffix(strings.Join(strings.Fields(first.Message), " "), " (in container '')")
	problem.More = len(issues.Errors()) - 1
	if lines := strings.Split(sel.Expression, "\n"); problem.Line > 0 && problem.Line <= len(lines) {
		// Columns count characters.
		if line := []rune(lines[problem.Line-1]); problem.Column > 0 && problem.Column <= len(line) {
			rest := line[problem.Column-1:]
			if problem.Near = string(rest); len(rest) > maxNear {
				problem.Near = string(rest[:maxNear]) + "…"
			}
		}
	}
	return problem
}

// Mismatch is a value of the device that is compared with a value of another type.
type Mismatch struct {
	Read Reading
	// Has is the type of the value on all devices, ComparedWith the type of the literal.
	Has, ComparedWith ValueType
}

// Mismatch finds the first comparison in a part that no device can fulfill,
// because all of them have a value of another type.
func (w *Vocabulary) Mismatch(part *Part) (Mismatch, bool) {
	var found Mismatch
	var visit func(e ast.Expr) bool
	visit = func(e ast.Expr) bool {
		if compared, ok := comparisonOf(e); ok {
			has, known := w.TypeOf(compared.read)
			with := compared.literalType()
			if known && has != with && with != "" {
				found = Mismatch{compared.read, has, with}
				return true
			}
			return false
		}
		for _, child := range childrenOf(e) {
			if visit(child) {
				return true
			}
		}
		return false
	}
	return found, visit(part.expr)
}

// literalType returns the type of the compared value; empty for types that devices cannot
// have.
func (c comparison) literalType() ValueType {
	switch c.wrapper {
	case quantityFunction:
		return TypeQuantity
	case semverFunction:
		return TypeVersion
	}
	switch c.literal.AsLiteral().(type) {
	case types.Int:
		return TypeInt
	case types.Bool:
		return TypeBool
	case types.String:
		return TypeString
	default:
		return ""
	}
}
