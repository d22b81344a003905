// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
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
	byExpr   map[string]*selector
	// odd remembers which devices have an attribute that CEL refuses.
	odd map[*resourceapi.Device]bool
}

// maxCompiled is how many compiled expressions are kept: more than any one
// explanation has.
const maxCompiled = 1000

func newSelectors(features dracel.Features) *selectors {
	return &selectors{
		cache:    dracel.NewCache(maxCompiled, features),
		features: features,
		byExpr:   make(map[string]*selector),
		odd:      make(map[*resourceapi.Device]bool),
	}
}

// selector is one compiled expression.
type selector struct {
	expression string
	compiled   dracel.CompilationResult
	// root is the expression parsed, nil if it cannot be taken apart; info has
	// what it takes to write parts of it down again.
	root ast.Expr
	info *ast.SourceInfo
	// conjuncts are the operands of the outermost &&, or the whole expression.
	conjuncts []conjunct
	// reads are the values that the expression can see; opaque is true if it
	// can see more than that.
	reads  []reading
	opaque bool
	memo   map[string]selection
}

// conjunct is a part of an expression that must hold.
type conjunct struct {
	expression string
	// wanted says it in a few words: "80Gi or more".
	wanted string
	reads  []reading
}

// selection is the result of a selector for one device.
type selection struct {
	matches bool
	err     error
	// failed is the first conjunct that does not hold, nil if that could not
	// be told.
	failed *conjunct
	// missing are what an expression that fails reads and the device lacks.
	missing []reading
	// found has the values that the failed conjunct, or else the expression,
	// reads.
	found []string
}

func (s *selectors) compile(expression string) *selector {
	if known, ok := s.byExpr[expression]; ok {
		return known
	}
	sel := &selector{
		expression: expression,
		compiled:   s.cache.GetOrCompile(expression),
		memo:       make(map[string]selection),
	}
	s.byExpr[expression] = sel
	if sel.compiled.Error != nil {
		return sel
	}
	// Macros have to be remembered as they were written, or else their parts
	// cannot be written down again.
	env, err := sel.compiled.Environment.Extend(cel.EnableMacroCallTracking())
	if err != nil {
		sel.opaque = true
		return sel
	}
	parsed, issues := env.Compile(expression)
	if issues.Err() != nil {
		sel.opaque = true
		return sel
	}
	root, info := parsed.NativeRep().Expr(), parsed.NativeRep().SourceInfo()
	sel.root, sel.info = root, info
	sel.reads, sel.opaque = readings(root)
	for _, part := range conjunctsOf(root) {
		text, err := unparse(part, info)
		if err != nil {
			// Then it cannot be told which part is false.
			sel.conjuncts = nil
			break
		}
		reads, _ := readings(part)
		sel.conjuncts = append(sel.conjuncts, conjunct{
			expression: text,
			wanted:     wantedText(part, text),
			reads:      reads,
		})
	}
	return sel
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
func (s *selectors) evaluate(ctx context.Context, sel *selector, driver string, device *resourceapi.Device) selection {
	if sel.compiled.Error != nil {
		return selection{err: sel.compiled.Error}
	}
	if sel.opaque || s.isOdd(device) {
		return s.run(ctx, sel, driver, device)
	}
	key := valuesKey(sel.reads, driver, device)
	result, known := sel.memo[key]
	if !known {
		result = s.run(ctx, sel, driver, device)
		sel.memo[key] = result
	}
	return result
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

func (s *selectors) run(ctx context.Context, sel *selector, driver string, device *resourceapi.Device) selection {
	input := celDevice(driver, device)
	matches, _, err := sel.compiled.DeviceMatches(ctx, input)
	if err != nil {
		result := selection{err: err, found: foundValues(sel.reads, driver, device)}
		for _, r := range sel.reads {
			if _, ok := r.value(driver, device); !ok {
				result.missing = append(result.missing, r)
			}
		}
		return result
	}
	if matches {
		return selection{matches: true}
	}
	result := selection{}
	if len(sel.conjuncts) == 1 {
		result.failed = &sel.conjuncts[0]
	} else {
		result.failed = s.firstFalse(ctx, sel.conjuncts, input)
	}
	reads := sel.reads
	if result.failed != nil {
		reads = result.failed.reads
	}
	result.found = foundValues(reads, driver, device)
	return result
}

// firstFalse finds the first conjunct that is false on its own. With && an
// operand that fails does not matter as long as another one is false.
func (s *selectors) firstFalse(ctx context.Context, conjuncts []conjunct, input dracel.Device) *conjunct {
	for i := range conjuncts {
		compiled := s.cache.GetOrCompile(conjuncts[i].expression)
		if compiled.Error != nil {
			continue
		}
		matches, _, err := compiled.DeviceMatches(ctx, input)
		if err == nil && !matches {
			return &conjuncts[i]
		}
	}
	return nil
}
