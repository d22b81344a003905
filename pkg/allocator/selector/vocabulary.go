// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ValueType is what kind of value a device has.
type ValueType string

// The types of attributes and capacities.
const (
	TypeInt      ValueType = "int"
	TypeBool     ValueType = "bool"
	TypeString   ValueType = "string"
	TypeVersion  ValueType = "version"
	TypeQuantity ValueType = "quantity"
	TypeList     ValueType = "list"
)

// Vocabulary is what devices publish, and so what selectors can sensibly talk
// about. Add fills it; it is not safe for concurrent use.
type Vocabulary struct {
	// Nearest gives the name that was probably meant, or nothing if none is close.
	Nearest func(name string, names []string) string

	devices   int
	drivers   map[string]bool
	domains   map[string]bool
	published map[Reading]*published
	// byName has the same places by driver and name, as devices have them.
	byName map[string]*names
}

// names are the places of a driver's attributes and capacities.
type names struct {
	attributes, capacities map[resourceapi.QualifiedName]*published
}

// published is what devices have in one place.
type published struct {
	devices int
	types   map[ValueType]bool
	drivers map[string]bool
	values  map[valueKey]*PublishedValue
	// attribute and quantity are the last values that were added: those of the
	// next device are mostly the same.
	attribute resourceapi.DeviceAttribute
	quantity  resource.Quantity
	last      *PublishedValue
}

// valueKey tells values apart: the string "1" is not the number 1.
type valueKey struct {
	of   ValueType
	text string
}

// PublishedValue is a value that devices have in one place.
type PublishedValue struct {
	Type ValueType
	// Plain is the value as people write it, see [Plain].
	Plain string
	// Devices is the number of devices that have it. Driver and Device are the
	// first of them.
	Devices int
	Driver  string
	Device  *resourceapi.Device
}

// maxTexts bounds the values that are compared with what an expression says.
const maxTexts = 100

// NewVocabulary is one without a word.
func NewVocabulary(nearest func(name string, names []string) string) *Vocabulary {
	return &Vocabulary{
		Nearest: nearest, drivers: map[string]bool{}, domains: map[string]bool{}, published: map[Reading]*published{},
		byName: map[string]*names{},
	}
}

// AddDriver adds a driver that may have no device.
func (w *Vocabulary) AddDriver(name string) { w.drivers[name] = true }

// Add adds what a device of a driver has.
func (w *Vocabulary) Add(driver string, device *resourceapi.Device) {
	w.devices++
	w.AddDriver(driver)
	known := w.byName[driver]
	if known == nil {
		known = &names{map[resourceapi.QualifiedName]*published{}, map[resourceapi.QualifiedName]*published{}}
		w.byName[driver] = known
	}
	for name, attribute := range device.Attributes {
		p := known.attributes[name]
		if p == nil {
			p = w.at(Attribute(name, driver), driver)
			known.attributes[name] = p
		}
		p.devices++
		if !sameValue(&p.attribute, &attribute) {
			p.attribute = attribute
			p.last = p.value(typeOf(attribute), Plain(attribute), driver, device)
		}
		p.last.Devices++
	}
	for name, capacity := range device.Capacity {
		p := known.capacities[name]
		if p == nil {
			p = w.at(Capacity(name, driver), driver)
			known.capacities[name] = p
		}
		p.devices++
		if p.devices == 1 || p.quantity != capacity.Value {
			p.quantity = capacity.Value
			p.last = p.value(TypeQuantity, capacity.Value.String(), driver, device)
		}
		p.last.Devices++
	}
}

// at is what devices, and now also those of a driver, have in a place.
func (w *Vocabulary) at(r Reading, driver string) *published {
	p := w.published[r]
	if p == nil {
		p = &published{types: map[ValueType]bool{}, drivers: map[string]bool{}, values: map[valueKey]*PublishedValue{}}
		w.published[r] = p
		w.domains[r.Domain] = true
	}
	p.drivers[driver] = true
	return p
}

// value is what is known about a value that a device has.
func (p *published) value(of ValueType, text, driver string, device *resourceapi.Device) *PublishedValue {
	key := valueKey{of, text}
	value := p.values[key]
	if value == nil {
		value = &PublishedValue{Type: of, Plain: text, Driver: driver, Device: device}
		p.values[key] = value
		p.types[of] = true
	}
	return value
}

// sameValue reports whether two attributes have one value in memory. Most that
// are equal do after loading.
func sameValue(a, b *resourceapi.DeviceAttribute) bool {
	if IsList(*a) || IsList(*b) {
		return false
	}
	return a.StringValue == b.StringValue && a.VersionValue == b.VersionValue && a.IntValue == b.IntValue && a.BoolValue == b.BoolValue &&
		(a.StringValue != nil || a.VersionValue != nil || a.IntValue != nil || a.BoolValue != nil)
}

// typeOf is the type of the value that CEL gets to see.
func typeOf(attribute resourceapi.DeviceAttribute) ValueType {
	switch {
	case IsList(attribute):
		return TypeList
	case attribute.IntValue != nil:
		return TypeInt
	case attribute.BoolValue != nil:
		return TypeBool
	case attribute.StringValue != nil:
		return TypeString
	default:
		return TypeVersion
	}
}

// Devices is the number of devices that were added.
func (w *Vocabulary) Devices() int { return w.devices }

// Count is the number of devices that have a value there.
func (w *Vocabulary) Count(r Reading) int {
	if p := w.published[r]; p != nil {
		return p.devices
	}
	return 0
}

// Drivers lists the drivers that have devices or pools.
func (w *Vocabulary) Drivers() []string { return slices.Sorted(maps.Keys(w.drivers)) }

// Strings lists the values that devices have in a place; it is not ok if
// there are other values than single strings, or too many to remember.
func (w *Vocabulary) Strings(r Reading) (values []string, ok bool) {
	p := w.published[r]
	if p == nil {
		return nil, true
	}
	if only, same := w.TypeOf(r); !same || only != TypeString || len(p.values) >= maxTexts {
		return nil, false
	}
	for key := range p.values {
		values = append(values, key.text)
	}
	return values, true
}

// Values lists the different values that devices have in a place, in no order.
func (w *Vocabulary) Values(r Reading) []*PublishedValue {
	p := w.published[r]
	if p == nil {
		return nil
	}
	return slices.Collect(maps.Values(p.values))
}

// DriversOf lists the drivers whose devices have a value there.
func (w *Vocabulary) DriversOf(r Reading) []string {
	p := w.published[r]
	if p == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.drivers))
}

// Types lists the types of the values that devices have there.
func (w *Vocabulary) Types(r Reading) []ValueType {
	p := w.published[r]
	if p == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.types))
}

// HasDomain reports whether a device has anything of a domain.
func (w *Vocabulary) HasDomain(domain string) bool { return w.domains[domain] }

// Readings lists the attributes, or the capacities, that devices have, by domain
// and name.
func (w *Vocabulary) Readings(kind string) []Reading {
	var list []Reading
	for r := range w.published {
		if r.Kind == kind {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b Reading) int { return strings.Compare(a.Domain+"/"+a.Name, b.Domain+"/"+b.Name) })
	return list
}

// TypeOf is the type of all values that devices have there; false if there are
// none, or of several types.
func (w *Vocabulary) TypeOf(r Reading) (ValueType, bool) {
	p := w.published[r]
	if p == nil || len(p.types) != 1 {
		return "", false
	}
	for only := range p.types {
		return only, true
	}
	return "", false
}

// all reports whether all values that devices have there are texts for which
// something holds.
func (w *Vocabulary) all(r Reading, holds func(text string) bool) bool {
	p := w.published[r]
	if p == nil || len(p.values) >= maxTexts {
		return false
	}
	for key := range p.values {
		if !holds(key.text) {
			return false
		}
	}
	return true
}

// NearestReading is what was probably meant by a value that no device has. It is not ok
// if some have it, or if nothing is near. The other kind of the same name comes
// first, then the same name in another domain, then a name that is close.
func (w *Vocabulary) NearestReading(r Reading) (nearest Reading, ok bool) {
	if r.Domain == "" || r.Whole || w.Count(r) > 0 {
		return Reading{}, false
	}
	if r.Name == "" {
		domain, near := w.nearDomain(r.Domain)
		return Reading{Kind: r.Kind, Domain: domain}, near
	}
	other := r
	if other.Kind = KindCapacity; r.Kind == KindCapacity {
		other.Kind = KindAttributes
	}
	if w.domains[r.Domain] {
		if w.Count(other) > 0 {
			return other, true
		}
		if near, found := w.nearIn(r); found {
			return near, true
		}
		if near, found := w.nearIn(other); found {
			return near, true
		}
	} else if domain, near := w.nearDomain(r.Domain); near {
		moved, movedOther := r, other
		moved.Domain, movedOther.Domain = domain, domain
		if w.Count(moved) > 0 {
			return moved, true
		}
		if w.Count(movedOther) > 0 {
			return movedOther, true
		}
		if closest, found := w.NearestReading(moved); found {
			return closest, true
		}
	}
	return w.elsewhere(r)
}

// nearIn finds a name that is close among those of the same kind and domain.
func (w *Vocabulary) nearIn(r Reading) (Reading, bool) {
	var names []string
	for _, have := range w.Readings(r.Kind) {
		if have.Domain == r.Domain {
			names = append(names, have.Name)
		}
	}
	r.Name = w.Nearest(r.Name, names)
	return r, r.Name != ""
}

// elsewhere finds the same name in another domain.
func (w *Vocabulary) elsewhere(r Reading) (Reading, bool) {
	for _, have := range w.Readings(r.Kind) {
		if have.Name == r.Name {
			return have, true
		}
	}
	return Reading{}, false
}

// nearDomain finds a domain that is close to one that no device has.
func (w *Vocabulary) nearDomain(domain string) (string, bool) {
	if w.domains[domain] {
		return "", false
	}
	near := w.Nearest(domain, slices.Sorted(maps.Keys(w.domains)))
	return near, near != ""
}
