// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"iter"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ValueType is the type of a device's value.
type ValueType string

// Types of attributes and capacities.
const (
	TypeInt      ValueType = "int"
	TypeBool     ValueType = "bool"
	TypeString   ValueType = "string"
	TypeVersion  ValueType = "version"
	TypeQuantity ValueType = "quantity"
	TypeList     ValueType = "list"
)

// Vocabulary has the values that devices publish, which selectors can sensibly read. Add
// fills it; it is not safe for concurrent use. The values of one reading are looked up on
// demand, and all readings are only listed for callers that need them: most expressions are
// right, and read two or three.
type Vocabulary struct {
	// Nearest returns the most similar name, or nothing if none is close.
	Nearest func(name string, names []string) string
	// OfClass is set if all devices are of the class in question: a name in the domain of
	// another driver is then meant to be theirs.
	OfClass bool

	drivers map[string]bool
	devices []devicesOfDriver
	// published has the places that were asked for so far, nil if devices have nothing
	// there, or all of them once they are listed.
	published map[Reading]*published
	// domains are the domains of all readings, nil until these are listed.
	domains map[string]bool
}

// devicesOfDriver are devices of one driver that were added after each other.
type devicesOfDriver struct {
	driver  string
	devices []*resourceapi.Device
}

// published has the devices' values of one reading.
type published struct {
	devices int
	types   map[ValueType]bool
	drivers map[string]bool
	values  map[valueKey]*PublishedValue
	// driver, attribute and quantity are the last ones added: the next device mostly has
	// the same.
	driver    string
	attribute resourceapi.DeviceAttribute
	quantity  resource.Quantity
	last      *PublishedValue
}

// valueKey identifies a value: the string "1" is not the number 1.
type valueKey struct {
	of   ValueType
	text string
}

// PublishedValue is a value of some devices for one reading.
type PublishedValue struct {
	Type ValueType
	// Plain is the value for people, see [Plain].
	Plain string
	// Devices is the number of devices that have it. Driver and Device are the
	// first of them.
	Devices int
	Driver  string
	Device  *resourceapi.Device
}

// maxTexts bounds the values that are compared with an expression's.
const maxTexts = 100

// NewVocabulary returns an empty vocabulary.
func NewVocabulary(nearest func(name string, names []string) string) *Vocabulary {
	return &Vocabulary{Nearest: nearest, drivers: map[string]bool{}, published: map[Reading]*published{}}
}

// AddDriver adds a driver that may have no device.
func (w *Vocabulary) AddDriver(name string) { w.drivers[name] = true }

// Add adds the values of a device of a driver.
func (w *Vocabulary) Add(driver string, device *resourceapi.Device) {
	if len(w.published) > 0 || w.domains != nil {
		w.published, w.domains = map[Reading]*published{}, nil
	}
	if n := len(w.devices); n == 0 || w.devices[n-1].driver != driver {
		w.AddDriver(driver)
		w.devices = append(w.devices, devicesOfDriver{driver: driver})
	}
	of := &w.devices[len(w.devices)-1]
	of.devices = append(of.devices, device)
}

// added visits the devices, with the driver of each.
func (w *Vocabulary) added() iter.Seq2[string, *resourceapi.Device] {
	return func(yield func(string, *resourceapi.Device) bool) {
		for _, of := range w.devices {
			for _, device := range of.devices {
				if !yield(of.driver, device) {
					return
				}
			}
		}
	}
}

// at returns the devices' values of a reading, nil if there are none.
func (w *Vocabulary) at(r Reading) *published {
	p, known := w.published[r]
	if known || w.domains != nil {
		return p
	}
	if r.Name != "" && !r.Whole && (r.Kind == KindAttributes || r.Kind == KindCapacity) {
		p = w.lookAt(r)
	}
	w.published[r] = p
	return p
}

// lookAt collects the devices' values of one reading.
func (w *Vocabulary) lookAt(r Reading) *published {
	var p *published
	qualified := resourceapi.QualifiedName(r.Domain + "/" + r.Name)
	for driver, device := range w.added() {
		if r.Kind == KindAttributes {
			if attribute, ok := lookup(device.Attributes, qualified, r.Domain, r.Name, driver); ok {
				p = p.orNew()
				p.addAttribute(&attribute, driver, device)
			}
		} else if capacity, ok := lookup(device.Capacity, qualified, r.Domain, r.Name, driver); ok {
			p = p.orNew()
			p.addQuantity(capacity.Value, driver, device)
		}
	}
	return p
}

// list lists the readings of all devices.
func (w *Vocabulary) list() {
	if w.domains != nil {
		return
	}
	w.published, w.domains = map[Reading]*published{}, map[string]bool{}
	place := func(r Reading) *published {
		p := w.published[r].orNew()
		w.published[r] = p
		w.domains[r.Domain] = true
		return p
	}
	// The readings are also listed by driver and name, as devices have them.
	type names struct {
		attributes, capacities map[resourceapi.QualifiedName]*published
	}
	byDriver := map[string]*names{}
	for driver, device := range w.added() {
		known := byDriver[driver]
		if known == nil {
			known = &names{map[resourceapi.QualifiedName]*published{}, map[resourceapi.QualifiedName]*published{}}
			byDriver[driver] = known
		}
		for name, attribute := range device.Attributes {
			p := known.attributes[name]
			if p == nil {
				p = place(Attribute(name, driver))
				known.attributes[name] = p
			}
			p.addAttribute(&attribute, driver, device)
		}
		for name, capacity := range device.Capacity {
			p := known.capacities[name]
			if p == nil {
				p = place(Capacity(name, driver))
				known.capacities[name] = p
			}
			p.addQuantity(capacity.Value, driver, device)
		}
	}
}

// orNew returns p, or a new value for the first device.
func (p *published) orNew() *published {
	if p != nil {
		return p
	}
	return &published{types: map[ValueType]bool{}, drivers: map[string]bool{}, values: map[valueKey]*PublishedValue{}}
}

func (p *published) addAttribute(attribute *resourceapi.DeviceAttribute, driver string, device *resourceapi.Device) {
	p.devices++
	if !sameValue(&p.attribute, attribute) {
		p.attribute = *attribute
		p.last = p.value(typeOf(*attribute), Plain(*attribute), driver, device)
	}
	p.count(driver)
}

func (p *published) addQuantity(quantity resource.Quantity, driver string, device *resourceapi.Device) {
	p.devices++
	if p.devices == 1 || p.quantity != quantity {
		p.quantity = quantity
		p.last = p.value(TypeQuantity, quantity.String(), driver, device)
	}
	p.count(driver)
}

// count counts a device of a driver with the last value.
func (p *published) count(driver string) {
	p.last.Devices++
	if p.driver != driver {
		p.driver = driver
		p.drivers[driver] = true
	}
}

// value returns the record of a device's value.
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

// sameValue reports whether two attributes share one value in memory. Most equal ones do
// after loading.
func sameValue(a, b *resourceapi.DeviceAttribute) bool {
	if IsList(*a) || IsList(*b) {
		return false
	}
	return a.StringValue == b.StringValue && a.VersionValue == b.VersionValue && a.IntValue == b.IntValue && a.BoolValue == b.BoolValue &&
		(a.StringValue != nil || a.VersionValue != nil || a.IntValue != nil || a.BoolValue != nil)
}

// typeOf returns the type of the value that CEL sees.
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

// Devices returns the number of devices that were added.
func (w *Vocabulary) Devices() int {
	n := 0
	for _, of := range w.devices {
		n += len(of.devices)
	}
	return n
}

// Count returns the number of devices that have a value there.
func (w *Vocabulary) Count(r Reading) int {
	if p := w.at(r); p != nil {
		return p.devices
	}
	return 0
}

// Drivers lists the drivers that have devices or pools.
func (w *Vocabulary) Drivers() []string { return slices.Sorted(maps.Keys(w.drivers)) }

// Strings lists the devices' values of a reading; it is not ok if there are other values
// than single strings, or too many to remember.
func (w *Vocabulary) Strings(r Reading) (values []string, ok bool) {
	p := w.at(r)
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

// Values lists the devices' different values of a reading, in no order.
func (w *Vocabulary) Values(r Reading) []*PublishedValue {
	p := w.at(r)
	if p == nil {
		return nil
	}
	return slices.Collect(maps.Values(p.values))
}

// DriversOf lists the drivers whose devices have a value there.
func (w *Vocabulary) DriversOf(r Reading) []string {
	p := w.at(r)
	if p == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.drivers))
}

// Types lists the types of the values that devices have there.
func (w *Vocabulary) Types(r Reading) []ValueType {
	p := w.at(r)
	if p == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.types))
}

// HasDomain reports whether a device has anything of a domain.
func (w *Vocabulary) HasDomain(domain string) bool {
	if w.domains != nil {
		return w.domains[domain]
	}
	for driver, device := range w.added() {
		if hasDomain(device.Attributes, domain, driver) || hasDomain(device.Capacity, domain, driver) {
			return true
		}
	}
	return false
}

// Readings lists the attributes, or the capacities, that devices have, by domain
// and name.
func (w *Vocabulary) Readings(kind string) []Reading {
	w.list()
	var list []Reading
	for r := range w.published {
		if r.Kind == kind {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b Reading) int { return strings.Compare(a.Domain+"/"+a.Name, b.Domain+"/"+b.Name) })
	return list
}

// TypeOf returns the type of all values that devices have there; false if there are none,
// or of several types.
func (w *Vocabulary) TypeOf(r Reading) (ValueType, bool) {
	p := w.at(r)
	if p == nil || len(p.types) != 1 {
		return "", false
	}
	for only := range p.types {
		return only, true
	}
	return "", false
}

// all reports whether all devices' values of a reading are texts for which holds is true.
func (w *Vocabulary) all(r Reading, holds func(text string) bool) bool {
	p := w.at(r)
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

// NearestReading suggests a reading similar to a reading that no device has. It is not ok
// if some have it, or if nothing is near. The other kind of the same name comes first, then
// the same name in another domain, then a similar name.
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
	if w.HasDomain(r.Domain) {
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

// nearIn finds a similar name of the same kind and domain.
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

// elsewhere finds the same name in another domain. If devices are of several classes, that
// is the domain of Kubernetes, or one of which the other domain is a part.
func (w *Vocabulary) elsewhere(r Reading) (Reading, bool) {
	for _, have := range w.Readings(r.Kind) {
		if have.Name == r.Name && (w.OfClass || have.Domain == kubernetesDomain ||
			strings.HasSuffix(have.Domain, "."+r.Domain) || strings.HasSuffix(r.Domain, "."+have.Domain)) {
			return have, true
		}
	}
	return Reading{}, false
}

// kubernetesDomain is the domain of attributes that Kubernetes defines for all drivers.
const kubernetesDomain = "resource.kubernetes.io"

// nearDomain finds a domain similar to a domain that no device has.
func (w *Vocabulary) nearDomain(domain string) (string, bool) {
	w.list()
	if w.domains[domain] {
		return "", false
	}
	near := w.Nearest(domain, slices.Sorted(maps.Keys(w.domains)))
	return near, near != ""
}
