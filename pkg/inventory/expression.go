// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// maxNamed limits how many devices are named.
const maxNamed = 10

// DeviceEvaluator evaluates CEL expressions on some devices. It is not safe for
// concurrent use.
type DeviceEvaluator struct {
	list      []*cluster.Device
	class     *resourceapi.DeviceClass
	selectors *selector.Evaluator
	catalog   *eligibility.Catalog
}

// NewDeviceEvaluator takes devices of a cluster, of a class if it is not nil.
func NewDeviceEvaluator(facts *cluster.Cluster, list []*cluster.Device, class *resourceapi.DeviceClass) *DeviceEvaluator {
	selectors := facts.Gates.Selectors()
	return &DeviceEvaluator{list: list, class: class, selectors: selectors, catalog: eligibility.NewCatalog(facts, selectors)}
}

// Evaluate tells what an expression makes of the devices. It fails only if the
// context is done.
func (d *DeviceEvaluator) Evaluate(ctx context.Context, expression string) (*api.Evaluation, error) {
	out := &api.Evaluation{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Evaluation"},
		Expression: expression, Devices: len(d.list), CostLimit: resourceapi.CELSelectorExpressionMaxCost,
	}
	sel := d.selectors.Compile(expression)
	if sel.Err != nil {
		out.Problem = problemOf(d.selectors, sel)
		return out, d.suggest(ctx, out, sel)
	}
	results, err := d.results(ctx, sel)
	if err != nil {
		return nil, err
	}
	out.Outcomes = outcomesOf(results)
	trace, passed := eligibility.Trace(ctx, d.selectors, d.catalog, expression, d.list, 0)
	out.Cost, out.Parts, out.Notes = trace.Cost, trace.Parts, trace.Notes
	for _, device := range passed[:min(len(passed), maxNamed)] {
		out.Matching = append(out.Matching, device.ID.String())
	}
	out.Failures = d.failures(results)
	out.Drivers = d.byDriver(results)
	out.Nodes = d.byNode(results)
	return out, d.suggest(ctx, out, sel)
}

// Count returns what an expression makes of the devices, in numbers alone, and why it does
// not compile. What is remembered about it is forgotten: it is for expressions that are
// being typed. It fails only if the context is done.
func (d *DeviceEvaluator) Count(ctx context.Context, expression string) (api.EvaluationOutcomes, *api.ExpressionProblem, error) {
	defer d.selectors.Forget(expression)
	sel := d.selectors.Compile(expression)
	if sel.Err != nil {
		return api.EvaluationOutcomes{}, problemOf(d.selectors, sel), nil
	}
	results, err := d.results(ctx, sel)
	return outcomesOf(results), nil, err
}

// Len returns the number of devices.
func (d *DeviceEvaluator) Len() int { return len(d.list) }

// results evaluates an expression for each device; equal devices share a result.
func (d *DeviceEvaluator) results(ctx context.Context, sel *selector.Selector) ([]*selector.Result, error) {
	results := make([]*selector.Result, len(d.list))
	for i, device := range d.list {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("evaluate the expression: %w", err)
		}
		results[i] = d.selectors.Evaluate(ctx, sel, device.ID.Driver, device.Device)
	}
	return results, nil
}

func problemOf(selectors *selector.Evaluator, sel *selector.Selector) *api.ExpressionProblem {
	found := selectors.Problem(sel)
	if found == nil {
		return nil
	}
	return &api.ExpressionProblem{Reason: found.Reason, Line: found.Line, Column: found.Column, More: found.More}
}

func addOutcome(to *api.EvaluationOutcomes, result *selector.Result) {
	switch result.Outcome() {
	case selector.True:
		to.True++
	case selector.False:
		to.False++
	case selector.Fails, selector.NotEvaluated:
		to.Fails++
	}
}

func outcomesOf(results []*selector.Result) api.EvaluationOutcomes {
	var out api.EvaluationOutcomes
	for _, result := range results {
		addOutcome(&out, result)
	}
	return out
}

// failures returns the ways in which an expression fails, the most frequent first.
func (d *DeviceEvaluator) failures(results []*selector.Result) []api.SelectorFailure {
	var list []api.SelectorFailure
	at := map[string]int{}
	for i, result := range results {
		if result.Err == nil {
			continue
		}
		text := english.OneLine(result.Err)
		k, known := at[text]
		if !known {
			var unending *selector.UnendingError
			k = len(list)
			at[text] = k
			list = append(list, api.SelectorFailure{Error: text, Unending: errors.As(result.Err, &unending)})
		}
		list[k].Count++
		if len(list[k].Devices) < maxNamed {
			list[k].Devices = append(list[k].Devices, d.list[i].ID.String())
		}
	}
	slices.SortStableFunc(list, func(a, b api.SelectorFailure) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

func (d *DeviceEvaluator) byDriver(results []*selector.Result) []api.DriverOutcomes {
	var list []api.DriverOutcomes
	at := map[string]int{}
	for i, result := range results {
		driver := d.list[i].ID.Driver
		k, known := at[driver]
		if !known {
			k = len(list)
			at[driver] = k
			list = append(list, api.DriverOutcomes{Driver: driver})
		}
		addOutcome(&list[k].Outcomes, result)
	}
	slices.SortFunc(list, func(a, b api.DriverOutcomes) int { return english.CompareNames(a.Driver, b.Driver) })
	return list
}

// nodePlace is the place of devices: a node by name, or the nodes of a scope.
type nodePlace struct{ node, scope string }

// byNode puts nodes together whose devices have the same outcomes. Devices that are
// not for one node are counted by the scope in which they are published.
func (d *DeviceEvaluator) byNode(results []*selector.Result) []api.NodeOutcomes {
	var places []nodePlace
	counts := map[nodePlace]*api.EvaluationOutcomes{}
	for i, result := range results {
		var at nodePlace
		if at.node, at.scope = DeviceScope(d.list[i]); at.node != "" {
			at.scope = ""
		}
		if counts[at] == nil {
			counts[at] = &api.EvaluationOutcomes{}
			places = append(places, at)
		}
		addOutcome(counts[at], result)
	}
	var groups []api.NodeOutcomes
	equal := map[api.EvaluationOutcomes]int{}
	for _, at := range places {
		outcomes := *counts[at]
		if at.node == "" {
			groups = append(groups, api.NodeOutcomes{Scope: at.scope, Outcomes: outcomes})
			continue
		}
		k, known := equal[outcomes]
		if !known {
			k = len(groups)
			equal[outcomes] = k
			groups = append(groups, api.NodeOutcomes{Outcomes: outcomes})
		}
		groups[k].Count++
		groups[k].Names = append(groups[k].Names, at.node)
	}
	for i := range groups {
		slices.SortFunc(groups[i].Names, english.CompareNames)
	}
	slices.SortStableFunc(groups, func(a, b api.NodeOutcomes) int {
		return cmp.Or(cmp.Compare(b.Outcomes.True, a.Outcomes.True), cmp.Compare(b.Count, a.Count), cmp.Compare(b.Outcomes.Fails, a.Outcomes.Fails),
			english.CompareNames(firstOfNodes(a), firstOfNodes(b)))
	})
	return groups
}

func firstOfNodes(group api.NodeOutcomes) string {
	if len(group.Names) > 0 {
		return group.Names[0]
	}
	return group.Scope
}

// suggest adds a better expression: one without typos if it is true for no device, one with
// guards if it fails. Both are evaluated.
func (d *DeviceEvaluator) suggest(ctx context.Context, out *api.Evaluation, sel *selector.Selector) error {
	if out.Outcomes.True == 0 {
		if corrected, ok := d.selectors.Correct(sel, d.catalog.WordsOf(ctx, d.class)); ok {
			suggestion := api.ExpressionSuggestion{Reason: api.SuggestCorrection, Expression: corrected.Expression}
			for _, change := range corrected.Changes {
				suggestion.Changes = append(suggestion.Changes, api.ExpressionChange(change))
			}
			if err := d.try(ctx, out, suggestion); err != nil {
				return err
			}
			sel = d.selectors.Compile(corrected.Expression)
		} else if suggestion, ok := d.respelled(sel); ok {
			if err := d.try(ctx, out, suggestion); err != nil {
				return err
			}
			sel = d.selectors.Compile(suggestion.Expression)
		}
	}
	if sel.Err != nil {
		return nil
	}
	results, err := d.results(ctx, sel)
	if err != nil {
		return err
	}
	missing := missingOf(ctx, results)
	if len(missing) == 0 {
		return nil
	}
	guarded, ok := d.selectors.Guard(sel, missing)
	if !ok {
		return nil
	}
	return d.try(ctx, out, api.ExpressionSuggestion{Reason: api.SuggestGuard, Expression: guarded})
}

// respelled returns an expression with another value, if no device has the compared value
// but one has it in another spelling.
func (d *DeviceEvaluator) respelled(sel *selector.Selector) (api.ExpressionSuggestion, bool) {
	suggestion := api.ExpressionSuggestion{Reason: api.SuggestCorrection}
	devices := func(yield func(string, *resourceapi.Device) bool) {
		for _, device := range d.list {
			if !yield(device.ID.Driver, device.Device) {
				return
			}
		}
	}
	for i := 0; sel.Err == nil && i < len(sel.Conjuncts); i++ {
		r, value, ok := sel.Conjuncts[i].Equality()
		if !ok || d.catalog.Unusual(r, value) == "" {
			continue
		}
		meant := func(value string, others []string) string {
			at := slices.IndexFunc(others, func(other string) bool { return english.Typo(value, []string{other}) != "" })
			if at < 0 {
				return ""
			}
			return others[at]
		}
		for _, other := range d.selectors.Looser(sel, i, devices, meant) {
			suggestion.Expression = other.Expression
			suggestion.Changes = append(suggestion.Changes, api.ExpressionChange{From: value, To: other.Text})
			sel = d.selectors.Compile(other.Expression)
			break
		}
	}
	return suggestion, len(suggestion.Changes) > 0
}

// try evaluates a suggestion, and keeps it if it is better than the given expression: if a
// correction is true for some device, or an expression fails for fewer.
func (d *DeviceEvaluator) try(ctx context.Context, out *api.Evaluation, suggestion api.ExpressionSuggestion) error {
	results, err := d.results(ctx, d.selectors.Compile(suggestion.Expression))
	if err != nil {
		return err
	}
	suggestion.Outcomes = outcomesOf(results)
	before := out.Outcomes
	if n := len(out.Suggestions); n > 0 {
		before = out.Suggestions[n-1].Outcomes
	}
	if first := len(out.Suggestions) == 0; first && out.Problem != nil || suggestion.Outcomes.True > before.True || suggestion.Outcomes.Fails < before.Fails {
		out.Suggestions = append(out.Suggestions, suggestion)
	}
	return nil
}

// missingOf returns the values that devices lack on which an expression fails.
func missingOf(ctx context.Context, results []*selector.Result) []selector.Reading {
	var missing []selector.Reading
	seen := map[*selector.Result]bool{}
	for _, result := range results {
		if result.Err == nil || seen[result] {
			continue
		}
		seen[result] = true
		for _, r := range result.Detail(ctx).Missing {
			if !slices.Contains(missing, r) {
				missing = append(missing, r)
			}
		}
	}
	return missing
}

// Compare adds which devices another expression treats differently. It fails only
// if the context is done.
func (d *DeviceEvaluator) Compare(ctx context.Context, out *api.Evaluation, other string) error {
	compared := &api.ExpressionComparison{Expression: other}
	out.Comparison = compared
	first, second := d.selectors.Compile(out.Expression), d.selectors.Compile(other)
	if second.Err != nil {
		compared.Problem = problemOf(d.selectors, second)
		return nil
	}
	after, err := d.results(ctx, second)
	if err != nil {
		return err
	}
	compared.Outcomes = outcomesOf(after)
	if first.Err != nil {
		return nil
	}
	before, err := d.results(ctx, first)
	if err != nil {
		return err
	}
	at := map[[2]selector.Outcome]int{}
	for i, device := range d.list {
		key := [2]selector.Outcome{before[i].Outcome(), after[i].Outcome()}
		if key[0] == key[1] {
			continue
		}
		k, known := at[key]
		if !known {
			k = len(compared.Differences)
			at[key] = k
			compared.Differences = append(compared.Differences, api.OutcomeDifference{From: string(key[0]), To: string(key[1])})
		}
		difference := &compared.Differences[k]
		compared.Different++
		difference.Count++
		if len(difference.Devices) < maxNamed {
			difference.Devices = append(difference.Devices, device.ID.String())
		}
	}
	slices.SortStableFunc(compared.Differences, func(a, b api.OutcomeDifference) int { return cmp.Compare(b.Count, a.Count) })
	return nil
}
