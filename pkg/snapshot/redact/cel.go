// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"math"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// unreadable stands for an expression that is none. It fails like it.
const unreadable = "redacted: no CEL"

// expression redacts the names in the texts of a CEL expression, just as
// attribute does in values. It is rewritten from its syntax tree, without
// comments and however its texts were written.
func (t *texts) expression(s string) string {
	if s == "" {
		return s
	}
	// Many claims have the same one.
	redacted, known := t.expressions[s]
	if !known {
		redacted = t.newExpression(s)
		t.expressions[s] = redacted
	}
	return redacted
}

func (t *texts) newExpression(s string) string {
	tree := parseExpression(s)
	if tree != nil && t.stage == collectNames && !compiles(s) {
		// Names may be where an expression that compiles has none.
		t.broken[s] = true
	}
	if tree == nil || t.broken[s] {
		if t.stage == rewrite {
			return unreadable
		}
		return s
	}
	if t.stage == collectNames {
		if t.patterns.searches.MatchString(s) {
			for _, identifier := range t.patterns.identifier.FindAllString(s, -1) {
				t.searched[identifier] = true
			}
		}
	}
	factory := ast.NewExprFactory()
	// Texts that are joined come before the parts that they are joined of.
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		text, isText := constantText(e)
		if !isText {
			return
		}
		if t.stage == collectNames {
			t.literals[text] = true
			return
		}
		if redacted := t.literal(text); redacted != text {
			e.SetKindCase(factory.NewLiteral(e.ID(), types.String(redacted)))
		}
	}))
	if t.stage != rewrite {
		return s
	}
	text, err := parser.Unparse(tree.Expr(), tree.SourceInfo(), parser.WrapOnColumn(math.MaxInt32))
	if err != nil {
		return unreadable
	}
	return text
}

func (t *texts) literal(text string) string {
	if t.stage == rewrite && t.isHushed(text) && !t.isName(text) && !t.hidesName(text) {
		return t.swap(tableSerial, text)
	}
	if t.kept[text] || !t.isName(text) && !t.hidesName(text) {
		return text
	}
	return t.replaceNames(text)
}

// constantText returns the text of a literal, or of several that are joined.
func constantText(e ast.Expr) (string, bool) {
	switch e.Kind() { //nolint:exhaustive // nothing else is a text
	case ast.LiteralKind:
		text, ok := e.AsLiteral().(types.String)
		return string(text), ok
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Add || len(call.Args()) != 2 {
			return "", false
		}
		left, isLeft := constantText(call.Args()[0])
		right, isRight := constantText(call.Args()[1])
		return left + right, isLeft && isRight
	default:
		return "", false
	}
}

// compiles reports whether the API server takes an expression as a selector or as a derived
// attribute, whatever its release.
func compiles(s string) bool {
	compiler := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	return compiler.CompileCELExpression(s, dracel.Options{DisableCostEstimation: true}).Error == nil || compiler.CompileCELExpression(s, dracel.Options{DerivedAttribute: true, DisableCostEstimation: true}).Error == nil
}

// parseExpression parses an expression, and returns nil if it is invalid. Macros are taken
// for calls, so that they are written as they were.
func parseExpression(s string) *ast.AST {
	p, err := parser.NewParser(parser.Macros(), parser.EnableOptionalSyntax(true), parser.EnableIdentEscapeSyntax(true))
	if err != nil {
		return nil
	}
	tree, errs := p.Parse(common.NewTextSource(s))
	if errs != nil && len(errs.GetErrors()) > 0 {
		return nil
	}
	return tree
}
