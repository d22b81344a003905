// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Where a selector is written.
const (
	SourceClass   = "class"
	SourceRequest = "request"
)

// MaxValues is how many different values a part of a selector shows.
const MaxValues = 10

// PlacedSelector is a selector and where it is written.
type PlacedSelector struct {
	Source     string
	object     api.ObjectRef
	path       string
	Expression string
	// Label names the selector of a request among the others.
	Label string
}

// PlacedSelectors lists the selectors of a request in the order in which the
// allocator evaluates them.
func PlacedSelectors(c *Checks) []PlacedSelector {
	var placed []PlacedSelector
	add := func(source string, object api.ObjectRef, path string, selectors []resourceapi.DeviceSelector) {
		for i, s := range selectors {
			if s.CEL != nil {
				placed = append(placed, PlacedSelector{
					source, object, fmt.Sprintf("%s[%d].cel.expression", path, i), s.CEL.Expression, SelectorLabel(i, len(selectors)),
				})
			}
		}
	}
	if c.Class != nil {
		add(SourceClass, api.Ref("DeviceClass", "", c.Class.Name), "spec.selectors", c.Class.Spec.Selectors)
	}
	object, path := cluster.ClaimSpecPath(c.Request.Claim, c.Request.Path+".selectors")
	add(SourceRequest, object, path, c.Request.Selectors)
	return placed
}

// Traces tells what the selectors do to all devices.
func (f *Funnel) Traces(ctx context.Context) []api.SelectorTrace {
	reached := make([]*cluster.Device, len(f.Devices))
	for i := range f.Devices {
		reached[i] = &f.Devices[i]
	}
	var traces []api.SelectorTrace
	for _, placed := range PlacedSelectors(f.Checks) {
		var trace api.SelectorTrace
		trace, reached = Trace(ctx, f.Checks.Selectors, f.Checks.Catalog, placed.Expression, reached, len(f.Devices)-len(reached))
		trace.Source, trace.Object, trace.Path = placed.Source, placed.object, placed.path
		traces = append(traces, trace)
	}
	return traces
}

// Trace tells what one expression does to devices, and for which of them it is true.
// Where it is written is left open. Something before it has decided about as many
// other devices as are not reached.
func Trace(ctx context.Context, s *selector.Evaluator, catalog *Catalog, expression string, devices []*cluster.Device, notReached int) (trace api.SelectorTrace, passed []*cluster.Device) {
	sel := s.Compile(expression)
	trace = api.SelectorTrace{Expression: expression, Cost: s.Cost(sel), CostLimit: resourceapi.CELSelectorExpressionMaxCost}
	r := newTraceReport(sel)
	for _, d := range devices {
		result := s.Evaluate(ctx, sel, d.ID.Driver, d.Device)
		r.add(result)
		if result.Matches {
			passed = append(passed, d)
		}
	}
	r.report(ctx, &trace, notReached)
	if problem := s.Problem(sel); problem != nil {
		trace.Error = ProblemText(problem)
	}
	trace.Notes = selectorNotes(catalog, sel, &trace)
	return trace, passed
}

// traceReport counts what one selector does to devices.
type traceReport struct {
	sel *selector.Selector
	// results are the results of the devices, shared by equal devices, in their order;
	// counts has the devices of each.
	results []*selector.Result
	counts  map[*selector.Result]int
}

func newTraceReport(sel *selector.Selector) *traceReport {
	return &traceReport{sel: sel, counts: map[*selector.Result]int{}}
}

func (r *traceReport) add(result *selector.Result) {
	if r.counts[result] == 0 {
		r.results = append(r.results, result)
	}
	r.counts[result]++
}

func (r *traceReport) report(ctx context.Context, trace *api.SelectorTrace, before int) {
	parts := make([]partReport, len(r.sel.Conjuncts))
	for i := range parts {
		parts[i].describe(&r.sel.Conjuncts[i], before)
	}
	errors := english.Tally{}
	trace.Outcomes.NotEvaluated = before
	known := true
	for _, result := range r.results {
		count := r.counts[result]
		addOutcome(&trace.Outcomes, result.Outcome(), count)
		if result.Err != nil {
			errors[english.OneLine(result.Err)] += count
		}
		seen := result.Detail(ctx).Seen
		if seen == nil && result.Err == nil {
			known = false
		}
		for i := range parts {
			if seen == nil {
				parts[i].add(selector.Unreached(&r.sel.Conjuncts[i]), count)
			} else {
				parts[i].add(seen[i], count)
			}
		}
	}
	if len(errors) > 0 {
		trace.Error = errors.Sorted()[0]
	}
	for i := range parts {
		if known {
			trace.Parts = append(trace.Parts, parts[i].part())
		}
	}
}

func addOutcome(o *api.SelectorOutcomes, what selector.Outcome, count int) {
	switch what {
	case selector.True:
		o.True += count
	case selector.False:
		o.False += count
	case selector.Fails:
		o.Fails += count
	case selector.NotEvaluated:
		o.NotEvaluated += count
	}
}

// partReport counts what became of one part.
type partReport struct {
	out      api.SelectorPart
	values   map[api.SelectorValue]int
	operands []partReport
	// mixed is true if the operands do not tell for all devices.
	mixed bool
}

func (p *partReport) describe(from *selector.Part, before int) {
	p.out.Expression, p.out.Outcomes.NotEvaluated = from.Expression, before
	if from.Wanted != from.Expression {
		p.out.Requirement = from.Wanted
	}
	p.values = map[api.SelectorValue]int{}
	p.operands = make([]partReport, len(from.Operands))
	for i := range p.operands {
		p.operands[i].describe(&from.Operands[i], before)
	}
}

func (p *partReport) add(s selector.Trace, count int) {
	addOutcome(&p.out.Outcomes, s.Outcome, count)
	if found := s.Found(); len(found) > 0 && s.Outcome != selector.NotEvaluated {
		p.values[api.SelectorValue{Found: english.JoinAnd(found), Outcome: string(s.Outcome)}] += count
	}
	if len(s.Operands) != len(p.operands) {
		p.mixed = true
		return
	}
	for i := range p.operands {
		p.operands[i].add(s.Operands[i], count)
	}
}

func (p *partReport) part() api.SelectorPart {
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
	slices.SortFunc(p.out.Values, func(a, b api.SelectorValue) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), english.CompareNames(a.Found, b.Found), cmp.Compare(a.Outcome, b.Outcome))
	})
	if len(p.out.Values) > MaxValues {
		p.out.MoreValues = len(p.out.Values) - MaxValues
		p.out.Values = slices.Clone(p.out.Values[:MaxValues])
	}
	return p.out
}

// selectorNotes returns remarks about a selector.
func selectorNotes(catalog *Catalog, sel *selector.Selector, trace *api.SelectorTrace) []string {
	var notes []string
	if trace.Cost > trace.CostLimit {
		notes = append(notes, english.Sentence(CostWarning(trace)))
	}
	for i := range trace.Parts {
		if trace.Parts[i].Outcomes.True > 0 {
			continue
		}
		if note := catalog.UnknownValue(&sel.Conjuncts[i]).Text; note != "" {
			notes = append(notes, english.Sentence(note))
		}
	}
	return notes
}

// ProblemText says where an expression is wrong, and why.
func ProblemText(problem *selector.CompileError) string {
	text := problem.Reason
	if problem.Line > 0 {
		text += fmt.Sprintf(" at %d:%d", problem.Line, problem.Column)
	}
	if problem.Near != "" {
		text += " (" + problem.Near + ")"
	}
	if problem.More > 0 {
		text += ", and " + english.Count(problem.More, "more error")
	}
	return text
}

// CostWarning says what becomes of a selector that may cost more than the limit.
func CostWarning(trace *api.SelectorTrace) string {
	return fmt.Sprintf("in the worst case it costs %s, the limit is %s, so that the API server refuses it in new objects; where it is stored already, it fails on a device for which it costs more than that",
		CostText(trace.Cost), english.Thousands(trace.CostLimit))
}

// CompileProblem finds the first selector that does not compile, in the order in
// which the allocator comes to them, and names it for people; nil if all do.
// Stored is true if it is in the cluster and not only in a file.
func CompileProblem(q *Question) (named string, problem *selector.CompileError, stored bool) {
	for i := range q.Claims {
		for _, alternatives := range q.Claims[i].Funnels {
			for _, f := range alternatives {
				for _, placed := range PlacedSelectors(f.Checks) {
					sel := q.Selectors.Compile(placed.Expression)
					if sel.Err == nil {
						continue
					}
					problem = q.Selectors.Problem(sel)
					if placed.Source == SourceClass {
						return "the selector of class " + f.Request.Class, problem, f.Checks.Class.UID != ""
					}
					return fmt.Sprintf("%s of request %s", SelectorNoun(placed.Label), f.Request.Name), problem, isStored(q, &q.Claims[i])
				}
			}
		}
	}
	return "", nil, false
}

// isStored reports whether a claim, or the template that it is made from, is in
// the cluster and not only in a file.
func isStored(q *Question, c *Claim) bool {
	pc := &q.PodClaims[c.Index]
	if !pc.Generated {
		return c.Claim.UID != ""
	}
	template := q.Cluster.Snapshot.Template(c.Claim.Namespace, pc.Template)
	return template != nil && template.UID != ""
}
