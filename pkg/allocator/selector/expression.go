// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// readings lists the values of the device that an expression can see. The second result is
// true if it can see other values.
func readings(root ast.Expr) (reads []Reading, opaque bool) {
	var visit func(e ast.Expr)
	add := func(r Reading) {
		if !slices.Contains(reads, r) {
			reads = append(reads, r)
		}
	}
	visit = func(e ast.Expr) {
		if r, ok := readingOf(e); ok {
			add(r)
			return
		}
		if kind, domain, ok := domainOf(e); ok {
			add(Reading{Kind: kind, Domain: domain, Whole: true})
			return
		}
		if kind, ok := kindOf(e); ok {
			add(Reading{Kind: kind, Whole: true})
			return
		}
		opaque = opaque || isDevice(e)
		for _, child := range childrenOf(e) {
			visit(child)
		}
	}
	visit(root)
	return reads, opaque
}

// needs lists the values without which an expression fails if it gets to them.
func needs(root ast.Expr) (needed []Reading) {
	var visit func(e ast.Expr)
	visit = func(e ast.Expr) {
		if r, ok := readingOf(e); ok {
			if failsWithout(e) && !slices.Contains(needed, r) {
				needed = append(needed, r)
			}
			return
		}
		for _, child := range childrenOf(e) {
			visit(child)
		}
	}
	visit(root)
	return needed
}

// readingOf recognizes the ways to write one value of the device:
//
//	device.driver
//	device.attributes["domain"].name     and has() of it
//	device.attributes["domain"]["name"]
//	device.attributes["domain"].?name    and [?"name"]
//	"domain" in device.attributes
//	"name" in device.attributes["domain"]
func readingOf(e ast.Expr) (Reading, bool) {
	switch e.Kind() {
	case ast.SelectKind:
		sel := e.AsSelect()
		if isDevice(sel.Operand()) {
			if name := sel.FieldName(); name == KindDriver || name == KindSharing {
				return Reading{Kind: name}, true
			}
			return Reading{}, false
		}
		if kind, domain, ok := domainOf(sel.Operand()); ok {
			return Reading{Kind: kind, Domain: domain, Name: sel.FieldName()}, true
		}
	case ast.CallKind:
		call := e.AsCall()
		if len(call.Args()) != 2 {
			return Reading{}, false
		}
		first, second := call.Args()[0], call.Args()[1]
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			name, isText := literalText(second)
			if kind, domain, ok := domainOf(first); ok && isText {
				return Reading{Kind: kind, Domain: domain, Name: name}, true
			}
		case operators.In:
			name, isText := literalText(first)
			if !isText {
				return Reading{}, false
			}
			if kind, ok := kindOf(second); ok {
				return Reading{Kind: kind, Domain: name}, true
			}
			if kind, domain, ok := domainOf(second); ok {
				return Reading{Kind: kind, Domain: domain, Name: name}, true
			}
		}
	default:
	}
	return Reading{}, false
}

// isTest reports whether an expression tests the presence of a value.
func isTest(e ast.Expr) bool {
	return e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() ||
		e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.In
}

// deviceVariable is the only variable of a selector.
const deviceVariable = "device"

func isDevice(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == deviceVariable
}

// kindOf recognizes device.attributes and device.capacity.
func kindOf(e ast.Expr) (string, bool) {
	if e.Kind() != ast.SelectKind || !isDevice(e.AsSelect().Operand()) {
		return "", false
	}
	name := e.AsSelect().FieldName()
	return name, name == KindAttributes || name == KindCapacity
}

// domainOf recognizes device.attributes["domain"] and the optional form of it.
func domainOf(e ast.Expr) (kind, domain string, ok bool) {
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
		return "", "", false
	}
	call := e.AsCall()
	if name := call.FunctionName(); name != operators.Index && name != operators.OptIndex {
		return "", "", false
	}
	kind, isKind := kindOf(call.Args()[0])
	domain, isText := literalText(call.Args()[1])
	return kind, domain, isKind && isText
}

func literalText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

// failsWithout reports whether reading a value fails if the device does not have
// it.
func failsWithout(e ast.Expr) bool {
	switch e.Kind() {
	case ast.SelectKind:
		return !e.AsSelect().IsTestOnly() && failsWithoutDomain(e.AsSelect().Operand())
	case ast.CallKind:
		return e.AsCall().FunctionName() == operators.Index && failsWithoutDomain(e.AsCall().Args()[0])
	default:
		return false
	}
}

// failsWithoutDomain reports whether e is device.attributes["domain"] and not its optional
// form, which makes everything selected from it optional.
func failsWithoutDomain(e ast.Expr) bool {
	return e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index
}

// isLazy reports whether a child of an expression may be left unevaluated, or fail
// without a consequence.
func isLazy(e ast.Expr, child int) bool {
	switch e.Kind() {
	case ast.CallKind:
		switch e.AsCall().FunctionName() {
		case operators.LogicalAnd, operators.LogicalOr:
			return true
		case operators.Conditional:
			return child > 0
		case "or", "orValue":
			return child > 0
		}
	case ast.ComprehensionKind:
		// Only the range is evaluated in any case.
		return child > 0
	default:
	}
	return false
}

func childrenOf(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			return append([]ast.Expr{call.Target()}, call.Args()...)
		}
		return call.Args()
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	case ast.MapKind:
		var children []ast.Expr
		for _, entry := range e.AsMap().Entries() {
			children = append(children, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return children
	case ast.StructKind:
		var children []ast.Expr
		for _, field := range e.AsStruct().Fields() {
			children = append(children, field.AsStructField().Value())
		}
		return children
	case ast.IdentKind, ast.LiteralKind, ast.UnspecifiedExprKind:
	}
	return nil
}

// operandsOf flattens a chain of one operator.
func operandsOf(e ast.Expr, operator string) []ast.Expr {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operator {
		return []ast.Expr{e}
	}
	var operands []ast.Expr
	for _, arg := range e.AsCall().Args() {
		operands = append(operands, operandsOf(arg, operator)...)
	}
	return operands
}

// logicalOperands lists what a logical operator works on.
func logicalOperands(e ast.Expr) []ast.Expr {
	if e.Kind() != ast.CallKind {
		return nil
	}
	switch name := e.AsCall().FunctionName(); name {
	case operators.LogicalAnd, operators.LogicalOr:
		return operandsOf(e, name)
	case operators.Conditional:
		return e.AsCall().Args()
	case operators.LogicalNot:
		if operand := e.AsCall().Args()[0]; len(logicalOperands(operand)) > 0 {
			return []ast.Expr{operand}
		}
	}
	return nil
}

// withoutBinds replaces names from cel.bind() by their values, so that cel.bind(x,
// device.attributes["domain"], x.a && x.b) can be read like an expression without it. It
// changes a copy; only names for parts of the device are replaced, which have the same
// value everywhere.
func withoutBinds(original *ast.AST) (ast.Expr, *ast.SourceInfo) {
	changed := ast.Copy(original)
	u := &unbinder{info: changed.SourceInfo(), factory: ast.NewExprFactory()}
	u.visit(changed.Expr())
	return changed.Expr(), changed.SourceInfo()
}

type unbinder struct {
	info    *ast.SourceInfo
	factory ast.ExprFactory
}

func (u *unbinder) visit(e ast.Expr) {
	if name, value, body, ok := boundIn(e); ok && isOfDevice(value) && !shadows(body, "device") && !shadows(body, name) {
		u.replace(body, name, value)
		// Where it is a part of another macro, it is found by its number.
		u.info.SetMacroCall(e.ID(), body)
		e.SetKindCase(body)
		u.visit(e)
		return
	}
	for _, child := range childrenOf(e) {
		u.visit(child)
	}
}

// replace puts a value in the place of each occurrence of a name.
func (u *unbinder) replace(e ast.Expr, name string, value ast.Expr) {
	if e.Kind() == ast.IdentKind && e.AsIdent() == name {
		e.SetKindCase(u.factory.CopyExpr(value))
		return
	}
	if call, isMacro := u.info.GetMacroCall(e.ID()); isMacro {
		u.replace(call, name, value)
	}
	for _, child := range childrenOf(e) {
		u.replace(child, name, value)
	}
}

// boundIn recognizes the expansion of cel.bind(name, value, body): a loop that is never
// run.
func boundIn(e ast.Expr) (name string, value, body ast.Expr, ok bool) {
	if e.Kind() != ast.ComprehensionKind {
		return "", nil, nil, false
	}
	c := e.AsComprehension()
	if c.IterVar() != "#unused" || c.IterRange().Kind() != ast.ListKind || c.IterRange().AsList().Size() > 0 {
		return "", nil, nil, false
	}
	return c.AccuVar(), c.AccuInit(), c.Result(), true
}

// isOfDevice reports whether an expression is a part of the device.
func isOfDevice(e ast.Expr) bool {
	if _, ok := readingOf(e); ok {
		return true
	}
	if _, _, ok := domainOf(e); ok {
		return true
	}
	_, ok := kindOf(e)
	return ok
}

// shadows reports whether a name has another meaning in a part of an expression.
func shadows(e ast.Expr, name string) bool {
	if e.Kind() == ast.ComprehensionKind {
		c := e.AsComprehension()
		if c.IterVar() == name || c.IterVar2() == name || c.AccuVar() == name {
			return true
		}
	}
	for _, child := range childrenOf(e) {
		if shadows(child, name) {
			return true
		}
	}
	return false
}
