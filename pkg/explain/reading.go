// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// reading is one value of a device that an expression can see.
type reading struct {
	// kind is "driver", "allowMultipleAllocations", "attributes" or "capacity".
	kind string
	// domain and name identify an attribute or a capacity. An empty name is
	// the question whether there is anything in that domain.
	domain, name string
}

// String gives the reading as a CEL expression would name it.
func (r reading) String() string {
	switch {
	case r.domain == "":
		return "device." + r.kind
	case r.name == "":
		return fmt.Sprintf("device.%s[%q]", r.kind, r.domain)
	default:
		return fmt.Sprintf("device.%s[%q].%s", r.kind, r.domain, r.name)
	}
}

// short is the reading without what people can guess.
func (r reading) short() string {
	switch {
	case r.domain == "":
		return r.kind
	case r.name == "":
		return r.domain
	default:
		return r.name
	}
}

// value formats what the device has there; false if it has nothing.
func (r reading) value(driver string, device *resourceapi.Device) (string, bool) {
	switch r.kind {
	case "driver":
		return strconv.Quote(driver), true
	case "allowMultipleAllocations":
		return strconv.FormatBool(device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations), true
	case "attributes":
		if r.name == "" {
			return presence(hasDomain(device.Attributes, r.domain, driver))
		}
		attribute, ok := qualified(device.Attributes, r.domain, r.name, driver)
		if !ok {
			return "", false
		}
		return attributeText(attribute), true
	default:
		if r.name == "" {
			return presence(hasDomain(device.Capacity, r.domain, driver))
		}
		capacity, ok := qualified(device.Capacity, r.domain, r.name, driver)
		if !ok {
			return "", false
		}
		return capacity.Value.String(), true
	}
}

func presence(has bool) (string, bool) {
	if has {
		return "present", true
	}
	return "", false
}

// qualified looks up an attribute or capacity: names without a domain belong
// to the domain of the driver.
func qualified[T any](values map[resourceapi.QualifiedName]T, domain, name, driver string) (T, bool) {
	if value, ok := values[resourceapi.QualifiedName(domain+"/"+name)]; ok {
		return value, true
	}
	if domain == driver {
		value, ok := values[resourceapi.QualifiedName(name)]
		return value, ok
	}
	var none T
	return none, false
}

func hasDomain[T any](values map[resourceapi.QualifiedName]T, domain, driver string) bool {
	for name := range values {
		prefix, _, found := strings.Cut(string(name), "/")
		if !found {
			prefix = driver
		}
		if prefix == domain {
			return true
		}
	}
	return false
}

// attributeText formats an attribute's value as a CEL literal would look.
func attributeText(attribute resourceapi.DeviceAttribute) string {
	switch {
	case attribute.StringValue != nil:
		return strconv.Quote(*attribute.StringValue)
	case attribute.IntValue != nil:
		return strconv.FormatInt(*attribute.IntValue, 10)
	case attribute.BoolValue != nil:
		return strconv.FormatBool(*attribute.BoolValue)
	case attribute.VersionValue != nil:
		return *attribute.VersionValue
	case len(attribute.StringValues) > 0:
		return fmt.Sprintf("%q", attribute.StringValues)
	case len(attribute.IntValues) > 0:
		return fmt.Sprint(attribute.IntValues)
	case len(attribute.BoolValues) > 0:
		return fmt.Sprint(attribute.BoolValues)
	case len(attribute.VersionValues) > 0:
		return fmt.Sprint(attribute.VersionValues)
	default:
		return "a value of an unknown type"
	}
}

func valuesKey(reads []reading, driver string, device *resourceapi.Device) string {
	var key strings.Builder
	for _, r := range reads {
		value, ok := r.value(driver, device)
		if !ok {
			value = "-"
		}
		key.WriteString(strconv.Itoa(len(value)))
		key.WriteByte(':')
		key.WriteString(value)
	}
	return key.String()
}

func foundValues(reads []reading, driver string, device *resourceapi.Device) []string {
	found := make([]string, 0, len(reads))
	for _, r := range reads {
		value, ok := r.value(driver, device)
		if !ok {
			value = "not set"
		}
		found = append(found, r.short()+" is "+value)
	}
	return found
}

// readings lists what an expression can see of the device. The second result
// is true if it can see something that is not in the list.
func readings(root ast.Expr) (reads []reading, opaque bool) {
	var visit func(e ast.Expr)
	add := func(r reading) {
		if !slices.Contains(reads, r) {
			reads = append(reads, r)
		}
	}
	visit = func(e ast.Expr) {
		if r, ok := readingOf(e); ok {
			add(r)
			return
		}
		switch e.Kind() {
		case ast.IdentKind:
			if e.AsIdent() == "device" {
				opaque = true
			}
		case ast.SelectKind:
			visit(e.AsSelect().Operand())
		case ast.CallKind:
			call := e.AsCall()
			if call.IsMemberFunction() {
				visit(call.Target())
			}
			for _, arg := range call.Args() {
				visit(arg)
			}
		case ast.ListKind:
			for _, element := range e.AsList().Elements() {
				visit(element)
			}
		case ast.ComprehensionKind:
			c := e.AsComprehension()
			for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
				visit(part)
			}
		case ast.MapKind, ast.StructKind:
			opaque = true
		case ast.LiteralKind, ast.UnspecifiedExprKind:
		}
	}
	visit(root)
	return reads, opaque
}

// readingOf recognizes the ways to write one value of the device:
//
//	device.driver
//	device.attributes["domain"].name     and has() of it
//	device.attributes["domain"]["name"]
//	device.attributes["domain"].?name    and [?"name"]
//	"domain" in device.attributes
//	"name" in device.attributes["domain"]
func readingOf(e ast.Expr) (reading, bool) {
	switch e.Kind() {
	case ast.SelectKind:
		sel := e.AsSelect()
		if isDevice(sel.Operand()) {
			if name := sel.FieldName(); name == "driver" || name == "allowMultipleAllocations" {
				return reading{kind: name}, true
			}
			return reading{}, false
		}
		if kind, domain, ok := domainOf(sel.Operand()); ok {
			return reading{kind: kind, domain: domain, name: sel.FieldName()}, true
		}
	case ast.CallKind:
		call := e.AsCall()
		if len(call.Args()) != 2 {
			return reading{}, false
		}
		first, second := call.Args()[0], call.Args()[1]
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			name, isText := literalText(second)
			if kind, domain, ok := domainOf(first); ok && isText {
				return reading{kind: kind, domain: domain, name: name}, true
			}
		case operators.In:
			name, isText := literalText(first)
			if !isText {
				return reading{}, false
			}
			if kind, ok := kindOf(second); ok {
				return reading{kind: kind, domain: name}, true
			}
			if kind, domain, ok := domainOf(second); ok {
				return reading{kind: kind, domain: domain, name: name}, true
			}
		}
	default:
	}
	return reading{}, false
}

// isTest says whether an expression asks for the presence of a value.
func isTest(e ast.Expr) bool {
	return e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() ||
		e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.In
}

func isDevice(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == "device"
}

// kindOf recognizes device.attributes and device.capacity.
func kindOf(e ast.Expr) (string, bool) {
	if e.Kind() != ast.SelectKind || !isDevice(e.AsSelect().Operand()) {
		return "", false
	}
	name := e.AsSelect().FieldName()
	return name, name == "attributes" || name == "capacity"
}

// domainOf recognizes device.attributes["domain"] and the optional form of it.
func domainOf(e ast.Expr) (kind, domain string, ok bool) {
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
		return "", "", false
	}
	call := e.AsCall()
	if name := call.FunctionName(); name != operators.Index && name != operators.OptIndex {
		return "", "", false
	}
	kind, isKind := kindOf(call.Args()[0])
	domain, isText := literalText(call.Args()[1])
	return kind, domain, isKind && isText
}

func literalText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

func conjunctsOf(e ast.Expr) []ast.Expr {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.LogicalAnd {
		var parts []ast.Expr
		for _, arg := range e.AsCall().Args() {
			parts = append(parts, conjunctsOf(arg)...)
		}
		return parts
	}
	return []ast.Expr{e}
}

// wantedText says in a few words what a simple comparison asks for. Anything
// else is given as it is written.
func wantedText(e ast.Expr, text string) string {
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
		return text
	}
	operator, left, right := e.AsCall().FunctionName(), e.AsCall().Args()[0], e.AsCall().Args()[1]
	value, ok := literalValue(right)
	if _, isReading := readingOf(left); isReading && ok && !isTest(left) {
		return comparison(operator, value, text)
	}
	// x.compareTo(quantity("80Gi")) >= 0
	if left.Kind() != ast.CallKind || left.AsCall().FunctionName() != "compareTo" || value != "0" {
		return text
	}
	compare := left.AsCall()
	if !compare.IsMemberFunction() || len(compare.Args()) != 1 {
		return text
	}
	if _, isReading := readingOf(compare.Target()); !isReading {
		return text
	}
	value, ok = literalValue(compare.Args()[0])
	if !ok {
		return text
	}
	return comparison(operator, value, text)
}

// literalValue formats a literal, or the argument of quantity() and semver().
func literalValue(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.LiteralKind:
		if text, ok := literalText(e); ok {
			return strconv.Quote(text), true
		}
		return fmt.Sprint(e.AsLiteral().Value()), true
	case ast.CallKind:
		call := e.AsCall()
		if name := call.FunctionName(); (name == "quantity" || name == "semver") && len(call.Args()) == 1 {
			return literalText(call.Args()[0])
		}
	default:
	}
	return "", false
}

func comparison(operator, value, text string) string {
	switch operator {
	case operators.Equals:
		return value
	case operators.NotEquals:
		return "anything but " + value
	case operators.GreaterEquals:
		return value + " or more"
	case operators.Greater:
		return "more than " + value
	case operators.LessEquals:
		return value + " or less"
	case operators.Less:
		return "less than " + value
	default:
		return text
	}
}

func celDevice(driver string, device *resourceapi.Device) dracel.Device {
	return dracel.Device{
		Driver:                   driver,
		AllowMultipleAllocations: device.AllowMultipleAllocations,
		Attributes:               device.Attributes,
		Capacity:                 device.Capacity,
	}
}
