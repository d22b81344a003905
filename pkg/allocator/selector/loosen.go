// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Looser is an expression that asks for less.
type Looser struct {
	Expression string
	// Wanted says what the changed part asks for.
	Wanted string
}

// threshold is a comparison of a value of the device with a literal.
type threshold struct {
	operator string
	read     Reading
	// value is the literal as a number, version or text.
	value any
	// literal and sign are where the literal and the operator are in the
	// expression.
	literal, sign ast.OffsetRange
}

// Looser lists expressions in which one conjunct, a comparison, is loosened to
// a value that one of the devices, given with their drivers, has: the nearest
// first. A text can only be loosened to the one of them that nearest chooses.
func (v *Evaluator) Looser(sel *Selector, conjunct int, devices iter.Seq2[string, *resourceapi.Device], nearest func(name string, names []string) string) []Looser {
	b, ok := thresholdOf(sel, conjunct)
	if !ok {
		return nil
	}
	type candidate struct {
		value any
		text  string
	}
	var candidates []candidate
	for driver, device := range devices {
		value, text, ok := b.read.comparable(driver, device)
		if !ok || b.fulfilledBy(value) || slices.ContainsFunc(candidates, func(c candidate) bool { return c.text == text }) {
			continue
		}
		if _, ok := compareValues(value, b.value); ok {
			candidates = append(candidates, candidate{value, text})
		}
	}
	if name, isText := b.value.(string); isText {
		texts := make([]string, 0, len(candidates))
		for _, c := range candidates {
			texts = append(texts, c.text)
		}
		near := nearest(name, texts)
		candidates = slices.DeleteFunc(candidates, func(c candidate) bool { return c.text != near })
	}
	upper := b.operator == operators.LessEquals || b.operator == operators.Less
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		order, _ := compareValues(a.value, b.value)
		if !upper {
			order = -order
		}
		return order
	})
	var list []Looser
	for _, c := range candidates {
		changed := v.Compile(b.with(sel.Expression, c.text))
		if changed.Err != nil || len(changed.Conjuncts) != len(sel.Conjuncts) {
			continue
		}
		list = append(list, Looser{Expression: changed.Expression, Wanted: changed.Conjuncts[conjunct].String()})
	}
	return list
}

// thresholdOf recognizes a conjunct like those of [wantedText].
func thresholdOf(sel *Selector, conjunct int) (threshold, bool) {
	for _, r := range sel.Expression {
		if r > 127 {
			// Places in the text are counted in characters.
			return threshold{}, false
		}
	}
	if sel.root == nil {
		return threshold{}, false
	}
	whole := sel.Conjuncts[conjunct].expr
	if whole.Kind() != ast.CallKind || len(whole.AsCall().Args()) != 2 {
		return threshold{}, false
	}
	call := whole.AsCall()
	b := threshold{operator: call.FunctionName()}
	if !slices.Contains([]string{operators.Equals, operators.GreaterEquals, operators.Greater, operators.LessEquals, operators.Less}, b.operator) {
		return threshold{}, false
	}
	left, right := call.Args()[0], call.Args()[1]
	if left.Kind() == ast.CallKind && left.AsCall().FunctionName() == "compareTo" && left.AsCall().IsMemberFunction() && len(left.AsCall().Args()) == 1 {
		if zero, _ := literalValue(right); zero != "0" {
			return threshold{}, false
		}
		left, right = left.AsCall().Target(), left.AsCall().Args()[0]
	}
	var ok bool
	if b.read, ok = readingOf(left); !ok || isTest(left) || b.read.Name == "" {
		return threshold{}, false
	}
	if right, b.value, ok = valueOf(right); !ok {
		return threshold{}, false
	}
	var found bool
	if b.literal, found = sel.info.GetOffsetRange(right.ID()); !found {
		return threshold{}, false
	}
	b.sign, found = sel.info.GetOffsetRange(whole.ID())
	return b, found && int(b.literal.Stop) <= len(sel.Expression) && int(b.sign.Stop) <= len(sel.Expression)
}

// valueOf is the literal in an expression and what it stands for.
func valueOf(e ast.Expr) (ast.Expr, any, bool) {
	if e.Kind() == ast.CallKind && len(e.AsCall().Args()) == 1 {
		arg := e.AsCall().Args()[0]
		text, ok := literalText(arg)
		if !ok {
			return nil, nil, false
		}
		switch e.AsCall().FunctionName() {
		case "quantity":
			q, err := resource.ParseQuantity(text)
			return arg, q, err == nil
		case "semver":
			v, err := semver.Parse(text)
			return arg, v, err == nil
		}
		return nil, nil, false
	}
	if e.Kind() != ast.LiteralKind {
		return nil, nil, false
	}
	switch value := e.AsLiteral().(type) {
	case types.Int:
		return e, int64(value), true
	case types.String:
		return e, string(value), true
	default:
		return nil, nil, false
	}
}

// comparable is what a device has there, as [valueOf] gives it.
func (r Reading) comparable(driver string, device *resourceapi.Device) (value any, text string, ok bool) {
	if r.Kind == KindCapacity {
		capacity, ok := Lookup(device.Capacity, r.Domain, r.Name, driver)
		return capacity.Value, capacity.Value.String(), ok
	}
	attribute, ok := Lookup(device.Attributes, r.Domain, r.Name, driver)
	switch {
	case !ok:
		return nil, "", false
	case attribute.IntValue != nil:
		return *attribute.IntValue, strconv.FormatInt(*attribute.IntValue, 10), true
	case attribute.VersionValue != nil:
		version, err := semver.Parse(*attribute.VersionValue)
		return version, *attribute.VersionValue, err == nil
	case attribute.StringValue != nil:
		return *attribute.StringValue, *attribute.StringValue, true
	default:
		return nil, "", false
	}
}

// compareValues compares two values of [valueOf]; false if they differ in kind.
func compareValues(a, b any) (int, bool) {
	switch a := a.(type) {
	case int64:
		b, ok := b.(int64)
		return cmp.Compare(a, b), ok
	case string:
		b, ok := b.(string)
		return cmp.Compare(a, b), ok
	case resource.Quantity:
		b, ok := b.(resource.Quantity)
		return a.Cmp(b), ok
	case semver.Version:
		b, ok := b.(semver.Version)
		return a.Compare(b), ok
	default:
		return 0, false
	}
}

func (b threshold) fulfilledBy(value any) bool {
	order, ok := compareValues(value, b.value)
	switch b.operator {
	case operators.Equals:
		return ok && order == 0
	case operators.GreaterEquals:
		return ok && order >= 0
	case operators.Greater:
		return ok && order > 0
	case operators.LessEquals:
		return ok && order <= 0
	default:
		return ok && order < 0
	}
}

// with is the expression with another value, which it is enough to have.
func (b threshold) with(expression, value string) string {
	if _, number := b.value.(int64); !number {
		value = strconv.Quote(value)
	}
	type replacement struct {
		at   ast.OffsetRange
		with string
	}
	replacements := []replacement{{b.literal, value}}
	if b.operator == operators.Greater || b.operator == operators.Less {
		sign := map[string]string{operators.Greater: ">=", operators.Less: "<="}[b.operator]
		replacements = append(replacements, replacement{b.sign, sign})
	}
	// The later one first, so that the place of the other stays right.
	slices.SortFunc(replacements, func(x, y replacement) int { return cmp.Compare(y.at.Start, x.at.Start) })
	for _, r := range replacements {
		expression = expression[:r.at.Start] + r.with + expression[r.at.Stop:]
	}
	return expression
}
