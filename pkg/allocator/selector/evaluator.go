// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/blang/semver/v4"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// Evaluator evaluates CEL selectors with the compiler that the allocator uses.
// Devices that agree in everything an expression can read are evaluated once.
// Devices must not change while it is in use. Not safe for concurrent use.
type Evaluator struct {
	cache    *dracel.Cache
	features dracel.Features
	sharing  bool
	byExpr   map[string]*Selector
	// numbers has the numbers of the devices seen so far; last is the last lookup, which is
	// mostly repeated several times.
	numbers    map[*resourceapi.Device]int
	last       *resourceapi.Device
	lastNumber int
	// odd remembers by number which devices have an attribute that CEL refuses, and
	// versions which texts are versions.
	odd      []oddity
	versions map[string]bool
	// key is the last key.
	key []byte
}

// maxCompiled limits how many compiled expressions are kept: more than any one explanation
// has.
const maxCompiled = 1000

// New returns an evaluator with these features of expressions. Sharing is false if
// selectors are not told that a device can be shared, as in the stable implementation of
// the allocator.
func New(features dracel.Features, sharing bool) *Evaluator {
	return &Evaluator{
		cache:    dracel.NewCache(maxCompiled, features),
		features: features,
		sharing:  sharing,
		byExpr:   make(map[string]*Selector),
		numbers:  make(map[*resourceapi.Device]int),
		versions: make(map[string]bool),
	}
}

// Like reports whether expressions mean the same to another evaluator.
func (v *Evaluator) Like(other *Evaluator) bool {
	return v.features == other.features && v.sharing == other.sharing
}

// Compile compiles an expression, once. The result has the error, if any.
func (v *Evaluator) Compile(expression string) *Selector {
	if known, ok := v.byExpr[expression]; ok {
		return known
	}
	sel := &Selector{
		Expression: expression,
		compiled:   boundedProgram(v.cache.GetOrCompile(expression)),
		unbounded:  !Bounded(expression),
		byValues:   make(map[string]*Result),
	}
	v.byExpr[expression] = sel
	if sel.compiled.Error != nil {
		sel.Err = sel.compiled.Error
		return sel
	}
	if err := sel.takeApart(); err != nil {
		// Then it cannot be told which part is false.
		sel.root, sel.Conjuncts, sel.Opaque = nil, nil, true
	}
	return sel
}

// Forget drops the results of an expression, which take memory for each device. Results
// that were handed out stay valid.
func (v *Evaluator) Forget(expression string) { delete(v.byExpr, expression) }

// Cost estimates the worst case in the units of CEL, 0 if that is not possible.
func (v *Evaluator) Cost(sel *Selector) uint64 {
	if sel.cost == nil {
		cost := uint64(0)
		if sel.Err == nil {
			if compiled := dracel.GetCompiler(v.features).CompileCELExpression(sel.Expression, dracel.Options{}); compiled.Error == nil {
				cost = compiled.MaxCost
			}
		}
		sel.cost = &cost
	}
	return *sel.cost
}

// Evaluate runs an expression against a device of the given driver.
func (v *Evaluator) Evaluate(ctx context.Context, sel *Selector, driver string, device *resourceapi.Device) *Result {
	number := v.number(device)
	if number < len(sel.byDevice) && sel.byDevice[number] != nil {
		return sel.byDevice[number]
	}
	var result *Result
	switch shown := v.shown(device); {
	case sel.Opaque || sel.Err != nil || v.Odd(device):
		result = sel.run(ctx, driver, shown)
	default:
		v.key = appendValues(v.key[:0], sel.Reads, driver, shown)
		known := false
		if result, known = sel.byValues[string(v.key)]; !known {
			result = sel.run(ctx, driver, shown)
			sel.byValues[string(v.key)] = result
		}
	}
	sel.byDevice = extended(sel.byDevice, number)
	sel.byDevice[number] = result
	return result
}

// number returns the number of a device, by which results for it are remembered.
func (v *Evaluator) number(device *resourceapi.Device) int {
	if device == v.last {
		return v.lastNumber
	}
	number, known := v.numbers[device]
	if !known {
		number = len(v.numbers)
		v.numbers[device] = number
	}
	v.last, v.lastNumber = device, number
	return number
}

// extended returns a list that has an index.
func extended[T any](list []T, index int) []T {
	if missing := index + 1 - len(list); missing > 0 {
		return append(list, make([]T, missing)...)
	}
	return list
}

// run evaluates an expression on a device in the form that selectors see.
func (sel *Selector) run(ctx context.Context, driver string, device *resourceapi.Device) *Result {
	result := &Result{Err: sel.Err, sel: sel, driver: driver, device: device}
	if sel.Err != nil {
		return result
	}
	evaluate := func(ctx context.Context) (bool, error) {
		matches, _, err := sel.compiled.DeviceMatches(ctx, celDevice(driver, device))
		return matches && err == nil, err
	}
	if !sel.unbounded {
		result.Matches, result.Err = evaluate(ctx)
		return result
	}
	matches, err := within(ctx, evaluationLimit, evaluate)
	result.Matches, result.Err = matches, unending(sel.Expression, err)
	return result
}

// shown returns the device in the form that selectors see.
func (v *Evaluator) shown(device *resourceapi.Device) *resourceapi.Device {
	if v.sharing || device.AllowMultipleAllocations == nil {
		return device
	}
	shown := *device
	shown.AllowMultipleAllocations = nil
	return &shown
}

// Odd reports whether a device has an attribute that makes every expression fail, read or
// not: all are converted beforehand (getAttributeValue of upstream's cel/compile.go, which
// uses the first value in this order).
func (v *Evaluator) Odd(device *resourceapi.Device) bool {
	number := v.number(device)
	if v.odd = extended(v.odd, number); v.odd[number] != unknownOddity {
		return v.odd[number] == isOdd
	}
	odd := false
	for _, attribute := range device.Attributes {
		switch {
		case attribute.IntValues != nil, attribute.BoolValues != nil, attribute.StringValues != nil:
		case attribute.VersionValues != nil:
			odd = odd || slices.ContainsFunc(attribute.VersionValues, func(text string) bool { return !v.isVersion(text) })
		case attribute.IntValue != nil, attribute.BoolValue != nil, attribute.StringValue != nil:
		default:
			odd = odd || attribute.VersionValue == nil || !v.isVersion(*attribute.VersionValue)
		}
	}
	v.odd[number] = notOdd
	if odd {
		v.odd[number] = isOdd
	}
	return odd
}

// SameForAll reports whether an expression has the same result for all of these devices of
// one driver, because it reads nothing else. Most classes have such an expression.
func (v *Evaluator) SameForAll(sel *Selector, devices []resourceapi.Device) bool {
	if sel.Opaque || sel.Err != nil || slices.ContainsFunc(sel.Reads, func(r Reading) bool { return r.Kind != KindDriver }) {
		return false
	}
	for i := range devices {
		if v.Odd(&devices[i]) {
			return false
		}
	}
	return true
}

// oddity is the result of [Evaluator.Odd] for a device.
type oddity uint8

const (
	unknownOddity oddity = iota
	notOdd
	isOdd
)

// maxVersions limits how many versions are remembered. Most devices have the same.
const maxVersions = 1000

func (v *Evaluator) isVersion(text string) bool {
	known, ok := v.versions[text]
	if !ok {
		_, err := semver.Parse(text)
		known = err == nil
		if len(v.versions) < maxVersions {
			v.versions[text] = known
		}
	}
	return known
}

// maxWatched bounds the evaluations that only find out how an expression became true.
// Beyond it, the decisive operands of a conjunct are not known.
const maxWatched = 2000

// Detail explains a result. That may take another evaluation, which is made once.
func (r *Result) Detail(ctx context.Context) *Detail {
	switch {
	case r.detail != nil:
	case r.sel.Err != nil:
		r.detail = &Detail{}
	case r.Matches:
		r.detail = &Detail{Seen: r.fulfilled(ctx)}
	default:
		r.detail = r.failure(ctx)
	}
	return r.detail
}

// fulfilled explains why an expression is true.
func (r *Result) fulfilled(ctx context.Context) []Trace {
	if r.sel.composed && r.sel.watched < maxWatched {
		r.sel.watched++
		return r.watch(ctx)
	}
	// Each conjunct holds, or else the whole would not.
	var seen []Trace
	for i := range r.sel.Conjuncts {
		seen = append(seen, Trace{Outcome: True, Values: foundValues(r.sel.Conjuncts[i].Reads, r.driver, r.device)})
	}
	return seen
}

// failure explains why an expression is false, or has no result.
func (r *Result) failure(ctx context.Context) *Detail {
	d := &Detail{Seen: r.watch(ctx)}
	for i := range d.Seen {
		if d.Failed == nil && d.Seen[i].Outcome == r.Outcome() {
			d.Failed, d.Found = &r.sel.Conjuncts[i], d.Seen[i].Found()
		}
	}
	if d.Failed == nil {
		d.Found = foundValues(r.sel.Reads, r.driver, r.device)
	}
	if r.Err == nil {
		return d
	}
	needed := r.sel.needs
	if d.Failed != nil {
		needed = nil
		for i := range d.Seen {
			if d.Seen[i].Outcome == Fails {
				needed = append(needed, d.Seen[i].needs(&r.sel.Conjuncts[i])...)
			}
		}
	}
	for _, n := range needed {
		if _, ok := n.Value(r.driver, r.device); !ok && !slices.Contains(d.Missing, n) {
			d.Missing = append(d.Missing, n)
		}
	}
	return d
}

// DerivedAttribute computes the value of a derived attribute for a device of the
// given driver; nil if the expression gives none.
func (v *Evaluator) DerivedAttribute(ctx context.Context, derived *resourceapi.DeviceDerivedAttribute, driver string, device *resourceapi.Device) (*resourceapi.DeviceAttribute, error) {
	compiled := boundedProgram(v.cache.GetOrCompileDerivedAttribute(derived.Expression))
	if compiled.Error != nil {
		return nil, fmt.Errorf("compile derived attribute %s: %w", derived.Name, compiled.Error)
	}
	evaluate := func(ctx context.Context) (*resourceapi.DeviceAttribute, error) {
		value, _, err := compiled.EvaluateDerivedAttribute(ctx, celDevice(driver, device))
		return value, err
	}
	value, err := (*resourceapi.DeviceAttribute)(nil), error(nil)
	if Bounded(derived.Expression) {
		value, err = evaluate(ctx)
	} else {
		value, err = within(ctx, evaluationLimit, evaluate)
	}
	if err != nil {
		return nil, fmt.Errorf("evaluate derived attribute %s: %w", derived.Name, unending(derived.Expression, err))
	}
	return value, nil
}

// Evaluators lends evaluators for the devices of one cluster. An evaluator
// remembers its results for the next explanation. Safe for concurrent use.
type Evaluators struct {
	newOne func() *Evaluator
	mutex  sync.Mutex
	idle   []*Evaluator
}

const (
	// maxIdle limits how many unused evaluators are kept: a question can lead to another
	// one.
	maxIdle = 2
	// maxExpressions limits how many expressions a kept evaluator may remember: each takes
	// memory for each device.
	maxExpressions = 50
)

// NewEvaluators returns evaluators that a function makes.
func NewEvaluators(newOne func() *Evaluator) *Evaluators { return &Evaluators{newOne: newOne} }

// Lend lends an evaluator to a caller, who calls back afterwards.
func (e *Evaluators) Lend() (v *Evaluator, back func()) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if last := len(e.idle) - 1; last >= 0 {
		v, e.idle = e.idle[last], e.idle[:last]
		for _, sel := range v.byExpr {
			sel.watched = 0
		}
	} else {
		v = e.newOne()
	}
	return v, func() { e.keep(v) }
}

func (e *Evaluators) keep(v *Evaluator) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if len(e.idle) < maxIdle && len(v.byExpr) <= maxExpressions {
		e.idle = append(e.idle, v)
	}
}
