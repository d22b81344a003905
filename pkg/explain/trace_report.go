// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
)

// trace adds to each request what its selectors do.
func (x *inquiry) trace(ctx context.Context) {
	for i := range x.claims {
		explained := &x.out.Claims[x.claims[i].index]
		at := 0
		for _, alternatives := range x.claims[i].funnels {
			for _, f := range alternatives {
				explained.Requests[at].Selectors = f.traces(ctx)
				x.warnOfCost(&x.claims[i], f.request, explained.Requests[at].Selectors)
				at++
			}
		}
	}
}

// warnOfCost tells whoever wants to create a claim that the API server will not
// take it.
func (x *inquiry) warnOfCost(c *claimInquiry, r *request, traces []SelectorTrace) {
	if c.claim.UID != "" && !x.subject.claims[c.index].Generated {
		return
	}
	for i := range traces {
		trace := &traces[i]
		if trace.Source != sourceRequest || trace.Cost <= trace.CostLimit {
			continue
		}
		x.out.NextSteps = append(x.out.NextSteps, NextStep{Actor: ActorUser, Text: fmt.Sprintf(
			"make the selector of request %s at %s cheaper: %s", r.name, trace.Path, costWarning(trace))})
	}
}

func costWarning(trace *SelectorTrace) string {
	return fmt.Sprintf("in the worst case it costs %s, the limit is %s, so that the API server refuses it in new objects; where it is stored already, it fails on a device for which it costs more than that",
		costText(trace.Cost), thousands(trace.CostLimit))
}

// Where a selector is written.
const (
	sourceClass   = "class"
	sourceRequest = "request"
)

// maxValues is how many different values a part of a selector shows.
const maxValues = 10

// placedSelector is a selector and where it is written.
type placedSelector struct {
	source, object, path string
	expression           string
}

// placedSelectors lists the selectors of a request in the order in which the
// allocator evaluates them.
func (c *checks) placedSelectors() []placedSelector {
	var placed []placedSelector
	add := func(source, object, path string, selectors []resourceapi.DeviceSelector) {
		for i, s := range selectors {
			if s.CEL != nil {
				placed = append(placed, placedSelector{source, object, fmt.Sprintf("%s[%d].cel.expression", path, i), s.CEL.Expression})
			}
		}
	}
	if c.class != nil {
		add(sourceClass, object("DeviceClass", "", c.class.Name), "spec.selectors", c.class.Spec.Selectors)
	}
	add(sourceRequest, claimObject(c.request.claim), c.request.path+".selectors", c.request.selectors)
	return placed
}

// traces tells what the selectors do to all devices.
func (f *funnel) traces(ctx context.Context) []SelectorTrace {
	reached := make([]*allocator.Device, len(f.devices))
	for i := range f.devices {
		reached[i] = &f.devices[i]
	}
	var traces []SelectorTrace
	for _, placed := range f.checks.placedSelectors() {
		s := f.checks.selectors
		sel := s.compile(placed.expression)
		trace := SelectorTrace{
			Source: placed.source, Object: placed.object, Path: placed.path, Expression: placed.expression,
			Cost: s.cost(sel), CostLimit: resourceapi.CELSelectorExpressionMaxCost,
		}
		r := newTraceReport(sel)
		var passed []*allocator.Device
		for _, d := range reached {
			result := s.evaluate(ctx, sel, d.ID.Driver, d.Device)
			if r.counts[result] == 0 && result.matches {
				r.explain(ctx, s, sel, result, d)
			}
			r.counts[result]++
			if result.matches {
				passed = append(passed, d)
			}
		}
		r.report(&trace, len(f.devices)-len(reached))
		trace.Notes = f.checks.selectorNotes(sel, &trace)
		reached = passed
		traces = append(traces, trace)
	}
	return traces
}

// cost estimates the worst case, 0 if that is not possible.
func (s *selectors) cost(sel *selector) uint64 {
	if sel.cost == nil {
		cost := uint64(0)
		if sel.compiled.Error == nil {
			if compiled := dracel.GetCompiler(s.features).CompileCELExpression(sel.expression, dracel.Options{}); compiled.Error == nil {
				cost = compiled.MaxCost
			}
		}
		sel.cost = &cost
	}
	return *sel.cost
}

func costText(cost uint64) string {
	if cost == math.MaxUint64 {
		return "more than can be told"
	}
	return thousands(cost)
}

// traceReport counts what one selector does to devices.
type traceReport struct {
	sel *selector
	// counts has the devices by their results, which equal devices share.
	counts map[*selection]int
	// watched counts the evaluations that were made only to tell how an expression
	// became true.
	watched int
}

// maxWatched bounds them. If there are more, it is not told which operands of a
// conjunct made it true.
const maxWatched = 2000

func newTraceReport(sel *selector) *traceReport {
	return &traceReport{sel: sel, counts: map[*selection]int{}}
}

// explain finds out how an expression became true, which nobody has asked yet.
func (r *traceReport) explain(ctx context.Context, s *selectors, sel *selector, result *selection, d *allocator.Device) {
	if result.seen != nil {
		return
	}
	for i := range sel.conjuncts {
		if (len(sel.conjuncts[i].operands) > 0 || isLoop(sel.conjuncts[i].expr)) && r.watched < maxWatched {
			r.watched++
			s.watch(ctx, sel, result, d.ID.Driver, s.shown(d.Device))
			return
		}
	}
	// Each conjunct holds, or else the whole would not.
	shown := s.shown(d.Device)
	for i := range sel.conjuncts {
		result.seen = append(result.seen, sighting{outcome: isTrue, values: foundValues(sel.conjuncts[i].reads, d.ID.Driver, shown)})
	}
}

func (r *traceReport) report(trace *SelectorTrace, before int) {
	parts := make([]partReport, len(r.sel.conjuncts))
	for i := range parts {
		parts[i].describe(&r.sel.conjuncts[i], before)
	}
	errors := tally{}
	trace.Outcomes.NotReached = before
	known := true
	for result, count := range r.counts {
		trace.Outcomes.add(result.outcome(), count)
		if result.err != nil {
			errors[oneLine(result.err)] += count
		}
		if result.seen == nil && result.err == nil {
			known = false
		}
		for i := range parts {
			if result.seen == nil {
				parts[i].add(sighting{}.below(&r.sel.conjuncts[i]), count)
			} else {
				parts[i].add(result.seen[i], count)
			}
		}
	}
	if len(errors) > 0 {
		trace.Error = errors.sorted()[0]
	}
	for i := range parts {
		if known {
			trace.Parts = append(trace.Parts, parts[i].part())
		}
	}
}

func (o *SelectorOutcomes) add(what outcome, count int) {
	switch what {
	case isTrue:
		o.True += count
	case isFalse:
		o.False += count
	case fails:
		o.Fails += count
	case notReached:
		o.NotReached += count
	}
}

// partReport counts what became of one part.
type partReport struct {
	out      SelectorPart
	values   map[SelectorValue]int
	operands []partReport
	// mixed is true if the operands do not tell for all devices.
	mixed bool
}

func (p *partReport) describe(c *conjunct, before int) {
	p.out.Expression, p.out.Outcomes.NotReached = c.expression, before
	if c.wanted != c.expression {
		p.out.Wanted = c.wanted
	}
	p.values = map[SelectorValue]int{}
	p.operands = make([]partReport, len(c.operands))
	for i := range p.operands {
		p.operands[i].describe(&c.operands[i], before)
	}
}

func (p *partReport) add(s sighting, count int) {
	p.out.Outcomes.add(s.outcome, count)
	if found := s.found(); len(found) > 0 && s.outcome != notReached {
		p.values[SelectorValue{Found: joinAnd(found), Outcome: s.outcome.String()}] += count
	}
	if len(s.operands) != len(p.operands) {
		p.mixed = true
		return
	}
	for i := range p.operands {
		p.operands[i].add(s.operands[i], count)
	}
}

func (p *partReport) part() SelectorPart {
	for i := range p.operands {
		if !p.mixed {
			p.out.Operands = append(p.out.Operands, p.operands[i].part())
		}
	}
	if len(p.out.Operands) > 0 {
		// They have the values.
		return p.out
	}
	for value, count := range p.values {
		value.Count = count
		p.out.Values = append(p.out.Values, value)
	}
	slices.SortFunc(p.out.Values, func(a, b SelectorValue) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), naturalCompare(a.Found, b.Found), cmp.Compare(a.Outcome, b.Outcome))
	})
	if len(p.out.Values) > maxValues {
		p.out.MoreValues = len(p.out.Values) - maxValues
		p.out.Values = slices.Clone(p.out.Values[:maxValues])
	}
	return p.out
}

// selectorNotes says what is remarkable about a selector.
func (c *checks) selectorNotes(sel *selector, trace *SelectorTrace) []string {
	var notes []string
	if trace.Cost > trace.CostLimit {
		notes = append(notes, sentence(costWarning(trace)))
	}
	for i := range trace.Parts {
		if trace.Parts[i].Outcomes.True > 0 {
			continue
		}
		if note := c.unheardOf(&sel.conjuncts[i]); note != "" {
			notes = append(notes, sentence(note))
		}
	}
	return notes
}
