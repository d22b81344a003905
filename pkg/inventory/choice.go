// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// maxAttributeValues limits how many values of an attribute are listed.
const maxAttributeValues = 100

// maxTriedValues limits how many values are tried until an expression about one works.
const maxTriedValues = 10

// DeviceChoice chooses devices by what they are.
type DeviceChoice struct {
	// Driver is the driver of the devices; empty for all.
	Driver string
	// Selectors must all be true.
	Selectors []resourceapi.DeviceSelector
}

// ChosenDevices returns the devices of a choice, in the order in which the allocator tries
// them, and how selectors fail on others. It fails only if the context is done.
func (v *Inventory) ChosenDevices(ctx context.Context, wanted DeviceChoice) ([]*cluster.Device, []api.SelectorFailure, error) {
	chosen, err := choose(ctx, v.cluster, v.cluster.Gates.Selectors(), wanted.Selectors)
	if err != nil {
		return nil, nil, err
	}
	devices := slices.DeleteFunc(chosen.devices, func(d *cluster.Device) bool { return wanted.Driver != "" && d.ID.Driver != wanted.Driver })
	return devices, chosen.failures, nil
}

// Attributes lists what devices publish, by qualified name, and notes about
// devices with which no expression works.
func (v *Inventory) Attributes(ctx context.Context, devices []*cluster.Device) ([]api.Attribute, []string, error) {
	p := newPublications(v.cluster.Gates.Selectors(), devices)
	var list []api.Attribute
	for _, kind := range []string{selector.KindAttributes, selector.KindCapacity} {
		for _, r := range p.all.Readings(kind) {
			if err := ctx.Err(); err != nil {
				return nil, nil, fmt.Errorf("list attributes: %w", err)
			}
			list = append(list, p.describe(ctx, r))
		}
	}
	slices.SortStableFunc(list, func(a, b api.Attribute) int { return english.CompareNames(a.Name, b.Name) })
	return list, p.notes(), nil
}

// publications are the published values of some devices.
type publications struct {
	evaluator *selector.Evaluator
	devices   []*cluster.Device
	// odd are the devices on which every expression fails; usable has the words of the
	// others, all the words of all of them.
	odd         []*cluster.Device
	all, usable *selector.Vocabulary
}

func newPublications(evaluator *selector.Evaluator, devices []*cluster.Device) *publications {
	p := &publications{evaluator: evaluator, devices: devices, all: selector.NewVocabulary(english.Typo)}
	for _, d := range devices {
		p.all.Add(d.ID.Driver, d.Device)
		if evaluator.Odd(d.Device) {
			p.odd = append(p.odd, d)
		}
	}
	p.usable = p.all
	if len(p.odd) == 0 {
		return p
	}
	p.usable = selector.NewVocabulary(english.Typo)
	for _, d := range devices {
		if !evaluator.Odd(d.Device) {
			p.usable.Add(d.ID.Driver, d.Device)
		}
	}
	return p
}

func (p *publications) describe(ctx context.Context, r selector.Reading) api.Attribute {
	out := api.Attribute{
		TypeMeta: typeMeta("Attribute"), Name: r.Domain + "/" + r.Name, Source: api.AttributeSource(r.Kind),
		Devices: p.all.Count(r), TotalDevices: len(p.devices), Drivers: p.all.DriversOf(r),
	}
	for _, of := range p.all.Types(r) {
		out.Types = append(out.Types, string(of))
	}
	for i, value := range byFrequency(p.all.Values(r)) {
		if i >= maxAttributeValues {
			out.MoreValues++
			out.DevicesWithMoreValues += value.Devices
			continue
		}
		text, _ := r.Value(value.Driver, value.Device)
		out.Values = append(out.Values, api.AttributeValue{Value: text, Type: string(value.Type), Devices: value.Devices})
	}
	out.Expression, out.Matches = p.example(ctx, r)
	return out
}

// byFrequency sorts values: the most frequent values first, and equally frequent values by
// their texts. The values that are listed are in the order in which people read names.
func byFrequency(values []*selector.PublishedValue) []*selector.PublishedValue {
	sortBy := func(values []*selector.PublishedValue, compare func(a, b string) int) {
		slices.SortFunc(values, func(a, b *selector.PublishedValue) int {
			if a.Devices != b.Devices {
				return cmp.Compare(b.Devices, a.Devices)
			}
			return cmp.Or(compare(a.Plain, b.Plain), cmp.Compare(a.Type, b.Type))
		})
	}
	// There may be as many as devices, and comparing as people do takes long.
	sortBy(values, cmp.Compare[string])
	sortBy(values[:min(len(values), maxAttributeValues)], english.CompareNames)
	return values
}

// example finds an expression about one of the most frequent values that is true
// for some devices and fails for none. It counts the devices for which it is true.
func (p *publications) example(ctx context.Context, r selector.Reading) (expression string, matches int) {
	values := byFrequency(p.usable.Values(r))
	for _, value := range values[:min(len(values), maxTriedValues)] {
		expression, ok := selector.Condition(r, selector.AtLeast, value.Driver, value.Device)
		if !ok {
			continue
		}
		sel := p.evaluator.Compile(expression)
		if p.evaluator.Cost(sel) > resourceapi.CELSelectorExpressionMaxCost {
			continue
		}
		matches, fails := p.outcomes(ctx, sel, r, values)
		if fails {
			guarded, ok := p.evaluator.Guard(sel, []selector.Reading{r})
			if !ok {
				continue
			}
			expression = guarded
			if matches, fails = p.outcomes(ctx, p.evaluator.Compile(guarded), r, values); fails {
				continue
			}
		}
		if matches > 0 {
			return expression, matches
		}
	}
	return "", 0
}

// outcomes evaluates an expression that reads nothing but one place: once for each
// value, and for a device that has none.
func (p *publications) outcomes(ctx context.Context, sel *selector.Selector, r selector.Reading, values []*selector.PublishedValue) (matches int, fails bool) {
	if without := p.without(r); without != nil && p.evaluator.Evaluate(ctx, sel, without.ID.Driver, without.Device).Err != nil {
		return 0, true
	}
	for _, value := range values {
		result := p.evaluator.Evaluate(ctx, sel, value.Driver, value.Device)
		if result.Err != nil {
			return 0, true
		}
		if result.Matches {
			matches += value.Devices
		}
	}
	return matches, false
}

// without returns a device that has nothing in a place, nil if all have something there.
func (p *publications) without(r selector.Reading) *cluster.Device {
	if p.usable.Count(r) == p.usable.Devices() {
		return nil
	}
	for _, d := range p.devices {
		if _, has := r.Value(d.ID.Driver, d.Device); !has && !p.evaluator.Odd(d.Device) {
			return d
		}
	}
	return nil
}

// notes tell of devices that make every selector fail.
func (p *publications) notes() []string {
	if len(p.odd) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("every selector fails on %s with an attribute that CEL refuses, such as %s: no expression works with claims that consider them",
		english.Count(len(p.odd), "device"), p.odd[0].ID)}
}

// maxFailing limits how many devices a failure names.
const maxFailing = 10

// Choose lists the devices that match all selectors, in the order in which the
// allocator tries them, and how selectors fail on others: these are not chosen.
// It fails only if the context is done.
func (v *Inventory) Choose(ctx context.Context, selectors []resourceapi.DeviceSelector) ([]cluster.DeviceID, []api.SelectorFailure, error) {
	chosen, err := choose(ctx, v.cluster, v.cluster.Gates.Selectors(), selectors)
	if err != nil {
		return nil, nil, err
	}
	ids := make([]cluster.DeviceID, 0, len(chosen.devices))
	for _, d := range chosen.devices {
		ids = append(ids, d.ID)
	}
	return ids, chosen.failures, nil
}

// choice has the results of selectors on the devices.
type choice struct {
	devices  []*cluster.Device
	failures []api.SelectorFailure
}

// selection returns which devices were chosen.
func (c *choice) selection() selection {
	chosen := make(selection, len(c.devices))
	for _, d := range c.devices {
		chosen[d.ID] = true
	}
	return chosen
}

// choose evaluates the selectors of each device up to the first decisive one, as the
// allocator does.
func choose(ctx context.Context, facts *cluster.Cluster, evaluator *selector.Evaluator, selectors []resourceapi.DeviceSelector) (choice, error) {
	var out choice
	failures := map[*selector.Result]int{}
	all := facts.Pools.Devices()
devices:
	for i := range all {
		if err := ctx.Err(); err != nil {
			return choice{}, fmt.Errorf("evaluate selectors: %w", err)
		}
		d := &all[i]
		for k, s := range selectors {
			if s.CEL == nil {
				continue
			}
			result := evaluator.Evaluate(ctx, evaluator.Compile(s.CEL.Expression), d.ID.Driver, d.Device)
			if result.Matches {
				continue
			}
			if result.Err != nil {
				at, known := failures[result]
				if !known {
					at = out.failure(k, result.Err)
					failures[result] = at
				}
				addFailing(&out.failures[at], d.ID)
			}
			continue devices
		}
		out.devices = append(out.devices, d)
	}
	return out, nil
}

// failure returns the index of the failure with that text, which may be a new one.
func (c *choice) failure(k int, err error) int {
	text := fmt.Sprintf("selector %d: %s", k+1, strings.Join(strings.Fields(err.Error()), " "))
	for at := range c.failures {
		if c.failures[at].Error == text {
			return at
		}
	}
	var unending *selector.UnendingError
	c.failures = append(c.failures, api.SelectorFailure{Error: text, Unending: errors.As(err, &unending)})
	return len(c.failures) - 1
}

// UnendingText describes the first failure of an expression that does not end, so that the
// result is not known. It is empty if there is none.
func UnendingText(failures []api.SelectorFailure) string {
	for i := range failures {
		if failures[i].Unending {
			return FailureText(&failures[i])
		}
	}
	return ""
}

// FailureText names the first of the devices: "selector 1: no such key: model (on
// gpu.example.com/node-1/gpu-0 and 3 more)".
func FailureText(f *api.SelectorFailure) string {
	if f.Count == 1 {
		return fmt.Sprintf("%s (on %s)", f.Error, f.Devices[0])
	}
	return fmt.Sprintf("%s (on %s and %d more)", f.Error, f.Devices[0], f.Count-1)
}

func addFailing(f *api.SelectorFailure, id cluster.DeviceID) {
	f.Count++
	if len(f.Devices) < maxFailing {
		f.Devices = append(f.Devices, id.String())
	}
}

// selection remembers which devices a class selects. One on which a selector
// fails is not selected.
type selection map[cluster.DeviceID]bool
