// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
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
	// whole is true for everything that is in the domain, or in all domains if
	// that is empty.
	whole bool
}

// String gives the reading as a CEL expression would name it.
func (r reading) String() string {
	switch {
	case r.domain == "":
		return "device." + r.kind
	case r.name == "":
		return fmt.Sprintf("device.%s[%s]", r.kind, strconv.Quote(r.domain))
	default:
		return fmt.Sprintf("device.%s[%q].%s", r.kind, r.domain, r.name)
	}
}

// short is the reading without what people can guess.
func (r reading) short() string {
	switch {
	case r.domain == "":
		return r.kind
	case r.whole:
		return r.kind + " of " + r.domain
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
		if r.whole {
			return r.wholeText(driver, device), true
		}
		if r.name == "" {
			return presence(hasDomain(device.Attributes, r.domain, driver))
		}
		attribute, ok := qualified(device.Attributes, r.domain, r.name, driver)
		if !ok {
			return "", false
		}
		return attributeText(attribute), true
	default:
		if r.whole {
			return r.wholeText(driver, device), true
		}
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

// appendKey appends what tells the value from all others that a device can have
// there.
func (r reading) appendKey(key []byte, driver string, device *resourceapi.Device) []byte {
	if !r.whole {
		value, ok := r.value(driver, device)
		if !ok {
			value = "-"
		}
		key = strconv.AppendInt(key, int64(len(value)), 10)
		key = append(key, ':')
		return append(key, value...)
	}
	within := r.within(driver, device)
	key = strconv.AppendInt(key, int64(len(within)), 10)
	key = append(key, '#')
	for _, part := range within {
		for _, text := range []string{part.domain, part.name} {
			key = strconv.AppendInt(key, int64(len(text)), 10)
			key = append(key, ':')
			key = append(key, text...)
		}
		key = part.appendKey(key, driver, device)
	}
	return key
}

// within lists the single values that the device has in a whole domain, or in
// all of them.
func (r reading) within(driver string, device *resourceapi.Device) []reading {
	var found []reading
	add := func(qualified resourceapi.QualifiedName) {
		domain, name, ok := strings.Cut(string(qualified), "/")
		if !ok {
			domain, name = driver, string(qualified)
		}
		if r.domain == "" || r.domain == domain {
			found = append(found, reading{kind: r.kind, domain: domain, name: name})
		}
	}
	if r.kind == "attributes" {
		for qualified := range device.Attributes {
			add(qualified)
		}
	} else {
		for qualified := range device.Capacity {
			add(qualified)
		}
	}
	slices.SortFunc(found, func(a, b reading) int {
		return cmp.Or(strings.Compare(a.domain, b.domain), strings.Compare(a.name, b.name))
	})
	return slices.Compact(found)
}

// maxNames is how many names of attributes are shown.
const maxNames = 10

// wholeText names what there is.
func (r reading) wholeText(driver string, device *resourceapi.Device) string {
	var names []string
	for _, part := range r.within(driver, device) {
		if r.domain == "" {
			names = append(names, part.domain+"/"+part.name)
		} else {
			names = append(names, part.name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return "{" + sample(names, maxNames) + "}"
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

// attributeText formats an attribute's value as a CEL literal would look. Of
// several values, which the API server does not allow, it takes the one that CEL
// gets to see.
func attributeText(attribute resourceapi.DeviceAttribute) string {
	switch {
	case attribute.IntValues != nil:
		return listText(attribute.IntValues, "%d")
	case attribute.BoolValues != nil:
		return listText(attribute.BoolValues, "%t")
	case attribute.StringValues != nil:
		return listText(attribute.StringValues, "%q")
	case attribute.VersionValues != nil:
		return listText(attribute.VersionValues, "%s")
	case attribute.IntValue != nil:
		return strconv.FormatInt(*attribute.IntValue, 10)
	case attribute.BoolValue != nil:
		return strconv.FormatBool(*attribute.BoolValue)
	case attribute.StringValue != nil:
		return strconv.Quote(*attribute.StringValue)
	case attribute.VersionValue != nil:
		return *attribute.VersionValue
	default:
		return "a value of an unknown type"
	}
}

func listText[T any](values []T, format string) string {
	texts := make([]string, 0, len(values))
	for _, value := range values {
		texts = append(texts, fmt.Sprintf(format, value))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func valuesKey(reads []reading, driver string, device *resourceapi.Device) string {
	key := make([]byte, 0, 64)
	for _, r := range reads {
		key = r.appendKey(key, driver, device)
	}
	return string(key)
}

func foundValues(reads []reading, driver string, device *resourceapi.Device) []string {
	found := make([]string, 0, len(reads))
	for _, r := range reads {
		value, ok := r.value(driver, device)
		if !ok {
			value = "not set"
		}
		verb := " is "
		if r.whole {
			verb = " are "
		}
		found = append(found, r.short()+verb+value)
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
		if kind, domain, ok := domainOf(e); ok {
			add(reading{kind: kind, domain: domain, whole: true})
			return
		}
		if kind, ok := kindOf(e); ok {
			add(reading{kind: kind, whole: true})
			return
		}
		opaque = opaque || isDevice(e)
		for _, child := range childrenOf(e) {
			visit(child)
		}
	}
	visit(root)
	return reads, opaque
}

// needs lists the values without which an expression fails if it gets to them.
func needs(root ast.Expr) (needed []reading) {
	var visit func(e ast.Expr)
	visit = func(e ast.Expr) {
		if r, ok := readingOf(e); ok {
			if failsWithout(e) && !slices.Contains(needed, r) {
				needed = append(needed, r)
			}
			return
		}
		for _, child := range childrenOf(e) {
			visit(child)
		}
	}
	visit(root)
	return needed
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
