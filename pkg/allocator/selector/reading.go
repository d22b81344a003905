// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// Kinds of values that a selector can read of a device.
const (
	KindDriver     = "driver"
	KindSharing    = "allowMultipleAllocations"
	KindAttributes = "attributes"
	KindCapacity   = "capacity"
)

// Reading is one value of a device that an expression can see.
type Reading struct {
	// Kind is KindDriver, KindSharing, KindAttributes or KindCapacity.
	Kind string
	// Domain and Name identify an attribute or a capacity. An empty name asks whether there
	// is anything in that domain.
	Domain, Name string
	// Whole is true for everything in the domain, or in all domains if that is empty.
	Whole bool
}

// Attribute returns the reading of an attribute of a device of a driver.
func Attribute(name resourceapi.QualifiedName, driver string) Reading {
	domain, id := Split(name, driver)
	return Reading{Kind: KindAttributes, Domain: domain, Name: id}
}

// Capacity returns the reading of a capacity of a device of a driver.
func Capacity(name resourceapi.QualifiedName, driver string) Reading {
	domain, id := Split(name, driver)
	return Reading{Kind: KindCapacity, Domain: domain, Name: id}
}

// String returns the reading as a CEL expression would name it.
func (r Reading) String() string {
	switch {
	case r.Domain == "":
		return "device." + r.Kind
	case r.Name == "":
		return fmt.Sprintf("device.%s[%s]", r.Kind, strconv.Quote(r.Domain))
	default:
		return fmt.Sprintf("device.%s[%q].%s", r.Kind, r.Domain, r.Name)
	}
}

// Short returns the reading without parts that are obvious.
func (r Reading) Short() string {
	switch {
	case r.Domain == "":
		return r.Kind
	case r.Whole:
		return r.Kind + " of " + r.Domain
	case r.Name == "":
		return r.Domain
	default:
		return r.Name
	}
}

// Noun names the reading: "attribute memory (domain gpu.example.com)".
func (r Reading) Noun() string {
	kind := strings.TrimSuffix(r.Kind, "s")
	switch {
	case r.Domain == "":
		return kind
	case r.Name == "":
		return "domain " + r.Domain
	default:
		return fmt.Sprintf("%s %s (domain %s)", kind, r.Name, r.Domain)
	}
}

// Value formats the device's value; false if it has none.
func (r Reading) Value(driver string, device *resourceapi.Device) (string, bool) {
	switch r.Kind {
	case KindDriver:
		return strconv.Quote(driver), true
	case KindSharing:
		return strconv.FormatBool(device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations), true
	}
	switch {
	case r.Whole:
		return r.wholeText(driver, device), true
	case r.Kind == KindAttributes:
		return valueIn(r, device.Attributes, driver, Literal)
	default:
		return valueIn(r, device.Capacity, driver, func(c resourceapi.DeviceCapacity) string { return QuantityText(c.Value) })
	}
}

func valueIn[T any](r Reading, values map[resourceapi.QualifiedName]T, driver string, text func(T) string) (string, bool) {
	if r.Name == "" {
		if hasDomain(values, r.Domain, driver) {
			return "present", true
		}
		return "", false
	}
	value, ok := Lookup(values, r.Domain, r.Name, driver)
	if !ok {
		return "", false
	}
	return text(value), true
}

// appendKey appends a key that distinguishes the value from all other possible values.
func (r Reading) appendKey(key []byte, driver string, device *resourceapi.Device) []byte {
	if !r.Whole {
		value, ok := r.Value(driver, device)
		if !ok {
			value = "-"
		}
		return appendWord(key, value)
	}
	within := r.within(driver, device)
	key = append(strconv.AppendInt(key, int64(len(within)), 10), '#')
	for _, part := range within {
		key = appendWord(appendWord(key, part.Domain), part.Name)
		key = part.appendKey(key, driver, device)
	}
	return key
}

// appendWord appends a text after its length, so that the next one cannot be taken for a
// part of it.
func appendWord(key []byte, text string) []byte {
	key = append(strconv.AppendInt(key, int64(len(text)), 10), ':')
	return append(key, text...)
}

// within lists the device's single values in a whole domain, or in all of them.
func (r Reading) within(driver string, device *resourceapi.Device) []Reading {
	var found []Reading
	add := func(part Reading) {
		if r.Domain == "" || r.Domain == part.Domain {
			found = append(found, part)
		}
	}
	if r.Kind == KindAttributes {
		for name := range device.Attributes {
			add(Attribute(name, driver))
		}
	} else {
		for name := range device.Capacity {
			add(Capacity(name, driver))
		}
	}
	slices.SortFunc(found, func(a, b Reading) int {
		return cmp.Or(strings.Compare(a.Domain, b.Domain), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(found)
}

// maxNames limits how many names of attributes are shown.
const maxNames = 10

// wholeText names the existing values.
func (r Reading) wholeText(driver string, device *resourceapi.Device) string {
	var names []string
	for _, part := range r.within(driver, device) {
		if r.Domain == "" {
			names = append(names, part.Domain+"/"+part.Name)
		} else {
			names = append(names, part.Name)
		}
	}
	switch more := len(names) - maxNames; {
	case more > 0:
		return fmt.Sprintf("{%s and %d more}", strings.Join(names[:maxNames], ", "), more)
	case len(names) > 0:
		return "{" + strings.Join(names, ", ") + "}"
	default:
		return "none"
	}
}

func appendValues(key []byte, reads []Reading, driver string, device *resourceapi.Device) []byte {
	for _, r := range reads {
		key = r.appendKey(key, driver, device)
	}
	return key
}

func foundValues(reads []Reading, driver string, device *resourceapi.Device) []string {
	found := make([]string, 0, len(reads))
	for _, r := range reads {
		value, ok := r.Value(driver, device)
		if !ok {
			value = "not set"
		}
		verb := " is "
		if r.Whole {
			verb = " are "
		}
		found = append(found, r.Short()+verb+value)
	}
	return found
}
