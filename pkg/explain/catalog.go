// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
)

// catalog knows what the devices of all pools publish. It is made when it is
// needed for the first time. Not safe for concurrent use.
type catalog struct {
	alloc   *allocator.Allocator
	devices int
	// having counts devices by the single values that they have.
	having map[reading]int
	// domains counts values.
	domains tally
}

func newCatalog(alloc *allocator.Allocator) *catalog { return &catalog{alloc: alloc} }

// each visits all devices of all pools.
func (c *catalog) each(visit func(driver string, device *resourceapi.Device)) {
	for _, pool := range c.alloc.Pools() {
		for _, list := range [][]*resourceapi.ResourceSlice{pool.Obsolete, pool.Slices} {
			for _, slice := range list {
				for i := range slice.Spec.Devices {
					visit(pool.Driver, &slice.Spec.Devices[i])
				}
			}
		}
	}
}

func (c *catalog) fill() {
	if c.having != nil {
		return
	}
	c.having, c.domains = map[reading]int{}, tally{}
	c.each(func(driver string, device *resourceapi.Device) {
		c.devices++
		for qualified := range device.Attributes {
			c.having[unqualified("attributes", qualified, driver)]++
		}
		for qualified := range device.Capacity {
			c.having[unqualified("capacity", qualified, driver)]++
		}
	})
	for r, count := range c.having {
		c.domains[r.domain] += count
	}
}

func unqualified(kind string, name resourceapi.QualifiedName, driver string) reading {
	domain, id, found := strings.Cut(string(name), "/")
	if !found {
		domain, id = driver, string(name)
	}
	return reading{kind: kind, domain: domain, name: id}
}

// drivers lists the drivers of all pools.
func (c *catalog) drivers() []string {
	names := map[string]bool{}
	for _, pool := range c.alloc.Pools() {
		names[pool.Driver] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// spread says how many devices have a value: "exists on 3 of 10,245 devices of
// all pools".
func (c *catalog) spread(r reading) string {
	c.fill()
	switch n := c.having[r]; {
	case n > 0:
		return fmt.Sprintf("exists on %s of %s devices of all pools", thousands(n), thousands(c.devices))
	case c.devices == 1:
		return "does not exist on the only device"
	default:
		return fmt.Sprintf("exists on none of the %s devices of all pools", thousands(c.devices))
	}
}

// misnamed suggests what was meant by a value that no device has. It is empty if
// some have it, or if nothing is near.
func (c *catalog) misnamed(r reading) string {
	c.fill()
	if r.domain == "" || r.whole || c.having[r] > 0 {
		return ""
	}
	if c.domains[r.domain] == 0 {
		return didYouMean(r.domain, slices.Sorted(maps.Keys(c.domains)))
	}
	if r.name == "" {
		return ""
	}
	other := r
	other.kind = "capacity"
	if r.kind == "capacity" {
		other.kind = "attributes"
	}
	if c.having[other] > 0 {
		return fmt.Sprintf("; did you mean %s?", other)
	}
	var names, elsewhere []string
	for have := range c.having {
		switch {
		case have.kind == r.kind && have.domain == r.domain:
			names = append(names, have.name)
		case have.kind == r.kind && have.name == r.name:
			elsewhere = append(elsewhere, have.String())
		}
	}
	slices.Sort(names)
	slices.Sort(elsewhere)
	if len(elsewhere) > 0 {
		return fmt.Sprintf("; did you mean %s?", elsewhere[0])
	}
	return didYouMean(r.name, names)
}

// noun names what a reading reads: "attribute memory (domain gpu.example.com)".
func (r reading) noun() string {
	kind := strings.TrimSuffix(r.kind, "s")
	switch {
	case r.domain == "":
		return kind
	case r.name == "":
		return "domain " + r.domain
	default:
		return fmt.Sprintf("%s %s (domain %s)", kind, r.name, r.domain)
	}
}

// failure says why a selector fails on a device, and what it is that the device
// lacks, if that is the reason.
func (c *checks) failure(sel *selector, result *selection) (text string, lacks reading) {
	text = oneLine(result.err)
	if strings.Contains(text, "actual cost limit exceeded") {
		return c.selectors.overBudget(sel), reading{}
	}
	_, key, found := strings.Cut(text, "no such key: ")
	if !found {
		return text, reading{}
	}
	for _, r := range result.missing {
		if r.domain == "" || r.name != key {
			// A map that the expression itself has can lack a key, too.
			continue
		}
		text += fmt.Sprintf("; %s %s", r.noun(), c.catalog.spread(r))
		if c.catalog.having[r] > 0 {
			return text, r
		}
		if c.catalog.domains[r.domain] == 0 {
			text += ", and nothing else of that domain does"
		}
		return text + c.catalog.misnamed(r), reading{}
	}
	return text, reading{}
}

// lacking says after the number of devices that have a value which do not.
func (g *rejectionGroup) lacking(class string) string {
	var drivers []string
	own := false
	for _, name := range g.drivers.sorted() {
		drivers = append(drivers, fmt.Sprintf("%d of driver %s", g.drivers[name], name))
		own = own || name == g.lacks.domain
	}
	text := ", not on " + joinAnd(drivers)
	if !own && class != "" {
		// The expression is written for devices of another driver.
		text += ", which class " + class + " does not exclude"
	}
	return text
}

// overBudget says that an evaluation was broken off.
func (s *selectors) overBudget(sel *selector) string {
	text := fmt.Sprintf("it costs more than the limit of %s and is broken off", thousands(uint64(resourceapi.CELSelectorExpressionMaxCost)))
	if cost := s.cost(sel); cost > 0 {
		text += "; in the worst case it costs " + costText(cost)
	}
	return text
}

// unheardOf says that a conjunct compares with something that no device has, and
// what was probably meant. It is empty if there is nothing to say.
func (c *checks) unheardOf(conjunct *conjunct) string {
	if conjunct.typo != nil {
		return *conjunct.typo
	}
	typo := ""
	if r, value, ok := equality(conjunct.expr); ok {
		typo = c.catalog.unusual(r, value)
	}
	for _, r := range conjunct.reads {
		if typo != "" {
			break
		}
		if hint := c.catalog.misnamed(r); hint != "" {
			typo = fmt.Sprintf("%s %s%s", r.noun(), c.catalog.spread(r), hint)
		}
	}
	conjunct.typo = &typo
	return typo
}

// unusual tells about a value that no device has there.
func (c *catalog) unusual(r reading, value string) string {
	if r.kind == "driver" {
		drivers := c.drivers()
		if slices.Contains(drivers, value) {
			return ""
		}
		return noneOf(value, drivers)
	}
	values := map[string]bool{}
	c.each(func(driver string, device *resourceapi.Device) {
		if attribute, ok := qualified(device.Attributes, r.domain, r.name, driver); ok && attribute.StringValue != nil {
			values[*attribute.StringValue] = true
		}
	})
	if values[value] {
		return ""
	}
	if len(values) == 0 {
		return ""
	}
	sorted := slices.SortedFunc(maps.Keys(values), naturalCompare)
	text := fmt.Sprintf("no device has %s %s", r.short(), strconv.Quote(value))
	for _, other := range sorted {
		if misspelled(value, other) {
			return text + fmt.Sprintf("; did you mean %s?", strconv.Quote(other))
		}
	}
	if len(sorted) <= maxTexts {
		// Those that were found are told with the selector.
		return text
	}
	for i := range sorted {
		sorted[i] = strconv.Quote(sorted[i])
	}
	return text + "; there are " + sample(sorted, maxNames)
}

// misspelled says whether a value is another one with a slip of the pen. Names of
// products differ in few letters, too: only long words without digits count,
// and upper case.
func misspelled(value, other string) bool {
	isBreak := func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }
	words, others := strings.FieldsFunc(value, isBreak), strings.FieldsFunc(other, isBreak)
	if len(words) != len(others) {
		return false
	}
	for i, word := range words {
		const long = 5
		same := strings.EqualFold(word, others[i])
		if !same && (len(word) < long || strings.ContainsFunc(word+others[i], unicode.IsDigit) || letters(word, others[i]) > 2) {
			return false
		}
	}
	return len(words) > 0
}

// noneOf says of a driver that it has no devices, unlike others.
func noneOf(driver string, drivers []string) string {
	return "no device is of driver " + driver + didYouMean(driver, drivers)
}

// equality recognizes the comparison of a value with a text.
func equality(e ast.Expr) (r reading, text string, ok bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Equals {
		return reading{}, "", false
	}
	left, right := e.AsCall().Args()[0], e.AsCall().Args()[1]
	if _, isText := literalText(left); isText {
		left, right = right, left
	}
	text, isText := literalText(right)
	r, isReading := readingOf(left)
	return r, text, isText && isReading && !isTest(left) && (r.kind == "driver" || r.kind == "attributes" && r.name != "")
}
