// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// Guard rewrites an expression so that a device without one of the missing
// values makes it false instead of failing. On every device where the original
// has a value, the guarded one has the same. It is not ok if that cannot be
// written down, if nothing has to be guarded, or if the API server would not
// take the result.
func (v *Evaluator) Guard(sel *Selector, missing []Reading) (guarded string, ok bool) {
	if sel.root == nil {
		return "", false
	}
	g := &guarding{info: sel.info, missing: missing}
	result := g.guard(sel.root, false)
	if !result.changed && len(result.tests) == 0 {
		return "", false
	}
	if !result.changed && !strings.Contains(sel.Expression, "//") {
		// As it was written, not as it would be rewritten. A comment would
		// swallow what comes after it.
		result.text = strings.TrimSpace(sel.Expression)
	}
	guarded = result.String()
	if g.failed || len(guarded) > resourceapi.CELSelectorExpressionMaxLength {
		return "", false
	}
	compiled := dracel.GetCompiler(v.features).CompileCELExpression(guarded, dracel.Options{})
	return guarded, compiled.Error == nil && compiled.MaxCost <= resourceapi.CELSelectorExpressionMaxCost
}

// guarding is the rewriting of one expression. It follows what CEL does with
// errors: a false operand of && and a true one of || make up for a failing one,
// everything else fails with its parts.
type guarding struct {
	info    *ast.SourceInfo
	missing []Reading
	// failed is true once something cannot be guarded.
	failed bool
}

// guardedExpr is a part of an expression, guarded: the tests have to hold, and
// then the text has a value. Where a test does not hold, the part itself fails
// or is false.
type guardedExpr struct {
	tests   []Reading
	text    string
	binding binding
	changed bool
	// tested is the reading that the text tests.
	tested Reading
}

// binding says how strongly the operands of an expression hold together.
type binding int

const (
	bindsTernary binding = iota
	bindsOr
	bindsAnd
	bindsTight
)

func (e *guardedExpr) String() string {
	if len(e.tests) == 0 {
		return e.text
	}
	parts := make([]string, 0, len(e.tests)+1)
	for _, r := range e.tests {
		parts = append(parts, r.test())
	}
	return strings.Join(append(parts, parenthesized(e.text, e.binding, bindsAnd)), " && ")
}

// operand returns the part as an operand of something that binds that strongly.
func (e *guardedExpr) operand(outer binding) string {
	own := e.binding
	if len(e.tests) > 0 {
		own = bindsAnd
	}
	return parenthesized(e.String(), own, outer)
}

func parenthesized(text string, own, outer binding) string {
	if own < outer {
		return "(" + text + ")"
	}
	return text
}

// test asks for the presence of a value.
func (r Reading) test() string {
	if isIdentifier(r.Name) {
		return fmt.Sprintf("has(%s)", r)
	}
	return fmt.Sprintf("%s in device.%s[%s]", strconv.Quote(r.Name), r.Kind, strconv.Quote(r.Domain))
}

func isIdentifier(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && !slices.Contains([]string{"in", "true", "false", "null"}, name)
}

// guard rewrites an expression, or the negation of it.
func (g *guarding) guard(e ast.Expr, negated bool) *guardedExpr {
	if e.Kind() == ast.CallKind {
		call := e.AsCall()
		switch name := call.FunctionName(); {
		case name == operators.LogicalNot:
			return g.guard(call.Args()[0], !negated)
		case name == operators.LogicalAnd && !negated, name == operators.LogicalOr && negated:
			return g.every(e, name, negated)
		case name == operators.LogicalAnd, name == operators.LogicalOr:
			return g.any(e, name, negated)
		case name == operators.Conditional:
			return g.conditional(e, negated)
		}
	}
	return g.atom(e, negated)
}

// every guards operands that all have to hold, so that each test is one of the
// whole.
func (g *guarding) every(e ast.Expr, operator string, negated bool) *guardedExpr {
	result := &guardedExpr{binding: bindsAnd}
	var texts []string
	var present []Reading
	for _, operand := range operandsOf(e, operator) {
		part := g.guard(operand, negated)
		for _, r := range part.tests {
			if !slices.Contains(result.tests, r) {
				result.tests = append(result.tests, r)
			}
		}
		if part.tested != (Reading{}) {
			present = append(present, part.tested)
		}
		result.changed = result.changed || part.changed
		texts = append(texts, parenthesized(part.text, part.binding, bindsAnd))
	}
	result.tests = slices.DeleteFunc(result.tests, func(r Reading) bool { return slices.Contains(present, r) })
	g.write(result, e, negated, texts, " && ")
	return result
}

// any guards operands of which one has to hold. Only what all of them need is a
// test of the whole.
func (g *guarding) any(e ast.Expr, operator string, negated bool) *guardedExpr {
	result := &guardedExpr{binding: bindsOr}
	var parts []*guardedExpr
	for _, operand := range operandsOf(e, operator) {
		parts = append(parts, g.guard(operand, negated))
	}
	result.tests = common(parts)
	texts := make([]string, 0, len(parts))
	for _, part := range parts {
		part.tests = slices.DeleteFunc(slices.Clone(part.tests), func(r Reading) bool { return slices.Contains(result.tests, r) })
		result.changed = result.changed || part.changed || len(part.tests) > 0
		texts = append(texts, part.operand(bindsOr))
	}
	g.write(result, e, negated, texts, " || ")
	return result
}

// conditional guards c ? a : b.
func (g *guarding) conditional(e ast.Expr, negated bool) *guardedExpr {
	args := e.AsCall().Args()
	condition := args[0]
	then, otherwise := g.guard(args[1], negated), g.guard(args[2], negated)
	if !g.lazy(condition) {
		result := &guardedExpr{binding: bindsTernary, tests: common([]*guardedExpr{then, otherwise})}
		for _, branch := range []*guardedExpr{then, otherwise} {
			branch.tests = slices.DeleteFunc(slices.Clone(branch.tests), func(r Reading) bool { return slices.Contains(result.tests, r) })
			result.changed = result.changed || branch.changed || len(branch.tests) > 0
		}
		for _, r := range g.strict(condition) {
			if !slices.Contains(result.tests, r) {
				result.tests = append(result.tests, r)
			}
		}
		if !result.changed {
			g.write(result, e, negated, nil, "")
			return result
		}
		result.text = fmt.Sprintf("%s ? %s : %s", parenthesized(g.unparse(condition), bindingOf(condition), bindsOr), then.operand(bindsOr), otherwise.operand(bindsTernary))
		return result
	}
	// Then it is (c && a) || (!c && b), of which at most one side holds.
	holds, fails := g.guard(condition, false), g.guard(condition, true)
	return &guardedExpr{
		binding: bindsOr, changed: true,
		text: fmt.Sprintf("%s && %s || %s && %s", holds.operand(bindsAnd), then.operand(bindsAnd), fails.operand(bindsAnd), otherwise.operand(bindsAnd)),
	}
}

// atom guards an expression that fails if one of the values is missing that it
// always reads.
func (g *guarding) atom(e ast.Expr, negated bool) *guardedExpr {
	result := &guardedExpr{tests: g.strict(e), binding: bindingOf(e)}
	if g.lazy(e) {
		g.failed = true
	}
	if r, ok := readingOf(e); ok && isTest(e) && !negated {
		result.tested = r
	}
	g.write(result, e, negated, nil, "")
	return result
}

// write gives a part its text: as it was, unless something in it changed.
func (g *guarding) write(result *guardedExpr, e ast.Expr, negated bool, changed []string, operator string) {
	if result.changed {
		result.text = strings.Join(changed, operator)
		return
	}
	result.text, result.binding = g.unparse(e), bindingOf(e)
	if negated {
		result.text, result.binding = "!"+parenthesized(result.text, bindsTernary, bindsTight), bindsTight
		if bindingOf(e) == bindsTight && e.Kind() != ast.CallKind {
			result.text = "!" + g.unparse(e)
		}
	}
}

func (g *guarding) unparse(e ast.Expr) string {
	text, err := unparse(e, g.info)
	if err != nil {
		g.failed = true
	}
	return text
}

// strict lists the missing values without which an expression always fails.
func (g *guarding) strict(e ast.Expr) []Reading {
	always, _ := g.reads(e)
	return always
}

// lazy reports whether an expression reads a missing value only sometimes.
func (g *guarding) lazy(e ast.Expr) bool {
	_, sometimes := g.reads(e)
	return len(sometimes) > 0
}

// reads lists the missing values that an expression always needs, and those
// that it needs only if it gets there.
func (g *guarding) reads(root ast.Expr) (always, sometimes []Reading) {
	var visit func(e ast.Expr, certain bool)
	visit = func(e ast.Expr, certain bool) {
		if r, ok := readingOf(e); ok {
			switch {
			case !failsWithout(e) || !slices.Contains(g.missing, r):
			case certain && !slices.Contains(always, r):
				always = append(always, r)
			case !certain:
				sometimes = append(sometimes, r)
			}
			return
		}
		for i, child := range childrenOf(e) {
			visit(child, certain && !isLazy(e, i))
		}
	}
	visit(root, true)
	return always, sometimes
}

// common lists the tests that all parts have.
func common(parts []*guardedExpr) []Reading {
	var tests []Reading
	for _, r := range parts[0].tests {
		if !slices.ContainsFunc(parts, func(p *guardedExpr) bool { return !slices.Contains(p.tests, r) }) {
			tests = append(tests, r)
		}
	}
	return tests
}

// bindingOf says how strongly the outermost operator of an expression binds.
func bindingOf(e ast.Expr) binding {
	if e.Kind() != ast.CallKind {
		return bindsTight
	}
	switch e.AsCall().FunctionName() {
	case operators.Conditional:
		return bindsTernary
	case operators.LogicalOr:
		return bindsOr
	case operators.LogicalAnd:
		return bindsAnd
	default:
		return bindsTight
	}
}
