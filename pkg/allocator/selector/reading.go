// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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

// mebi is the unit from which a whole number of bytes is written with a binary
// suffix. Smaller numbers may count something else, such as cores.
const mebi = 1 << 20

// QuantityText writes a quantity for people: 85899345920 as 80Gi. It has the same value as
// the canonical form, which belongs into JSON.
func QuantityText(quantity resource.Quantity) string {
	if value, exact := quantity.AsInt64(); exact && quantity.Format != resource.BinarySI && value != 0 && value%mebi == 0 {
		return resource.NewQuantity(value, resource.BinarySI).String()
	}
	return quantity.String()
}

// SizeText is like [QuantityText], but writes a number of bytes of 1Gi and more that is no
// whole number of Mi, as kubelets report their memory, in Gi, rounded down to two decimals.
func SizeText(quantity resource.Quantity) string {
	const gibi = 1 << 30
	value, exact := quantity.AsInt64()
	if !exact || quantity.Format != resource.BinarySI || value < gibi || value%mebi == 0 {
		return QuantityText(quantity)
	}
	return fmt.Sprintf("%.2fGi", math.Floor(float64(value)/gibi*100)/100)
}

// longExponent matches an exponent of three digits or more, which no real quantity has.
// resource.Quantity rounds up to 1e-9, has suffixes up to 1e18, and keeps numbers beyond 64
// bits only to compare them; two digits leave room for numbers with many zeros. The time of
// a computation, and of parsing a negative exponent, grows with the exponent.
var longExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{2,}`)

// hasLongExponent reports whether the text of a quantity has one.
func hasLongExponent(text string) bool { return longExponent.MatchString(text) }

// ParseQuantity reads the text of a quantity, unless it has a long exponent.
func ParseQuantity(text string) (resource.Quantity, bool) {
	if hasLongExponent(text) {
		return resource.Quantity{}, false
	}
	quantity, err := resource.ParseQuantity(text)
	return quantity, err == nil
}
