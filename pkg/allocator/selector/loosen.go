// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Looser is an expression that requires less.
type Looser struct {
	Expression string
	// Wanted describes the requirement of the changed part.
	Wanted string
	// Text is the value itself, if it is a text.
	Text string
}

// candidate is a value of some device.
type candidate struct {
	value any
	text  string
}

// Looser lists expressions in which one conjunct, a comparison, is loosened to a value of
// one of the devices, given with their drivers: the nearest first. A text can only be
// loosened by correcting a typo, which nearest finds.
func (v *Evaluator) Looser(sel *Selector, conjunct int, devices iter.Seq2[string, *resourceapi.Device], nearest func(name string, names []string) string) []Looser {
	if sel.root == nil {
		return nil
	}
	at := sel.Conjuncts[conjunct].expr
	c, ok := comparisonOf(at)
	if !ok || c.relation == differs || c.read.Name == "" {
		return nil
	}
	bound, ok := c.value()
	if _, isBool := bound.(bool); !ok || isBool {
		return nil
	}
	candidates := c.candidates(bound, devices)
	if name, isText := bound.(string); isText {
		texts := make([]string, 0, len(candidates))
		for _, each := range candidates {
			texts = append(texts, each.text)
		}
		near := nearest(name, texts)
		candidates = slices.DeleteFunc(candidates, func(each candidate) bool { return each.text != near })
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return c.closer(bound, a.value, b.value) })
	var list []Looser
	for _, each := range candidates {
		text, err := sel.with(at, c.with(c.relation.inclusive(), c.literalLike(each)))
		if err != nil {
			continue
		}
		changed := v.Compile(text)
		if changed.Err != nil || len(changed.Conjuncts) != len(sel.Conjuncts) {
			continue
		}
		looser := Looser{Expression: changed.Expression, Wanted: changed.Conjuncts[conjunct].String()}
		looser.Text, _ = each.value.(string)
		list = append(list, looser)
	}
	return list
}

// candidates lists the different values of devices that do not fulfill a comparison with a
// value of the same type.
func (c comparison) candidates(bound any, devices iter.Seq2[string, *resourceapi.Device]) []candidate {
	var list []candidate
	known := map[string]bool{}
	for driver, device := range devices {
		value, text, ok := c.read.comparable(driver, device)
		if !ok || known[text] {
			continue
		}
		known[text] = true
		if order, ok := compareValues(value, bound); ok && !c.relation.holds(order) {
			list = append(list, candidate{value, text})
		}
	}
	return list
}

// literalLike writes a value as a literal of the comparison's type.
func (c comparison) literalLike(each candidate) ast.Expr {
	if number, isInt := each.value.(int64); isInt {
		return ast.NewExprFactory().NewLiteral(0, types.Int(number))
	}
	return literalExpr(each.text, c.wrapper)
}

// with writes the expression with a part replaced.
func (sel *Selector) with(part, changed ast.Expr) (string, error) {
	whole := ast.Copy(ast.NewAST(sel.root, sel.info))
	everywhere(whole, func(e ast.Expr) bool {
		if e.ID() == part.ID() {
			e.SetKindCase(changed)
			return false
		}
		return true
	})
	return unparse(whole.Expr(), whole.SourceInfo())
}

// everywhere visits the parts of an expression from the outside in, including the original
// text of macros, which unparse writes. Parts for which the visitor returns false are not
// entered.
func everywhere(whole *ast.AST, visitor func(ast.Expr) bool) {
	var visit func(e ast.Expr)
	visit = func(e ast.Expr) {
		if !visitor(e) {
			return
		}
		for _, child := range childrenOf(e) {
			visit(child)
		}
	}
	visit(whole.Expr())
	for _, call := range whole.SourceInfo().MacroCalls() {
		visit(call)
	}
}

// comparable returns the device's value there, in the form of [comparison.value].
func (r Reading) comparable(driver string, device *resourceapi.Device) (value any, text string, ok bool) {
	if r.Kind == KindCapacity {
		capacity, ok := Lookup(device.Capacity, r.Domain, r.Name, driver)
		return capacity.Value, QuantityText(capacity.Value), ok
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

// compareValues compares two values of the same type; false if the types differ.
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

// closer orders two values by how close they come to fulfilling a comparison
// with one of the same type; of two that are equally close, the larger one comes
// first.
func (c comparison) closer(bound, a, b any) int {
	larger, _ := compareValues(b, a)
	switch c.relation {
	case atLeast, greater:
		return larger
	case atMost, less:
		return -larger
	default:
		return cmp.Or(cmp.Compare(distance(bound, a), distance(bound, b)), larger)
	}
}

// distance returns how far apart two values of the same type are, 0 for texts.
func distance(a, b any) float64 { return math.Abs(magnitude(a) - magnitude(b)) }

func magnitude(value any) float64 {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case resource.Quantity:
		return value.AsApproximateFloat64()
	case semver.Version:
		// Enough to tell which of two versions is closer to a third.
		const base = 1e5
		return (float64(value.Major)*base+float64(value.Minor))*base + float64(value.Patch)
	default:
		return 0
	}
}

// Amount recognizes a comparison that requires an amount, which 0 and an empty text are
// not. A number that identifies a place, like a NUMA node, may be 0, so a number is an
// amount only if a larger one is enough, too.
func (p *Part) Amount() (Reading, bool) {
	c, ok := comparisonOf(p.expr)
	if !ok || c.read.Name == "" {
		return Reading{}, false
	}
	bound, ok := c.value()
	if !ok || isNothing(bound) {
		return Reading{}, false
	}
	switch c.relation {
	case atLeast, greater:
		return c.read, true
	case equals:
		_, isNumber := bound.(int64)
		_, isBool := bound.(bool)
		return c.read, !isNumber && !isBool
	default:
		return Reading{}, false
	}
}

// Nothing reports whether a device has 0 or an empty text there; ok is false if it has
// no value there.
func (r Reading) Nothing(driver string, device *resourceapi.Device) (nothing, ok bool) {
	value, _, ok := r.comparable(driver, device)
	return ok && isNothing(value), ok
}

func isNothing(value any) bool {
	switch value := value.(type) {
	case int64:
		return value == 0
	case string:
		return value == ""
	case resource.Quantity:
		return value.IsZero()
	case semver.Version:
		return value.Equals(semver.Version{})
	default:
		return false
	}
}
