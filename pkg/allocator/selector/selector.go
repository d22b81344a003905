// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/parser"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// Selector is one compiled expression. [Evaluator.Compile] makes it.
type Selector struct {
	Expression string
	// Err says why the expression does not compile.
	Err error
	// Conjuncts are the operands of the outermost &&, or the whole expression.
	// There are none if it cannot be taken apart.
	Conjuncts []Part
	// Reads are the values that the expression can see; Opaque is true if it
	// can see more than that.
	Reads  []Reading
	Opaque bool

	compiled dracel.CompilationResult
	// unbounded is true if it may compute with quantities of any size.
	unbounded bool
	// tracked is the same program, which also reports the values of its parts; it has no
	// program if the expression cannot be taken apart.
	tracked dracel.CompilationResult
	// root is the parsed expression, nil if it cannot be taken apart; info is needed to
	// write parts of it.
	root ast.Expr
	info *ast.SourceInfo
	// needs are the values without which it fails, if it gets to them.
	needs []Reading
	// byValues has the results by the values that were read, byDevice by the number of the
	// device.
	byValues map[string]*Result
	byDevice []*Result
	// composed is true if another evaluation is needed to tell why it became true; watched
	// counts these.
	composed bool
	watched  int
	// cost is the estimate of the worst case once it was asked for.
	cost *uint64
}

// Part is a part of an expression that must hold, or a part of such a part.
type Part struct {
	Expression string
	// Wanted is the requirement in a few words: "80Gi or more". It is the expression where
	// that says it best.
	Wanted string
	Reads  []Reading
	// Operands are its own parts, if a logical operator makes it.
	Operands []Part

	needs []Reading
	expr  ast.Expr
}

// maxParts bounds the number of parts below the conjuncts.
const maxParts = 40

// checkFrequency is how often, in loop iterations, an evaluation checks whether it has to
// stop: the frequency in the API server's configuration for CEL.
const checkFrequency = 100

// takeApart finds the parts of the expression.
func (sel *Selector) takeApart() error {
	// Macros have to be remembered as they were written, or else their parts cannot be
	// written.
	env, err := sel.compiled.Environment.Extend(cel.EnableMacroCallTracking())
	if err != nil {
		return fmt.Errorf("extend the CEL environment: %w", err)
	}
	parsed, issues := env.Compile(sel.Expression)
	if err := issues.Err(); err != nil {
		return fmt.Errorf("compile again: %w", err)
	}
	program, err := env.Program(parsed, cel.EvalOptions(cel.OptTrackState),
		cel.CostLimit(resourceapi.CELSelectorExpressionMaxCost), cel.InterruptCheckFrequency(checkFrequency))
	if err != nil {
		return fmt.Errorf("set up the program: %w", err)
	}
	sel.root, sel.info = withoutBinds(parsed.NativeRep())
	sel.Reads, sel.Opaque = readings(sel.root)
	sel.needs = needs(sel.root)
	room := maxParts
	for _, operand := range operandsOf(sel.root, operators.LogicalAnd) {
		part, err := sel.part(operand, &room)
		if err != nil {
			return err
		}
		sel.composed = sel.composed || len(part.Operands) > 0 || isLoop(operand)
		sel.Conjuncts = append(sel.Conjuncts, part)
	}
	sel.tracked = sel.compiled
	sel.tracked.Program = program
	return nil
}

func (sel *Selector) part(e ast.Expr, room *int) (Part, error) {
	text, err := unparse(e, sel.info)
	if err != nil {
		return Part{}, err
	}
	reads, _ := readings(e)
	p := Part{Expression: text, Wanted: wantedText(e, text), Reads: reads, needs: needs(e), expr: e}
	operands := logicalOperands(e)
	if len(operands) > *room {
		return p, nil
	}
	*room -= len(operands)
	for _, operand := range operands {
		below, err := sel.part(operand, room)
		if err != nil {
			return Part{}, err
		}
		p.Operands = append(p.Operands, below)
	}
	return p, nil
}

// unparse writes a part of an expression in one line.
func unparse(e ast.Expr, info *ast.SourceInfo) (string, error) {
	text, err := parser.Unparse(e, info, parser.WrapOnOperators())
	if err != nil {
		return "", fmt.Errorf("write down a CEL expression: %w", err)
	}
	return text, nil
}

// String describes the requirement of a part: "memory 80Gi or more".
func (p *Part) String() string {
	if p.Wanted == p.Expression || len(p.Reads) != 1 {
		return p.Expression
	}
	return p.Reads[0].Short() + " " + p.Wanted
}

// Without returns the expression without some of its conjuncts; "true" if none is left.
func (sel *Selector) Without(dropped []int) string {
	var rest []string
	for i := range sel.Conjuncts {
		if !slices.Contains(dropped, i) {
			rest = append(rest, sel.Conjuncts[i].Expression)
		}
	}
	switch len(rest) {
	case 0:
		return "true"
	case 1:
		return rest[0]
	default:
		return "(" + strings.Join(rest, ") && (") + ")"
	}
}

// Drivers returns the drivers of device.driver == "x" below && and ||, of which a device
// must be. None are known if one side of || does not say.
func (sel *Selector) Drivers() []string {
	if sel.root == nil {
		return nil
	}
	return comparedDrivers(sel.root)
}

func comparedDrivers(e ast.Expr) []string {
	if r, name, ok := equality(e); ok && r.Kind == KindDriver {
		return []string{name}
	}
	if e.Kind() != ast.CallKind {
		return nil
	}
	var drivers []string
	switch operator := e.AsCall().FunctionName(); operator {
	case operators.LogicalAnd, operators.LogicalOr:
		for _, arg := range e.AsCall().Args() {
			found := comparedDrivers(arg)
			if len(found) == 0 && operator == operators.LogicalOr {
				return nil
			}
			drivers = append(drivers, found...)
		}
	}
	return drivers
}

// Reading returns the name and the device's value of a comparison, for people; false for
// other parts, and if the device has no value.
func (p *Part) Reading(driver string, device *resourceapi.Device) (name, value string, ok bool) {
	compared, ok := comparisonOf(p.expr)
	if !ok {
		return "", "", false
	}
	value, ok = compared.read.Value(driver, device)
	return compared.read.Short(), value, ok
}

// Equality recognizes the comparison of the driver or an attribute with a text.
func (p *Part) Equality() (r Reading, text string, ok bool) { return equality(p.expr) }

func equality(e ast.Expr) (r Reading, text string, ok bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Equals {
		return Reading{}, "", false
	}
	left, right := e.AsCall().Args()[0], e.AsCall().Args()[1]
	if _, isText := literalText(left); isText {
		left, right = right, left
	}
	text, isText := literalText(right)
	r, isReading := readingOf(left)
	return r, text, isText && isReading && !isTest(left) && (r.Kind == KindDriver || r.Kind == KindAttributes && r.Name != "")
}

// isLoop reports whether e is a call of all(), exists() and the like.
func isLoop(e ast.Expr) bool { return e.Kind() == ast.ComprehensionKind }

// Result is the result of a selector for a device. Devices that are the same to the
// selector share one.
type Result struct {
	Matches bool
	// Err is why the evaluation failed, which for the allocator ends the attempt on all
	// nodes. Nothing matches then. It is an [UnendingError] if it does not end.
	Err error

	sel    *Selector
	driver string
	// device is the first evaluated device, in the form that selectors see.
	device *resourceapi.Device
	detail *Detail
}

func celDevice(driver string, device *resourceapi.Device) dracel.Device {
	return dracel.Device{
		Driver:                   driver,
		AllowMultipleAllocations: device.AllowMultipleAllocations,
		Attributes:               device.Attributes,
		Capacity:                 device.Capacity,
	}
}

// Detail explains a result.
type Detail struct {
	// Failed is the first conjunct that does not hold, nil if all hold or that is not
	// known.
	Failed *Part
	// Found has the values that the decisive part reads.
	Found []string
	// Missing are the readings of the failing parts that the device lacks.
	Missing []Reading
	// Seen has the outcome of each conjunct; nil if that is not known.
	Seen []Trace
}

// Outcome is the outcome of the evaluation of a part.
type Outcome string

// Outcomes of a part.
const (
	// NotEvaluated means that a part did not matter any more.
	NotEvaluated Outcome = "NotEvaluated"
	True         Outcome = "True"
	False        Outcome = "False"
	Fails        Outcome = "Fails"
)

// Trace is the outcome of a conjunct, or a part of one, for one device.
type Trace struct {
	Outcome Outcome
	// Values are the values that the part read.
	Values   []string
	Operands []Trace
}
