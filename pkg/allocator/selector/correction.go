// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
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

// types corrects comparisons of a value with a literal of another type. It reports whether
// to visit the operands of e.
func (c *correcting) types(e ast.Expr) bool {
	changed, ok := c.listed(e)
	if !ok {
		compared, isComparison := comparisonOf(e)
		if !isComparison {
			return true
		}
		changed, ok = c.typed(compared)
	}
	if ok && c.text(changed) != c.text(e) {
		c.convert(e, changed)
	}
	return false
}

// convert replaces a comparison. It records the change of the whole, and not of the names
// in it.
func (c *correcting) convert(e, changed ast.Expr) {
	from, known := c.original[e.ID()]
	if !known {
		from.text = c.text(e)
	}
	for _, id := range from.within {
		delete(c.at, id)
	}
	c.replace(e, changed, Change{from.text, c.text(changed)})
}

// typed returns a comparison that suits the type of its reading; false if the intention is
// unclear.
func (c *correcting) typed(compared comparison) (ast.Expr, bool) {
	of, known := c.words.TypeOf(compared.read)
	if !known {
		return nil, false
	}
	switch of {
	case TypeInt, TypeBool:
		if compared.form != asOperator || compared.wrapper != "" {
			return nil, false
		}
		literal, ok := convertedLiteral(compared.literal, of)
		return compared.with(compared.relation, literal), ok
	case TypeString:
		return c.typedText(compared)
	case TypeVersion:
		version, ok := versionText(compared.literalSource())
		return compared.methodical(literalExpr(version, semverFunction)), ok
	case TypeQuantity:
		quantity, ok := c.quantityText(compared)
		return compared.methodical(literalExpr(quantity, quantityFunction)), ok
	case TypeList:
	}
	return nil, false
}

// equality reports whether a comparison is == or !=.
func (c comparison) equality() bool {
	return c.form == asOperator && (c.relation == equals || c.relation == differs)
}

// methodical writes the comparison of a quantity or a version, for which CEL has
// no operators but == and !=.
func (c comparison) methodical(literal ast.Expr) ast.Expr {
	if c.form != asOperator || c.equality() {
		return c.with(c.relation, literal)
	}
	c.form, c.flipped = asMethod, false
	return c.with(c.relation, literal)
}

// literalSource returns the literal as text, without quotes.
func (c comparison) literalSource() string {
	if text, ok := literalText(c.literal); ok {
		return text
	}
	return fmt.Sprint(c.literal.AsLiteral().Value())
}

// convertedLiteral writes a literal as a literal of another type: "8" as 8, "true" as true,
// 8 as "8".
func convertedLiteral(literal ast.Expr, to ValueType) (ast.Expr, bool) {
	factory := ast.NewExprFactory()
	text, isText := literalText(literal)
	switch to { //nolint:exhaustive // the others are no literals
	case TypeInt:
		number, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		return factory.NewLiteral(0, types.Int(number)), isText && err == nil
	case TypeBool:
		switch {
		case isText && strings.EqualFold(text, "true"):
			return factory.NewLiteral(0, types.True), true
		case isText && strings.EqualFold(text, "false"):
			return factory.NewLiteral(0, types.False), true
		}
	case TypeString:
		switch value := literal.AsLiteral().(type) {
		case types.Int, types.Bool:
			return factory.NewLiteral(0, types.String(fmt.Sprint(value.Value()))), true
		}
	}
	return nil, false
}

// typedText corrects the comparison of a text: it writes a number or a truth value as a
// text, and otherwise converts the text to the type of the literal, if all devices have a
// text for which that works.
func (c *correcting) typedText(compared comparison) (ast.Expr, bool) {
	_, isText := literalText(compared.literal)
	if isText && compared.wrapper == "" {
		return nil, false
	}
	if compared.equality() && compared.wrapper == "" {
		literal, ok := convertedLiteral(compared.literal, TypeString)
		return compared.with(compared.relation, literal), ok
	}
	function, holds := "int", func(text string) bool { _, err := strconv.ParseInt(text, 10, 64); return err == nil }
	switch compared.wrapper {
	case quantityFunction:
		function, holds = quantityFunction, func(text string) bool { _, ok := ParseQuantity(text); return ok }
	case semverFunction:
		function, holds = semverFunction, func(text string) bool { _, err := semver.Parse(text); return err == nil }
	default:
		if _, isInt := compared.literal.AsLiteral().(types.Int); !isInt || compared.form != asOperator {
			return nil, false
		}
	}
	if !c.words.all(compared.read, holds) {
		return nil, false
	}
	literal := compared.literal
	compared.target = c.factory.NewCall(0, function, compared.target)
	if compared.wrapper == "" {
		return compared.with(compared.relation, literal), true
	}
	return compared.methodical(literalExpr(compared.literalSource(), compared.wrapper)), true
}

// versionText writes a version as semantic versioning has it: 1.2 as 1.2.0, v1.02.3 as
// 1.2.3.
func versionText(text string) (string, bool) {
	if _, err := semver.Parse(text); err == nil {
		return text, true
	}
	numbers, rest := strings.TrimSpace(text), ""
	numbers = strings.TrimPrefix(strings.TrimPrefix(numbers, "v"), "V")
	if at := strings.IndexAny(numbers, "-+"); at >= 0 {
		numbers, rest = numbers[:at], numbers[at:]
	}
	parts := strings.Split(numbers, ".")
	for len(parts) < 3 {
		parts = append(parts, "0")
	}
	for i, part := range parts {
		if short := strings.TrimLeft(part, "0"); short != "" || part == "" {
			parts[i] = short
		} else {
			parts[i] = "0"
		}
	}
	version := strings.Join(parts, ".") + rest
	_, err := semver.Parse(version)
	return version, err == nil
}

// farOff is how much smaller than every value a plain number must be for its unit to be in
// doubt.
const farOff = 1000

// quantityText writes the compared value of a capacity as a quantity. A number without a
// unit is a quantity only if the number is about as large as the values of devices.
func (c *correcting) quantityText(compared comparison) (string, bool) {
	text := compared.literalSource()
	if compared.wrapper == semverFunction {
		return "", false
	}
	if _, isText := literalText(compared.literal); isText {
		return plainQuantity(text)
	}
	number, isInt := compared.literal.AsLiteral().(types.Int)
	near := isInt && !c.words.all(compared.read, func(have string) bool {
		quantity, ok := ParseQuantity(have)
		return ok && quantity.AsApproximateFloat64() > farOff*float64(number)
	})
	quantity, ok := ParseQuantity(text)
	if !ok || !near {
		return "", false
	}
	return QuantityText(quantity), true
}

// plainQuantity writes a quantity as Kubernetes has it: "80 GiB" as 80Gi.
func plainQuantity(text string) (string, bool) {
	if _, ok := ParseQuantity(text); ok {
		return text, true
	}
	short := strings.TrimSuffix(strings.ReplaceAll(text, " ", ""), "B")
	_, ok := ParseQuantity(short)
	return short, ok
}

// listed corrects x in ["8", "16"] for numbers, truth values and texts.
func (c *correcting) listed(e ast.Expr) (ast.Expr, bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.In {
		return nil, false
	}
	target, list := e.AsCall().Args()[0], e.AsCall().Args()[1]
	r, isReading := readingOf(target)
	of, known := c.words.TypeOf(r)
	if !isReading || !known || list.Kind() != ast.ListKind || isTest(target) {
		return nil, false
	}
	var elements []ast.Expr
	for _, element := range list.AsList().Elements() {
		if element.Kind() != ast.LiteralKind {
			return nil, false
		}
		converted, ok := convertedLiteral(element, of)
		if !ok {
			return nil, false
		}
		elements = append(elements, converted)
	}
	if len(elements) == 0 {
		return nil, false
	}
	return c.factory.NewCall(0, operators.In, target, c.factory.NewList(0, elements, nil)), true
}

// flags corrects texts that are used like truth values.
func (c *correcting) flags(e ast.Expr) {
	if e.Kind() == ast.CallKind {
		switch e.AsCall().FunctionName() {
		case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
			for _, arg := range e.AsCall().Args() {
				c.flags(arg)
			}
			return
		}
	}
	r, ok := readingOf(e)
	if of, known := c.words.TypeOf(r); !ok || isTest(e) || isOptional(e) || !known || of != TypeString {
		return
	}
	if c.words.all(r, func(text string) bool { return text == "true" || text == "false" }) {
		read := c.factory.CopyExpr(e)
		c.convert(e, c.factory.NewCall(0, operators.Equals, read, literalExpr("true", "")))
	}
}
