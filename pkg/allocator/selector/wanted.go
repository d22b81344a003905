// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"fmt"
	"strconv"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// wantedText says in a few words what a simple comparison asks for. Anything
// else is given as it is written.
func wantedText(e ast.Expr, text string) string {
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
		return text
	}
	operator, left, right := e.AsCall().FunctionName(), e.AsCall().Args()[0], e.AsCall().Args()[1]
	value, ok := literalValue(right)
	if _, isReading := readingOf(left); isReading && ok && !isTest(left) {
		return comparison(operator, value, text)
	}
	// x.compareTo(quantity("80Gi")) >= 0
	if left.Kind() != ast.CallKind || left.AsCall().FunctionName() != "compareTo" || value != "0" {
		return text
	}
	compare := left.AsCall()
	if !compare.IsMemberFunction() || len(compare.Args()) != 1 {
		return text
	}
	if _, isReading := readingOf(compare.Target()); !isReading {
		return text
	}
	value, ok = literalValue(compare.Args()[0])
	if !ok {
		return text
	}
	return comparison(operator, value, text)
}

// literalValue formats a literal, or the argument of quantity() and semver().
func literalValue(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.LiteralKind:
		if text, ok := literalText(e); ok {
			return strconv.Quote(text), true
		}
		return fmt.Sprint(e.AsLiteral().Value()), true
	case ast.CallKind:
		call := e.AsCall()
		if name := call.FunctionName(); (name == "quantity" || name == "semver") && len(call.Args()) == 1 {
			return literalText(call.Args()[0])
		}
	default:
	}
	return "", false
}

func comparison(operator, value, text string) string {
	switch operator {
	case operators.Equals:
		return value
	case operators.NotEquals:
		return "anything but " + value
	case operators.GreaterEquals:
		return value + " or more"
	case operators.Greater:
		return "more than " + value
	case operators.LessEquals:
		return value + " or less"
	case operators.Less:
		return "less than " + value
	default:
		return text
	}
}
