// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

const (
	// locationDomain is the domain of the attributes that Kubernetes defines. All of them
	// say where in a node a device is (package deviceattribute of
	// k8s.io/dynamic-resource-allocation).
	locationDomain = "resource.kubernetes.io"
	// maxSelectors limits how many expressions are listed, maxVerified how many are
	// evaluated for that, and maxConditions of how many conditions they consist at most,
	// unless it takes all of them.
	maxSelectors  = 5
	maxVerified   = 20
	maxConditions = 3
)

// attributeCondition is an expression about one value of a device, and the devices for which
// it is true.
type attributeCondition struct {
	expression string
	matches    []bool
}

// Like finds expressions that single out devices like one of them. The answer is
// about the shortest. It fails only if the context is done.
func (d *DeviceEvaluator) Like(ctx context.Context, device *cluster.Device) (*api.Evaluation, error) {
	same, leftOut := d.kindOf(device)
	like := &api.DeviceLikeness{Device: device.ID.String()}
	for _, r := range leftOut {
		like.LeftOut = append(like.LeftOut, r.Domain+"/"+r.Name)
	}
	selected := make([]bool, len(d.list))
	for i, other := range d.list {
		if selected[i] = sameReadings(device, other, same); selected[i] {
			like.Count++
		}
	}
	conditions, err := d.conditions(ctx, device, same)
	if err != nil {
		return nil, err
	}
	for _, r := range same {
		like.Same = append(like.Same, r.Domain+"/"+r.Name)
	}
	if like.Selectors, err = d.verified(ctx, conjunctions(conditions, selected), conditions[0].expression, selected); err != nil {
		return nil, err
	}
	out := &api.Evaluation{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Evaluation"},
		Devices:  len(d.list), CostLimit: resourceapi.CELSelectorExpressionMaxCost,
	}
	if len(like.Selectors) > 0 {
		if out, err = d.Evaluate(ctx, like.Selectors[0]); err != nil {
			return nil, err
		}
	}
	out.Like = like
	return out, nil
}

// kindOf divides what a device publishes into what says of which kind it is, and
// what tells it apart from others of its kind or says where it is.
func (d *DeviceEvaluator) kindOf(device *cluster.Device) (same, leftOut []selector.Reading) {
	words := selector.NewVocabulary(english.Typo)
	for _, other := range d.list {
		if other.ID.Driver == device.ID.Driver {
			words.Add(other.ID.Driver, other.Device)
		}
	}
	var all []selector.Reading
	for name := range device.Attributes {
		all = append(all, selector.Attribute(name, device.ID.Driver))
	}
	for name := range device.Capacity {
		all = append(all, selector.Capacity(name, device.ID.Driver))
	}
	slices.SortFunc(all, func(a, b selector.Reading) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Domain, b.Domain), english.CompareNames(a.Name, b.Name))
	})
	for _, r := range slices.Compact(all) {
		// Where nearly each device has another value, it is a serial number or the
		// like.
		identifies := words.Count(r) > 1 && 4*len(words.Values(r)) > 3*words.Count(r)
		if identifies || r.Domain == locationDomain {
			leftOut = append(leftOut, r)
		} else {
			same = append(same, r)
		}
	}
	return same, leftOut
}

// sameReadings reports whether another device of the same driver has the same values.
func sameReadings(device, other *cluster.Device, same []selector.Reading) bool {
	if other.ID.Driver != device.ID.Driver {
		return false
	}
	for _, r := range same {
		a, _ := r.Value(device.ID.Driver, device.Device)
		if b, ok := r.Value(other.ID.Driver, other.Device); !ok || a != b {
			return false
		}
	}
	return true
}

// conditions returns the conditions on the driver and the values of a device.
func (d *DeviceEvaluator) conditions(ctx context.Context, device *cluster.Device, same []selector.Reading) ([]attributeCondition, error) {
	var list []attributeCondition
	for _, r := range append([]selector.Reading{{Kind: selector.KindDriver}}, same...) {
		expression, ok := selector.Condition(r, selector.Exactly, device.ID.Driver, device.Device)
		if !ok {
			continue
		}
		results, err := d.results(ctx, d.selectors.Compile(expression))
		if err != nil {
			return nil, err
		}
		c := attributeCondition{expression: expression, matches: make([]bool, len(results))}
		for i, result := range results {
			c.matches[i] = result.Matches
		}
		list = append(list, c)
	}
	return list, nil
}

// conjunctions finds the sets of conditions that are true for exactly the required
// devices and of which none can be left out, those with few conditions first.
func conjunctions(conditions []attributeCondition, required []bool) [][]string {
	var found [][]int
	var try func(chosen []int, from, size int)
	try = func(chosen []int, from, size int) {
		if len(chosen) == size {
			if !containsAny(chosen, found) && matchesExactly(conditions, chosen, required) {
				found = append(found, slices.Clone(chosen))
			}
			return
		}
		for i := from; i < len(conditions); i++ {
			try(append(chosen, i), i+1, size)
		}
	}
	for size := 1; size <= min(maxConditions, len(conditions)); size++ {
		try(nil, 0, size)
	}
	var sets [][]string
	for _, chosen := range found {
		var set []string
		for _, i := range chosen {
			set = append(set, conditions[i].expression)
		}
		sets = append(sets, set)
	}
	if len(found) > 0 {
		return sets
	}
	var all []string
	for _, c := range conditions {
		all = append(all, c.expression)
	}
	return [][]string{all}
}

// containsAny reports whether chosen contains one of the found sets.
func containsAny(chosen []int, found [][]int) bool {
	return slices.ContainsFunc(found, func(smaller []int) bool {
		return !slices.ContainsFunc(smaller, func(i int) bool { return !slices.Contains(chosen, i) })
	})
}

func matchesExactly(conditions []attributeCondition, chosen []int, required []bool) bool {
	for device, want := range required {
		all := true
		for _, i := range chosen {
			all = all && conditions[i].matches[device]
		}
		if all != want {
			return false
		}
	}
	return true
}

// verified evaluates conjunctions and gives the shortest of those that are true for
// exactly the required devices and fail for none. One that fails is tried
// with guards, and behind a test of the driver, which may be shorter.
func (d *DeviceEvaluator) verified(ctx context.Context, sets [][]string, ofDriver string, required []bool) ([]string, error) {
	expressions := make([]string, 0, len(sets))
	for _, set := range sets {
		expressions = append(expressions, strings.Join(set, " && "))
	}
	byLength := func(a, b string) int { return cmp.Compare(len(a), len(b)) }
	slices.SortStableFunc(expressions, byLength)
	var list []string
	for _, expression := range expressions[:min(len(expressions), maxVerified)] {
		for _, form := range []string{expression, ofDriver + " && " + expression} {
			exact, asWritten, err := d.exact(ctx, form, required)
			if err != nil {
				return nil, err
			}
			if exact != "" && !slices.Contains(list, exact) {
				list = append(list, exact)
			}
			if asWritten || strings.HasPrefix(expression, ofDriver) || slices.Contains(list, ofDriver) {
				break
			}
		}
	}
	slices.SortStableFunc(list, byLength)
	return list[:min(len(list), maxSelectors)], nil
}

// exact returns an expression, with guards if it needs some, that is true for exactly the
// required devices and fails for none; empty if it is not. It also reports whether no guard
// was needed.
func (d *DeviceEvaluator) exact(ctx context.Context, expression string, required []bool) (exact string, asWritten bool, err error) {
	sel := d.selectors.Compile(expression)
	results, err := d.results(ctx, sel)
	if err != nil {
		return "", false, err
	}
	asWritten = true
	if missing := missingOf(ctx, results); len(missing) > 0 {
		guarded, ok := d.selectors.Guard(sel, missing)
		if !ok {
			return "", false, nil
		}
		sel, asWritten = d.selectors.Compile(guarded), false
		if results, err = d.results(ctx, sel); err != nil {
			return "", false, err
		}
	}
	if sel.Err != nil || d.selectors.Cost(sel) > resourceapi.CELSelectorExpressionMaxCost {
		return "", asWritten, nil
	}
	for i, result := range results {
		if result.Err != nil || result.Matches != required[i] {
			return "", asWritten, nil
		}
	}
	return sel.Expression, asWritten, nil
}
