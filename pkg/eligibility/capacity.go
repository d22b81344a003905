// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"fmt"
	"maps"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// shortage is a capacity of a device that a request cannot have.
type shortage struct {
	capacity resourceapi.QualifiedName
	// found and wanted are the evidence, message is the sentence, and required its required
	// part. lack describes, after a number, the shortcoming of such devices.
	found, wanted, message, required, lack string
}

// capacityShortage compares the capacity that a request takes with the free capacity of a
// device, by the rules of KEP-5075: a request without a value takes the default of the
// policy or else everything, and a value is rounded up to an allowed one. used is consumed
// by other shares. It returns nil if there is enough, and an error if the numbers cannot be
// represented, which ends the scheduler's attempt.
func capacityShortage(requests *resourceapi.CapacityRequirements, device *resourceapi.Device, used map[resourceapi.QualifiedName]resource.Quantity, fractional bool) (*shortage, error) {
	wanted := map[resourceapi.QualifiedName]resource.Quantity{}
	if requests != nil {
		wanted = requests.Requests
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if _, ok := device.Capacity[name]; !ok {
			quantity := wanted[name]
			return &shortage{
				capacity: name,
				found:    "not set",
				wanted:   quantity.String(),
				required: selector.QuantityText(quantity),
				message:  fmt.Sprintf("has no capacity %s%s", name, insteadOf(device.Capacity)),
				lack:     fmt.Sprintf("without capacity %s", name),
			}, nil
		}
	}
	names := slices.AppendSeq(make([]resourceapi.QualifiedName, 0, len(device.Capacity)), maps.Keys(device.Capacity))
	slices.Sort(names)
	for _, name := range names {
		capacity := device.Capacity[name]
		var request *resource.Quantity
		if quantity, ok := wanted[name]; ok {
			request = &quantity
		}
		takes, err := ConsumedBy(request, capacity, fractional)
		if err != nil {
			return nil, fmt.Errorf("capacity %s: %w", name, err)
		}
		if takes.Sign() < 0 {
			return nil, fmt.Errorf("capacity %s: consumed capacity %s is negative", name, takes.String())
		}
		if problem := policyProblem(takes, capacity.RequestPolicy, fractional); problem != "" {
			return &shortage{
				capacity: name,
				found:    problem,
				wanted:   takes.String(),
				required: selector.QuantityText(takes),
				message:  fmt.Sprintf("%s comes in %s", name, problem),
				lack:     fmt.Sprintf("with no such share of %s", name),
			}, nil
		}
		if takes.Cmp(capacity.Value) > 0 {
			return &shortage{
				capacity: name,
				found:    capacity.Value.String(),
				wanted:   takes.String(),
				required: selector.QuantityText(takes),
				message:  fmt.Sprintf("%s %s", selector.QuantityText(capacity.Value), name),
				lack:     "too small",
			}, nil
		}
		total := used[name].DeepCopy()
		total.Add(takes)
		if total.Cmp(capacity.Value) > 0 {
			left := capacity.Value.DeepCopy()
			left.Sub(used[name])
			return &shortage{
				capacity: name,
				found:    fmt.Sprintf("%s of %s available", left.String(), capacity.Value.String()),
				wanted:   takes.String(),
				required: selector.QuantityText(takes),
				message:  fmt.Sprintf("%s of %s %s available", selector.QuantityText(left), selector.QuantityText(capacity.Value), name),
				lack:     fmt.Sprintf("with too little %s available", name),
			}, nil
		}
	}
	return nil, nil
}

// insteadOf lists the capacities that a device has, in brackets.
func insteadOf(capacities map[resourceapi.QualifiedName]resourceapi.DeviceCapacity) string {
	if len(capacities) == 0 {
		return ""
	}
	names := make([]string, 0, len(capacities))
	for _, name := range slices.Sorted(maps.Keys(capacities)) {
		names = append(names, string(name))
	}
	return " (has " + english.Sample(names, MaxTexts) + ")"
}

// ConsumedBy returns the amount of a capacity that a request consumes, after rounding.
func ConsumedBy(request *resource.Quantity, capacity resourceapi.DeviceCapacity, fractional bool) (resource.Quantity, error) {
	policy := capacity.RequestPolicy
	switch {
	case request == nil && policy != nil && policy.Default != nil:
		return policy.Default.DeepCopy(), nil
	case request == nil:
		return capacity.Value.DeepCopy(), nil
	case policy == nil:
		return request.DeepCopy(), nil
	case policy.ValidRange != nil && policy.ValidRange.Min != nil:
		return roundUp(*request, policy.ValidRange, fractional)
	default:
		for _, valid := range policy.ValidValues {
			if request.Cmp(valid) <= 0 {
				return valid.DeepCopy(), nil
			}
		}
		return request.DeepCopy(), nil
	}
}

// roundUp returns the smallest value of a range that is not below the request.
func roundUp(request resource.Quantity, valid *resourceapi.CapacityRequestPolicyRange, fractional bool) (resource.Quantity, error) {
	if request.Cmp(*valid.Min) < 0 {
		return valid.Min.DeepCopy(), nil
	}
	if valid.Step == nil {
		return request.DeepCopy(), nil
	}
	unit := rangeUnit(valid, fractional)
	value, ok := unit.Of(request)
	if !ok {
		return resource.Quantity{}, fmt.Errorf("%s cannot be represented in steps of %s", request.String(), valid.Step.String())
	}
	low, _ := unit.Of(*valid.Min)
	step, _ := unit.Of(*valid.Step)
	if step <= 0 {
		return resource.Quantity{}, fmt.Errorf("%s is no step", valid.Step.String())
	}
	steps := (value - low) / step
	if (value-low)%step != 0 {
		steps++
	}
	if low >= 0 && steps > (math.MaxInt64-low)/step {
		return resource.Quantity{}, fmt.Errorf("%s cannot be rounded up to a step of %s", request.String(), valid.Step.String())
	}
	return unit.quantity(low+steps*step, valid.Step.Format), nil
}

// policyProblem says how a value breaks a request policy, empty if it does not.
func policyProblem(value resource.Quantity, policy *resourceapi.CapacityRequestPolicy, fractional bool) string {
	switch {
	case policy == nil, policy.Default != nil && value == *policy.Default:
		return ""
	case policy.ValidRange != nil:
		valid := policy.ValidRange
		if valid.Max != nil && value.Cmp(*valid.Max) > 0 {
			return fmt.Sprintf("at most %s per share", selector.QuantityText(*valid.Max))
		}
		if valid.Step == nil || valid.Min == nil {
			return ""
		}
		unit := rangeUnit(valid, fractional)
		number, ok := unit.Of(value)
		low, _ := unit.Of(*valid.Min)
		step, _ := unit.Of(*valid.Step)
		if !ok || step > 0 && (number-low)%step != 0 {
			return fmt.Sprintf("only steps of %s from %s", selector.QuantityText(*valid.Step), selector.QuantityText(*valid.Min))
		}
		return ""
	case len(policy.ValidValues) > 0:
		if slices.ContainsFunc(policy.ValidValues, func(valid resource.Quantity) bool { return valid.Cmp(value) == 0 }) {
			return ""
		}
		texts := make([]string, 0, len(policy.ValidValues))
		for _, valid := range policy.ValidValues {
			texts = append(texts, selector.QuantityText(valid))
		}
		return "only " + english.JoinOr(texts)
	default:
		return ""
	}
}

// NumberUnit is the unit of a range: whole units or thousandths.
type NumberUnit bool

// The units of a range.
const (
	wholeUnits  NumberUnit = false
	Thousandths NumberUnit = true
)

// rangeUnit returns thousandths if DRAFractionalCapacityRange is on and they can represent
// all numbers of the range (KEP-5075).
func rangeUnit(valid *resourceapi.CapacityRequestPolicyRange, fractional bool) NumberUnit {
	if !fractional {
		return wholeUnits
	}
	for _, quantity := range []*resource.Quantity{valid.Min, valid.Max, valid.Step} {
		if quantity == nil {
			continue
		}
		if _, ok := Thousandths.Of(*quantity); !ok {
			return wholeUnits
		}
	}
	if valid.Step != nil && valid.Step.MilliValue() < 1 {
		return wholeUnits
	}
	return Thousandths
}

// Of returns a quantity as a number in this unit; false if it does not fit.
func (u NumberUnit) Of(quantity resource.Quantity) (int64, bool) {
	if u == wholeUnits {
		return quantity.Value(), quantity.CmpInt64(math.MaxInt64) <= 0
	}
	milli := quantity.MilliValue()
	return milli, resource.NewMilliQuantity(milli, quantity.Format).Cmp(quantity) == 0
}

func (u NumberUnit) quantity(number int64, format resource.Format) resource.Quantity {
	if u == wholeUnits {
		return *resource.NewQuantity(number, format)
	}
	if number%1000 == 0 {
		return *resource.NewQuantity(number/1000, format)
	}
	return *resource.NewMilliQuantity(number, format)
}
