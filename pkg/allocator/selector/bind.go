// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"github.com/google/cel-go/common/ast"
)

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
