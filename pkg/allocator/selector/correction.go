// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"cmp"
	"maps"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Correction is the probable intention behind an expression.
type Correction struct {
	Expression string
	Changes    []Change
}

// Change is one corrected part of an expression, before and after.
type Change struct{ From, To string }

// correcting is the correction of one expression. Its steps are visitors of [everywhere]:
// correct parts stay as they are, so that a part that is visited twice, in the tree and in
// a macro, is changed in the same way.
type correcting struct {
	whole     *ast.AST
	words     *Vocabulary
	factory   ast.ExprFactory
	functions []string
	// original has the comparisons as they were written, at the changes, by the
	// number of the expression.
	original map[int64]written
	at       map[int64]Change
}

// written is a part of the expression before anything was changed.
type written struct {
	text string
	// within has the numbers of the parts of which it is made.
	within []int64
}

// changes lists the changes, in the order of the expression.
func (c *correcting) changes() []Change {
	ids := slices.SortedFunc(maps.Keys(c.at), cmp.Compare)
	var list []Change
	for _, id := range ids {
		if !slices.Contains(list, c.at[id]) {
			list = append(list, c.at[id])
		}
	}
	return list
}

// remember keeps the original form of comparisons. It reports whether to visit the operands
// of e.
func (c *correcting) remember(e ast.Expr) bool {
	if e.Kind() != ast.CallKind {
		return true
	}
	// The compared value may be recognized only later.
	name := e.AsCall().FunctionName()
	if _, ok := relationOf(name); ok || name == operators.In || e.AsCall().IsMemberFunction() {
		from := written{text: c.text(e)}
		var visit func(ast.Expr)
		visit = func(part ast.Expr) {
			from.within = append(from.within, part.ID())
			for _, child := range childrenOf(part) {
				visit(child)
			}
		}
		visit(e)
		c.original[e.ID()] = from
	}
	return true
}

func (c *correcting) text(e ast.Expr) string {
	text, err := unparse(e, c.whole.SourceInfo())
	if err != nil {
		return ""
	}
	return text
}

// replace replaces an expression by one without a number of its own.
func (c *correcting) replace(e, with ast.Expr, change Change) {
	if _, isMacro := c.whole.SourceInfo().GetMacroCall(e.ID()); isMacro {
		c.whole.SourceInfo().SetMacroCall(e.ID(), with)
	}
	e.SetKindCase(with)
	if _, known := c.at[e.ID()]; !known {
		c.at[e.ID()] = change
	}
}
