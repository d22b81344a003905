// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

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
