// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/parser"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// selectors evaluates CEL selectors with the compiler that the allocator uses.
// Devices that agree in everything an expression can read are evaluated once.
// Not safe for concurrent use.
type selectors struct {
	cache    *dracel.Cache
	features dracel.Features
	// sharing is false if selectors are not told that a device can be shared,
	// as the stable implementation of the allocator does.
	sharing bool
	byExpr  map[string]*selector
	// odd remembers which devices have an attribute that CEL refuses.
	odd map[*resourceapi.Device]bool
}

// maxCompiled is how many compiled expressions are kept: more than any one
// explanation has.
const maxCompiled = 1000

func newSelectors(features dracel.Features, channel string) *selectors {
	return &selectors{
		cache:    dracel.NewCache(maxCompiled, features),
		features: features,
		sharing:  channel != "stable",
		byExpr:   make(map[string]*selector),
		odd:      make(map[*resourceapi.Device]bool),
	}
}

// like says whether expressions mean the same to others.
func (s *selectors) like(others *selectors) bool {
	return s.features == others.features && s.sharing == others.sharing
}

// selector is one compiled expression.
type selector struct {
	expression string
	compiled   dracel.CompilationResult
	// tracked is the same program, which also tells the values of its parts; it
	// has no program if the expression cannot be taken apart.
	tracked dracel.CompilationResult
	// root is the expression parsed, nil if it cannot be taken apart; info has
	// what it takes to write parts of it down again.
	root ast.Expr
	info *ast.SourceInfo
	// conjuncts are the operands of the outermost &&, or the whole expression.
	conjuncts []conjunct
	// reads are the values that the expression can see; opaque is true if it
	// can see more than that. It fails without those in needs, if it gets to them.
	reads, needs []reading
	opaque       bool
	// memo has the results by the values that were read, byDevice by device.
	memo     map[string]*selection
	byDevice map[*resourceapi.Device]*selection
	// cost is the estimate of the worst case once it was asked for.
	cost *uint64
}

// conjunct is a part of an expression that must hold, or a part of such a part.
type conjunct struct {
	expression string
	// wanted says it in a few words: "80Gi or more".
	wanted       string
	reads, needs []reading
	expr         ast.Expr
	// operands are the parts that it is made of, if it is made by a logical
	// operator.
	operands []conjunct
	// typo is the answer of [checks.unheardOf] once it was asked for.
	typo *string
}

// selection is the result of a selector for one device.
type selection struct {
	matches bool
	err     error
	// failed is the first conjunct that does not hold, nil if that could not
	// be told.
	failed *conjunct
	// missing are what the parts that fail need and the device lacks.
	missing []reading
	// found has the values that the part which decided reads.
	found []string
	// seen tells for each conjunct how it went; nil if that is not known.
	seen []sighting
}

func (s *selectors) compile(expression string) *selector {
	if known, ok := s.byExpr[expression]; ok {
		return known
	}
	sel := &selector{
		expression: expression,
		compiled:   s.cache.GetOrCompile(expression),
		memo:       make(map[string]*selection),
		byDevice:   make(map[*resourceapi.Device]*selection),
	}
	s.byExpr[expression] = sel
	if sel.compiled.Error != nil {
		return sel
	}
	if err := sel.takeApart(); err != nil {
		// Then it cannot be told which part is false.
		sel.root, sel.conjuncts, sel.opaque = nil, nil, true
	}
	return sel
}

// takeApart finds the parts of the expression.
func (sel *selector) takeApart() error {
	// Macros have to be remembered as they were written, or else their parts
	// cannot be written down again.
	env, err := sel.compiled.Environment.Extend(cel.EnableMacroCallTracking())
	if err != nil {
		return fmt.Errorf("extend the CEL environment: %w", err)
	}
	parsed, issues := env.Compile(sel.expression)
	if err := issues.Err(); err != nil {
		return fmt.Errorf("compile again: %w", err)
	}
	program, err := env.Program(parsed, cel.EvalOptions(cel.OptTrackState),
		cel.CostLimit(resourceapi.CELSelectorExpressionMaxCost), cel.InterruptCheckFrequency(checkFrequency))
	if err != nil {
		return fmt.Errorf("set up the program: %w", err)
	}
	sel.root, sel.info = withoutBinds(parsed.NativeRep())
	sel.reads, sel.opaque = readings(sel.root)
	sel.needs = needs(sel.root)
	room := maxParts
	for _, part := range operandsOf(sel.root, operators.LogicalAnd) {
		c, err := sel.conjunct(part, &room)
		if err != nil {
			return err
		}
		sel.conjuncts = append(sel.conjuncts, c)
	}
	sel.tracked = sel.compiled
	sel.tracked.Program = program
	return nil
}

const (
	// maxParts bounds the number of parts below the conjuncts.
	maxParts = 40
	// checkFrequency is how often, in loop iterations, an evaluation checks
	// whether it shall end: that of the API server's configuration for CEL.
	checkFrequency = 100
)

func (sel *selector) conjunct(e ast.Expr, room *int) (conjunct, error) {
	text, err := unparse(e, sel.info)
	if err != nil {
		return conjunct{}, err
	}
	reads, _ := readings(e)
	c := conjunct{expression: text, wanted: wantedText(e, text), reads: reads, needs: needs(e), expr: e}
	operands := logicalOperands(e)
	if len(operands) > *room {
		return c, nil
	}
	*room -= len(operands)
	for _, operand := range operands {
		below, err := sel.conjunct(operand, room)
		if err != nil {
			return conjunct{}, err
		}
		c.operands = append(c.operands, below)
	}
	return c, nil
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

// unparse writes a part of an expression down again, in one line.
func unparse(e ast.Expr, info *ast.SourceInfo) (string, error) {
	text, err := parser.Unparse(e, info, parser.WrapOnOperators())
	if err != nil {
		return "", fmt.Errorf("write down a CEL expression: %w", err)
	}
	return text, nil
}

// evaluate runs an expression against a device of the given driver.
func (s *selectors) evaluate(ctx context.Context, sel *selector, driver string, device *resourceapi.Device) *selection {
	if result, known := sel.byDevice[device]; known {
		return result
	}
	var result *selection
	shown := s.shown(device)
	switch {
	case sel.compiled.Error != nil:
		result = &selection{err: sel.compiled.Error}
	case sel.opaque || s.isOdd(device):
		result = s.run(ctx, sel, driver, shown)
	default:
		key := valuesKey(sel.reads, driver, shown)
		known := false
		if result, known = sel.memo[key]; !known {
			result = s.run(ctx, sel, driver, shown)
			sel.memo[key] = result
		}
	}
	sel.byDevice[device] = result
	return result
}

// shown is the device as selectors see it.
func (s *selectors) shown(device *resourceapi.Device) *resourceapi.Device {
	if s.sharing || device.AllowMultipleAllocations == nil {
		return device
	}
	shown := *device
	shown.AllowMultipleAllocations = nil
	return &shown
}

// isOdd says whether a device has an attribute that makes every expression
// fail, read or not: all are converted beforehand.
func (s *selectors) isOdd(device *resourceapi.Device) bool {
	odd, known := s.odd[device]
	if known {
		return odd
	}
	for _, attribute := range device.Attributes {
		versions := attribute.VersionValues
		if attribute.VersionValue != nil {
			versions = append(versions[:len(versions):len(versions)], *attribute.VersionValue)
		}
		odd = odd || !isList(attribute) && attribute.StringValue == nil && attribute.IntValue == nil && attribute.BoolValue == nil && attribute.VersionValue == nil
		for _, version := range versions {
			if _, err := semver.Parse(version); err != nil {
				odd = true
			}
		}
	}
	s.odd[device] = odd
	return odd
}

// run evaluates an expression against a device as selectors see it, that is, a
// [selectors.shown] one.
func (s *selectors) run(ctx context.Context, sel *selector, driver string, device *resourceapi.Device) *selection {
	matches, _, err := sel.compiled.DeviceMatches(ctx, celDevice(driver, device))
	result := &selection{matches: matches && err == nil, err: err}
	if result.matches {
		return result
	}
	seen := s.watch(ctx, sel, result, driver, device)
	for i := range seen {
		decided := seen[i].outcome == isFalse && err == nil || seen[i].outcome == fails && err != nil
		if decided && result.failed == nil {
			result.failed = &sel.conjuncts[i]
			result.found = seen[i].found()
		}
	}
	if result.failed == nil {
		result.found = foundValues(sel.reads, driver, device)
	}
	if err == nil {
		return result
	}
	needed := sel.needs
	if result.failed != nil {
		needed = nil
		for i := range seen {
			if seen[i].outcome == fails {
				needed = append(needed, seen[i].needs(&sel.conjuncts[i])...)
			}
		}
	}
	for _, r := range needed {
		if _, ok := r.value(driver, device); !ok && !slices.Contains(result.missing, r) {
			result.missing = append(result.missing, r)
		}
	}
	return result
}
