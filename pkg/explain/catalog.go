// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
)

// catalog knows what the devices of all pools publish. It is made when it is
// needed for the first time. Not safe for concurrent use.
type catalog struct {
	alloc   *allocator.Allocator
	devices int
	// having counts devices by the single values that they have.
	having map[selector.Reading]int
	// domains counts values.
	domains tally
	// typos has the answers of unheardOf.
	typos map[*selector.Part]string
}

func newCatalog(alloc *allocator.Allocator) *catalog {
	return &catalog{alloc: alloc, typos: map[*selector.Part]string{}}
}

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
	c.having, c.domains = map[selector.Reading]int{}, tally{}
	c.each(func(driver string, device *resourceapi.Device) {
		c.devices++
		for name := range device.Attributes {
			c.having[selector.Attribute(name, driver)]++
		}
		for name := range device.Capacity {
			c.having[selector.Capacity(name, driver)]++
		}
	})
	for r, count := range c.having {
		c.domains[r.Domain] += count
	}
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
func (c *catalog) spread(r selector.Reading) string {
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
func (c *catalog) misnamed(r selector.Reading) string {
	c.fill()
	if r.Domain == "" || r.Whole || c.having[r] > 0 {
		return ""
	}
	if c.domains[r.Domain] == 0 {
		return didYouMean(r.Domain, slices.Sorted(maps.Keys(c.domains)))
	}
	if r.Name == "" {
		return ""
	}
	other := r
	other.Kind = selector.KindCapacity
	if r.Kind == selector.KindCapacity {
		other.Kind = selector.KindAttributes
	}
	if c.having[other] > 0 {
		return fmt.Sprintf("; did you mean %s?", other)
	}
	var names, elsewhere []string
	for have := range c.having {
		switch {
		case have.Kind == r.Kind && have.Domain == r.Domain:
			names = append(names, have.Name)
		case have.Kind == r.Kind && have.Name == r.Name:
			elsewhere = append(elsewhere, have.String())
		}
	}
	slices.Sort(names)
	slices.Sort(elsewhere)
	if len(elsewhere) > 0 {
		return fmt.Sprintf("; did you mean %s?", elsewhere[0])
	}
	return didYouMean(r.Name, names)
}

// failure says why a selector fails on a device, and what it is that the device
// lacks, if that is the reason.
func (c *checks) failure(ctx context.Context, sel *selector.Selector, result *selector.Result) (text string, lacks selector.Reading) {
	text = oneLine(result.Err)
	if strings.Contains(text, "actual cost limit exceeded") {
		return overBudget(c.selectors.Cost(sel)), selector.Reading{}
	}
	_, key, found := strings.Cut(text, "no such key: ")
	if !found {
		return text, selector.Reading{}
	}
	for _, r := range result.Detail(ctx).Missing {
		if r.Domain == "" || r.Name != key {
			// A map that the expression itself has can lack a key, too.
			continue
		}
		text += fmt.Sprintf("; %s %s", r.Noun(), c.catalog.spread(r))
		if c.catalog.having[r] > 0 {
			return text, r
		}
		if c.catalog.domains[r.Domain] == 0 {
			text += ", and nothing else of that domain does"
		}
		return text + c.catalog.misnamed(r), selector.Reading{}
	}
	return text, selector.Reading{}
}

// lacking says after the number of devices that have a value which do not.
func (g *rejectionGroup) lacking(class string) string {
	var drivers []string
	own := false
	for _, name := range g.drivers.sorted() {
		drivers = append(drivers, fmt.Sprintf("%d of driver %s", g.drivers[name], name))
		own = own || name == g.lacks.Domain
	}
	text := ", not on " + joinAnd(drivers)
	if !own && class != "" {
		// The expression is written for devices of another driver.
		text += ", which class " + class + " does not exclude"
	}
	return text
}

// overBudget says that an evaluation was broken off, and what it costs at worst.
func overBudget(worst uint64) string {
	text := fmt.Sprintf("it costs more than the limit of %s and is broken off", thousands(uint64(resourceapi.CELSelectorExpressionMaxCost)))
	if worst > 0 {
		text += "; in the worst case it costs " + costText(worst)
	}
	return text
}

// unheardOf says that a part of a selector compares with something that no device
// has, and what was probably meant. It is empty if there is nothing to say.
func (c *catalog) unheardOf(part *selector.Part) string {
	if typo, known := c.typos[part]; known {
		return typo
	}
	typo := ""
	if r, value, ok := part.Equality(); ok {
		typo = c.unusual(r, value)
	}
	for _, r := range part.Reads {
		if typo != "" {
			break
		}
		if hint := c.misnamed(r); hint != "" {
			typo = fmt.Sprintf("%s %s%s", r.Noun(), c.spread(r), hint)
		}
	}
	c.typos[part] = typo
	return typo
}

// maxNames is how many values are named that there are instead.
const maxNames = 10

// unusual tells about a value that no device has there.
func (c *catalog) unusual(r selector.Reading, value string) string {
	if r.Kind == selector.KindDriver {
		drivers := c.drivers()
		if slices.Contains(drivers, value) {
			return ""
		}
		return noneOf(value, drivers)
	}
	values := map[string]bool{}
	c.each(func(driver string, device *resourceapi.Device) {
		if attribute, ok := selector.Lookup(device.Attributes, r.Domain, r.Name, driver); ok && attribute.StringValue != nil {
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
	text := fmt.Sprintf("no device has %s %s", r.Short(), strconv.Quote(value))
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
