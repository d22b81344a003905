// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"fmt"
	"strconv"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// relation is the operator of a comparison with the value on its left.
type relation int

const (
	equals relation = iota
	differs
	atLeast
	greater
	atMost
	less
)

// mirrored returns the relation with the sides exchanged.
func (r relation) mirrored() relation {
	return [...]relation{equals, differs, atMost, less, atLeast, greater}[r]
}

// negation returns the relation of the values that do not fulfill this one.
func (r relation) negation() relation {
	return [...]relation{differs, equals, less, atMost, greater, atLeast}[r]
}

// inclusive returns the relation that the bound itself fulfills, too.
func (r relation) inclusive() relation {
	return [...]relation{equals, differs, atLeast, atLeast, atMost, atMost}[r]
}

// holds reports whether the relation is true for the order of two values.
func (r relation) holds(order int) bool {
	return [...]bool{order == 0, order != 0, order >= 0, order > 0, order <= 0, order < 0}[r]
}

func (r relation) operator() string {
	return [...]string{
		operators.Equals, operators.NotEquals, operators.GreaterEquals, operators.Greater, operators.LessEquals, operators.Less,
	}[r]
}

func relationOf(operator string) (relation, bool) {
	for r := equals; r <= less; r++ {
		if r.operator() == operator {
			return r, true
		}
	}
	return 0, false
}

// form is the syntax of a comparison.
type form int

const (
	asOperator  form = iota // x >= 1, x == quantity("1")
	asCompareTo             // x.compareTo(quantity("1")) >= 0
	asMethod                // x.isGreaterThan(quantity("1"))
)

// Functions and methods of quantities and versions (library quantity.go and semverlib.go of
// k8s.io/apiserver/pkg/cel/library).
const (
	quantityFunction = "quantity"
	semverFunction   = "semver"
	greaterMethod    = "isGreaterThan"
	lessMethod       = "isLessThan"
	compareMethod    = "compareTo"
)

// comparison is a value of the device compared with a literal.
type comparison struct {
	relation relation
	form     form
	read     Reading
	// target is the expression that reads the value.
	target ast.Expr
	// literal is the compared literal, without wrapper, the function that makes a quantity
	// or a version of it.
	literal ast.Expr
	wrapper string
	// flipped is true if the literal is on the left, negated if the whole is the
	// negation of a method.
	flipped, negated bool
}

// comparisonOf recognizes the forms above. The types of both sides need not
// agree.
func comparisonOf(e ast.Expr) (comparison, bool) {
	if e.Kind() != ast.CallKind {
		return comparison{}, false
	}
	call := e.AsCall()
	switch name := call.FunctionName(); {
	case name == operators.LogicalNot:
		c, ok := methodOf(call.Args()[0])
		c.negated, c.relation = true, c.relation.negation()
		return c, ok
	case call.IsMemberFunction():
		return methodOf(e)
	case len(call.Args()) != 2:
		return comparison{}, false
	}
	relation, ok := relationOf(call.FunctionName())
	if !ok {
		return comparison{}, false
	}
	c := comparison{relation: relation}
	left, right := call.Args()[0], call.Args()[1]
	if target, arg, ok := memberCall(left, compareMethod); ok && isZero(right) {
		c.form = asCompareTo
		return c.between(target, arg)
	}
	if _, _, isLiteral := literalOf(left); isLiteral {
		left, right = right, left
		c.flipped, c.relation = true, relation.mirrored()
	}
	return c.between(left, right)
}

func methodOf(e ast.Expr) (comparison, bool) {
	for name, relation := range map[string]relation{greaterMethod: greater, lessMethod: less} {
		if target, arg, ok := memberCall(e, name); ok {
			return comparison{form: asMethod, relation: relation}.between(target, arg)
		}
	}
	return comparison{}, false
}

// between completes a comparison of a reading with a literal.
func (c comparison) between(target, arg ast.Expr) (comparison, bool) {
	var isReading, isLiteral bool
	c.target = target
	c.read, isReading = readingOf(target)
	c.literal, c.wrapper, isLiteral = literalOf(arg)
	return c, isReading && isLiteral && !isTest(target) && !isOptional(target) && (c.read.Domain == "" || c.read.Name != "")
}

// method returns the method of the comparison.
func (c comparison) method() string {
	if greaterWhenPlain := c.relation == greater || c.relation == atMost; greaterWhenPlain {
		return greaterMethod
	}
	return lessMethod
}

// memberCall recognizes target.name(arg).
func memberCall(e ast.Expr, name string) (target, arg ast.Expr, ok bool) {
	if e.Kind() != ast.CallKind {
		return nil, nil, false
	}
	call := e.AsCall()
	if !call.IsMemberFunction() || call.FunctionName() != name || len(call.Args()) != 1 {
		return nil, nil, false
	}
	return call.Target(), call.Args()[0], true
}

// literalOf recognizes a literal, alone or in a call of quantity() or semver().
func literalOf(e ast.Expr) (literal ast.Expr, wrapper string, ok bool) {
	switch e.Kind() {
	case ast.LiteralKind:
		return e, "", true
	case ast.CallKind:
		call := e.AsCall()
		name := call.FunctionName()
		if call.IsMemberFunction() || len(call.Args()) != 1 || name != quantityFunction && name != semverFunction {
			return nil, "", false
		}
		if _, isText := literalText(call.Args()[0]); isText {
			return call.Args()[0], name, true
		}
	default:
	}
	return nil, "", false
}

func isZero(e ast.Expr) bool {
	if e.Kind() != ast.LiteralKind {
		return false
	}
	number, ok := e.AsLiteral().(types.Int)
	return ok && number == 0
}

// isOptional reports whether an expression reads an optional value, which can only
// be compared with another one.
func isOptional(e ast.Expr) bool {
	switch e.Kind() {
	case ast.CallKind:
		name := e.AsCall().FunctionName()
		return name == operators.OptIndex || name == operators.OptSelect ||
			name == operators.Index && isOptional(e.AsCall().Args()[0])
	case ast.SelectKind:
		return isOptional(e.AsSelect().Operand())
	default:
		return false
	}
}

// value returns the value of the literal: an int64, a bool, a text, a quantity or a
// version. It is not ok if it has none.
func (c comparison) value() (value any, ok bool) {
	text, isText := literalText(c.literal)
	switch {
	case c.wrapper == quantityFunction:
		return parsed(ParseQuantity(text))
	case c.wrapper == semverFunction:
		version, err := semver.Parse(text)
		return version, err == nil
	case isText:
		return text, true
	}
	switch literal := c.literal.AsLiteral().(type) {
	case types.Int:
		return int64(literal), true
	case types.Bool:
		return bool(literal), true
	default:
		return nil, false
	}
}

func parsed[T any](value T, ok bool) (any, bool) { return value, ok }

// with writes the comparison for another relation and literal, as its author would have: it
// only uses compareTo if no method will do.
func (c comparison) with(relation relation, literal ast.Expr) ast.Expr {
	factory := ast.NewExprFactory()
	if c.form == asMethod {
		changed := c
		if changed.relation = relation; c.negated == (relation == atLeast || relation == atMost) && relation != equals && relation != differs {
			call := factory.NewMemberCall(0, changed.method(), c.target, literal)
			if c.negated {
				return factory.NewCall(0, operators.LogicalNot, call)
			}
			return call
		}
		c.form = asCompareTo
	}
	left, right := c.target, literal
	if c.form == asCompareTo {
		left, right = factory.NewMemberCall(0, compareMethod, c.target, literal), factory.NewLiteral(0, types.Int(0))
	} else if c.flipped {
		left, right, relation = right, left, relation.mirrored()
	}
	return factory.NewCall(0, relation.operator(), left, right)
}

// literalExpr returns a text as a literal, in a call of a function if one is named.
func literalExpr(text, wrapper string) ast.Expr {
	factory := ast.NewExprFactory()
	literal := factory.NewLiteral(0, types.String(text))
	if wrapper == "" {
		return literal
	}
	return factory.NewCall(0, wrapper, literal)
}

// wantedText describes the requirement of a simple comparison in a few words, and returns
// anything else as it is written.
func wantedText(e ast.Expr, text string) string {
	c, ok := comparisonOf(e)
	if !ok {
		return text
	}
	value := c.literalText()
	switch c.relation {
	case differs:
		return "anything but " + value
	case atLeast:
		return value + " or more"
	case greater:
		return "greater than " + value
	case atMost:
		return value + " or less"
	case less:
		return "less than " + value
	default:
		return value
	}
}

// literalText writes the compared value for people.
func (c comparison) literalText() string {
	text, isText := literalText(c.literal)
	switch {
	case c.wrapper == quantityFunction:
		if quantity, ok := ParseQuantity(text); ok {
			return QuantityText(quantity)
		}
		return text
	case c.wrapper != "":
		return text
	case isText:
		return strconv.Quote(text)
	default:
		return fmt.Sprint(c.literal.AsLiteral().Value())
	}
}
