// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Catalog has the published values of the devices of all pools. It is computed on demand
// and not safe for concurrent use.
type Catalog struct {
	facts     *cluster.Cluster
	selectors *selector.Evaluator
	// known has the words of all devices once they were asked for, ofClass the words of the
	// devices of a class.
	known   *selector.Vocabulary
	ofClass map[string]*selector.Vocabulary
	// typos has the answers of UnknownValue.
	typos map[*selector.Part]UnknownValue
	// unknown has the result of looking for places that drivers may not have measured.
	unknown map[selector.Reading]Unmeasured
}

// UnknownValue means that a selector compares with a value that no device has.
type UnknownValue struct {
	// Text says so, with the most similar value. It is empty if there is nothing to say.
	Text string
	// Driver is set if the value is a driver without devices.
	Driver string
}

// NewCatalog returns the catalog of the devices of a cluster. The evaluator, for the
// selectors of classes, remembers earlier results.
func NewCatalog(facts *cluster.Cluster, selectors *selector.Evaluator) *Catalog {
	return &Catalog{facts: facts, selectors: selectors, ofClass: map[string]*selector.Vocabulary{}, typos: map[*selector.Part]UnknownValue{}, unknown: map[selector.Reading]Unmeasured{}}
}

// devices visits all devices of all pools, with the driver of each.
func (c *Catalog) devices() iter.Seq2[string, *resourceapi.Device] {
	return func(yield func(string, *resourceapi.Device) bool) {
		for _, pool := range c.facts.Pools.All() {
			for _, list := range [][]*resourceapi.ResourceSlice{pool.Obsolete, pool.Slices} {
				for _, slice := range list {
					for i := range slice.Spec.Devices {
						if !yield(pool.Driver, &slice.Spec.Devices[i]) {
							return
						}
					}
				}
			}
		}
	}
}

// Words returns the words of all devices.
func (c *Catalog) Words() *selector.Vocabulary {
	if c.known == nil {
		c.known = selector.NewVocabulary(english.Typo)
		for _, pool := range c.facts.Pools.All() {
			c.known.AddDriver(pool.Driver)
		}
		for driver, device := range c.devices() {
			c.known.Add(driver, device)
		}
	}
	return c.known
}

// WordsOf returns the words of the devices of a class: the words of all devices if it has
// none.
func (c *Catalog) WordsOf(ctx context.Context, class *resourceapi.DeviceClass) *selector.Vocabulary {
	if class == nil {
		return c.Words()
	}
	if words := c.ofClass[class.Name]; words != nil {
		return words
	}
	words := selector.NewVocabulary(english.Typo)
	for driver, device := range c.devices() {
		if c.InClass(ctx, class, driver, device) {
			words.Add(driver, device)
		}
	}
	if words.OfClass = true; words.Devices() == 0 {
		words = c.Words()
	}
	c.ofClass[class.Name] = words
	return words
}

// InClass reports whether the selectors of a class select a device.
func (c *Catalog) InClass(ctx context.Context, class *resourceapi.DeviceClass, driver string, device *resourceapi.Device) bool {
	for _, s := range class.Spec.Selectors {
		if s.CEL == nil || !c.selectors.Evaluate(ctx, c.selectors.Compile(s.CEL.Expression), driver, device).Matches {
			return false
		}
	}
	return true
}

// Attributes returns the names of all attributes of the devices.
func (c *Catalog) Attributes() []string {
	var names []string
	for _, have := range c.Words().Readings(selector.KindAttributes) {
		names = append(names, have.Domain+"/"+have.Name)
	}
	return names
}

func spread(words *selector.Vocabulary, r selector.Reading) string {
	return english.OnDevices(words.Count(r), words.Devices())
}

// misnamed suggests a published name for a name that no device has. It is empty if some
// device has it, or if none is similar.
func misnamed(words *selector.Vocabulary, r selector.Reading) string {
	nearest, ok := words.NearestReading(r)
	switch {
	case !ok:
		return ""
	case r.Name == "":
		return english.Suggestion(nearest.Domain)
	case nearest.Kind != r.Kind:
		return english.Suggestion(nearest.String())
	case nearest.Domain == r.Domain:
		return english.Suggestion(nearest.Name)
	case nearest.Name == r.Name && english.Typo(r.Domain, []string{nearest.Domain}) != "":
		return english.Suggestion(nearest.Domain)
	default:
		return english.Suggestion(nearest.String())
	}
}

// overBudget says that an evaluation was stopped, with its cost in the worst case.
func overBudget(worst uint64) string {
	text := fmt.Sprintf("it costs more than the limit of %s and is broken off", english.Thousands(uint64(resourceapi.CELSelectorExpressionMaxCost)))
	if worst > 0 {
		text += "; in the worst case it costs " + CostText(worst)
	}
	return text
}

// UnknownValue finds out whether a part of a selector compares with something that
// no device has.
func (c *Catalog) UnknownValue(part *selector.Part) UnknownValue {
	if typo, known := c.typos[part]; known {
		return typo
	}
	typo := UnknownValue{Text: c.UnmeasuredBy(part).String()}
	if r, value, ok := part.Equality(); ok && typo.Text == "" {
		if c.has(r, value) {
			c.typos[part] = typo
			return typo
		}
		typo.Text = c.Unusual(r, value)
		if typo.Text != "" && r.Kind == selector.KindDriver {
			typo.Driver = value
		}
	}
	if typo.Text == "" {
		typo.Text = c.mismatch(part)
	}
	for _, r := range part.Reads {
		if typo.Text != "" {
			break
		}
		if hint := misnamed(c.Words(), r); hint != "" {
			typo.Text = r.Noun() + " " + spread(c.Words(), r) + hint
		}
	}
	c.typos[part] = typo
	return typo
}

// has reports whether some device is of a driver, or has a text in an attribute. Mostly an
// early device has, so that not all words are needed.
func (c *Catalog) has(r selector.Reading, value string) bool {
	for driver, device := range c.devices() {
		if r.Kind == selector.KindDriver {
			if driver == value {
				return true
			}
			continue
		}
		if attribute, ok := selector.Lookup(device.Attributes, r.Domain, r.Name, driver); ok && attribute.StringValue != nil && *attribute.StringValue == value {
			return true
		}
	}
	return false
}

// mismatch says that a part compares a value with another type than all devices have there.
// It is empty if it does not.
func (c *Catalog) mismatch(part *selector.Part) string {
	found, ok := c.Words().Mismatch(part)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s is %s on all devices that have it, and is compared with %s",
		found.Read.Noun(), typeText(found.Has), typeText(found.ComparedWith))
}

// typeText names a type with its article.
func typeText(of selector.ValueType) string {
	switch of {
	case selector.TypeInt:
		return "an int"
	case selector.TypeBool:
		return "a bool"
	case selector.TypeString:
		return "a string"
	case selector.TypeVersion:
		return "a version"
	case selector.TypeQuantity:
		return "a quantity"
	case selector.TypeList:
		return "a list"
	default:
		return string(of)
	}
}

// maxNames limits how many existing values are named instead.
const maxNames = 10

// strings returns the values of an attribute that are strings.
func (c *Catalog) strings(r selector.Reading) []string {
	if known, ok := c.Words().Strings(r); ok {
		return known
	}
	values := map[string]bool{}
	for driver, device := range c.devices() {
		if attribute, ok := selector.Lookup(device.Attributes, r.Domain, r.Name, driver); ok && attribute.StringValue != nil {
			values[*attribute.StringValue] = true
		}
	}
	return slices.Collect(maps.Keys(values))
}

// Unusual describes a value that no device has there.
func (c *Catalog) Unusual(r selector.Reading, value string) string {
	if r.Kind == selector.KindDriver {
		drivers := c.Words().Drivers()
		if slices.Contains(drivers, value) {
			return ""
		}
		return "no device is of driver " + value + english.DidYouMean(value, drivers)
	}
	values := c.strings(r)
	if len(values) == 0 || slices.Contains(values, value) {
		return ""
	}
	sorted := slices.SortedFunc(slices.Values(values), english.CompareNames)
	text := fmt.Sprintf("no device has %s %s", r.Short(), strconv.Quote(value))
	for _, other := range sorted {
		if english.Typo(value, []string{other}) != "" {
			return text + fmt.Sprintf("; did you mean %s?", strconv.Quote(other))
		}
	}
	if len(sorted) <= MaxTexts {
		// Known typos are reported with the selector.
		return text
	}
	for i := range sorted {
		sorted[i] = strconv.Quote(sorted[i])
	}
	return text + "; there are " + english.Sample(sorted, maxNames)
}

// DistinctValues says how many different values an attribute has: "only 1 distinct value
// exists".
func DistinctValues(n int) string {
	if n == 1 {
		return "only 1 distinct value exists"
	}
	return fmt.Sprintf("only %d distinct values exist", n)
}

// ValueTexts writes the values of an attribute so that two texts are equal exactly if the
// values are equal for a constraint: the string "1" is not the number 1.
func ValueTexts(a resourceapi.DeviceAttribute) []string {
	var texts []string
	add := func(kind string, value any) { texts = append(texts, fmt.Sprintf("%s\x00%v", kind, value)) }
	switch {
	case len(a.IntValues) > 0:
		for _, v := range a.IntValues {
			add("int", v)
		}
	case len(a.BoolValues) > 0:
		for _, v := range a.BoolValues {
			add("bool", v)
		}
	case len(a.StringValues) > 0:
		for _, v := range a.StringValues {
			add("string", v)
		}
	case len(a.VersionValues) > 0:
		for _, v := range a.VersionValues {
			add("version", v)
		}
	case a.IntValue != nil:
		add("int", *a.IntValue)
	case a.BoolValue != nil:
		add("bool", *a.BoolValue)
	case a.StringValue != nil:
		add("string", *a.StringValue)
	case a.VersionValue != nil:
		add("version", *a.VersionValue)
	}
	return texts
}

// MaxTexts is how many different facts a message names.
const MaxTexts = 3

// CostText writes the cost of an expression.
func CostText(cost uint64) string {
	if cost == math.MaxUint64 {
		return "more than can be told"
	}
	return english.Thousands(cost)
}

// Unmeasured has the drivers that publish 0 or an empty text in one place on all their
// devices: they have not measured it, and nothing is known about the devices.
type Unmeasured struct {
	Read    selector.Reading
	Drivers []string
	value   string
}

// String says so; it is empty if there are no such drivers.
func (u Unmeasured) String() string {
	if len(u.Drivers) == 0 {
		return ""
	}
	n := len(u.Drivers)
	return fmt.Sprintf("%s %s %s %s %s on all %s devices: it was not measured",
		english.Plural(n, "driver", "drivers"), english.JoinAnd(u.Drivers), english.Plural(n, "publishes", "publish"), u.Read.Short(), u.value, english.Plural(n, "its", "their"))
}

// UnmeasuredBy returns the drivers that have not measured the value in a part of a
// selector.
func (c *Catalog) UnmeasuredBy(part *selector.Part) Unmeasured {
	if r, ok := part.Amount(); ok {
		return c.unmeasured(r)
	}
	return Unmeasured{}
}

func (c *Catalog) unmeasured(r selector.Reading) Unmeasured {
	if known, ok := c.unknown[r]; ok {
		return known
	}
	u, measured := Unmeasured{Read: r}, map[string]bool{}
	for driver, device := range c.devices() {
		if measured[driver] {
			continue
		}
		nothing, has := r.Nothing(driver, device)
		switch {
		case !has:
		case !nothing:
			measured[driver] = true
		case !slices.Contains(u.Drivers, driver):
			u.Drivers = append(u.Drivers, driver)
			if u.value, _ = r.Value(driver, device); strings.Trim(u.value, `"`) == "" {
				u.value = strconv.Quote("")
			}
		}
	}
	u.Drivers = slices.DeleteFunc(u.Drivers, func(driver string) bool { return measured[driver] })
	slices.Sort(u.Drivers)
	c.unknown[r] = u
	return u
}

// MeantClass suggests a class for the name of a missing one, empty if there is none. The
// names are similar, and all devices of the class are of one driver: the driver in the
// name, if it has one with devices.
func (c *Catalog) MeantClass(ctx context.Context, name string, classes []*resourceapi.DeviceClass) string {
	names := make([]string, 0, len(classes))
	for _, class := range classes {
		names = append(names, class.Name)
	}
	meant := english.Typo(name, names)
	if meant == "" {
		return ""
	}
	drivers := c.DriversOf(ctx, classes[slices.Index(names, meant)])
	expected := c.DriverOfClass(name)
	if len(drivers) > 1 || len(drivers) == 1 && slices.Contains(c.Words().Drivers(), expected) && drivers[0] != expected {
		return ""
	}
	return meant
}

// DriversOf lists the drivers of a class's devices.
func (c *Catalog) DriversOf(ctx context.Context, class *resourceapi.DeviceClass) []string {
	var drivers []string
	for driver, device := range c.devices() {
		if !slices.Contains(drivers, driver) && c.InClass(ctx, class, driver, device) {
			drivers = append(drivers, driver)
		}
	}
	slices.Sort(drivers)
	return drivers
}

// DriverOfClass returns the driver whose installation creates a class of that name, empty
// if that is not known. Drivers call classes by their own name, with words before it for a
// part of their devices. The classes of NVIDIA's driver are in its Helm chart.
func (c *Catalog) DriverOfClass(name string) string {
	for _, driver := range c.Words().Drivers() {
		if name == driver || strings.HasSuffix(name, "."+driver) {
			return driver
		}
	}
	part, ofNVIDIA := strings.CutSuffix(name, ".nvidia.com")
	switch {
	case ofNVIDIA && strings.HasPrefix(part, "compute-domain"):
		return snapshot.ComputeDomainDriver
	case ofNVIDIA && (part == "mig" || strings.HasSuffix(part, ".gpu")):
		return "gpu.nvidia.com"
	case strings.Count(name, ".") > 1:
		return name
	default:
		return ""
	}
}

// ClassMissing returns the advice to an administrator about a missing class.
func (c *Catalog) ClassMissing(name string) string {
	driver := c.DriverOfClass(name)
	switch {
	case driver == "":
		return fmt.Sprintf("create DeviceClass %s: its name does not tell which driver's installation does", name)
	case driver == name && slices.Contains(c.Words().Drivers(), driver):
		return fmt.Sprintf("create DeviceClass %s, as the installation of driver %s does, with the selector device.driver == %q", name, driver, driver)
	case slices.Contains(c.Words().Drivers(), driver):
		return fmt.Sprintf("create DeviceClass %s, as the installation of driver %s does, which has devices already", name, driver)
	default:
		return fmt.Sprintf("install driver %s, or enable it in its installation: that creates DeviceClass %s", driver, name)
	}
}
