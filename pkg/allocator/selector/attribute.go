// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"fmt"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// Literal formats an attribute's value as a CEL literal.
func Literal(attribute resourceapi.DeviceAttribute) string {
	values, known := valuesOf(attribute, strconv.Quote)
	switch {
	case !known:
		return "a value of an unknown type"
	case IsList(attribute):
		return "[" + strings.Join(values, ", ") + "]"
	default:
		return values[0]
	}
}

// Plain formats an attribute's value for people; the elements of a list are joined by
// commas.
func Plain(attribute resourceapi.DeviceAttribute) string {
	return strings.Join(Values(attribute), ",")
}

// Values lists the elements of a list, or the only value, as text for people.
func Values(attribute resourceapi.DeviceAttribute) []string {
	values, _ := valuesOf(attribute, func(text string) string { return text })
	return values
}

// valuesOf lists the elements of a list, or the only value. Of several values, which the
// API server does not allow, it returns the value that CEL sees. It is false for a type that
// this program does not know.
func valuesOf(attribute resourceapi.DeviceAttribute, quoted func(string) string) (values []string, known bool) {
	switch {
	case attribute.IntValues != nil:
		return texts(attribute.IntValues), true
	case attribute.BoolValues != nil:
		return texts(attribute.BoolValues), true
	case attribute.StringValues != nil:
		for _, value := range attribute.StringValues {
			values = append(values, quoted(value))
		}
		return values, true
	case attribute.VersionValues != nil:
		return attribute.VersionValues, true
	case attribute.IntValue != nil:
		return []string{strconv.FormatInt(*attribute.IntValue, 10)}, true
	case attribute.BoolValue != nil:
		return []string{strconv.FormatBool(*attribute.BoolValue)}, true
	case attribute.StringValue != nil:
		return []string{quoted(*attribute.StringValue)}, true
	case attribute.VersionValue != nil:
		return []string{*attribute.VersionValue}, true
	default:
		return nil, false
	}
}

func texts[T any](values []T) []string {
	list := make([]string, 0, len(values))
	for _, value := range values {
		list = append(list, fmt.Sprint(value))
	}
	return list
}

// IsList reports whether an attribute has a list, even an empty one.
func IsList(a resourceapi.DeviceAttribute) bool {
	return a.StringValues != nil || a.IntValues != nil || a.BoolValues != nil || a.VersionValues != nil
}

// Split splits a name. Names without a domain belong to the driver's domain.
func Split(name resourceapi.QualifiedName, driver string) (domain, id string) {
	domain, id, found := strings.Cut(string(name), "/")
	if !found {
		return driver, string(name)
	}
	return domain, id
}

// Qualified returns a name with its domain.
func Qualified(name resourceapi.QualifiedName, driver string) string {
	domain, id := Split(name, driver)
	return domain + "/" + id
}

// Lookup finds an attribute or capacity by its domain and name in a device of a
// driver.
func Lookup[T any](values map[resourceapi.QualifiedName]T, domain, name, driver string) (T, bool) {
	return lookup(values, resourceapi.QualifiedName(domain+"/"+name), domain, name, driver)
}

// lookup is like [Lookup], for callers that look up the same name in many devices.
func lookup[T any](values map[resourceapi.QualifiedName]T, qualified resourceapi.QualifiedName, domain, name, driver string) (T, bool) {
	if value, ok := values[qualified]; ok {
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
		if of, _ := Split(name, driver); of == domain {
			return true
		}
	}
	return false
}
