// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"fmt"
	"strconv"

	resourceapi "k8s.io/api/resource/v1"
)

// Match is the way in which a condition compares a value.
type Match int

const (
	// Exactly requires the same value; of a list, the same first element.
	Exactly Match = iota
	// AtLeast requires that value or a larger one. Only quantities and versions have a
	// meaningful order; for all others it is Exactly.
	AtLeast
)

// Condition writes an expression that is true for the value of a device, as authors of
// claims would write it. It is not ok if the device has no value there. The expression
// fails on devices without one: see [Evaluator.Guard]. Only [Evaluator.Evaluate] can tell
// whether it is true: the device may have an attribute with which no expression has a
// result.
func Condition(r Reading, match Match, driver string, device *resourceapi.Device) (expression string, ok bool) {
	comparison := " == 0"
	if match == AtLeast {
		comparison = " >= 0"
	}
	switch {
	case r.Kind == KindDriver:
		return fmt.Sprintf("device.driver == %s", strconv.Quote(driver)), true
	case r.Kind == KindCapacity:
		capacity, ok := Lookup(device.Capacity, r.Domain, r.Name, driver)
		return fmt.Sprintf("%s.compareTo(quantity(%q))%s", r.expression(), QuantityText(capacity.Value), comparison), ok
	case r.Kind != KindAttributes:
		return "", false
	}
	attribute, ok := Lookup(device.Attributes, r.Domain, r.Name, driver)
	values, known := valuesOf(attribute, strconv.Quote)
	if !ok || !known || len(values) == 0 {
		return "", false
	}
	switch value := values[0]; {
	case attribute.VersionValues != nil:
		return fmt.Sprintf("%s.includes(semver(%q))", r.expression(), value), true
	case IsList(attribute):
		return fmt.Sprintf("%s.includes(%s)", r.expression(), value), true
	case typeOf(attribute) == TypeVersion:
		return fmt.Sprintf("%s.compareTo(semver(%q))%s", r.expression(), value, comparison), true
	default:
		return r.expression() + " == " + value, true
	}
}

// expression writes an attribute or a capacity so that it compiles, even if its name is no
// identifier of CEL.
func (r Reading) expression() string {
	if isIdentifier(r.Name) {
		return r.String()
	}
	return fmt.Sprintf("device.%s[%s][%s]", r.Kind, strconv.Quote(r.Domain), strconv.Quote(r.Name))
}
