// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// constraint is a constraint of a claim with the values of the devices that it has.
type constraint struct {
	requests  []string
	attribute string
	distinct  bool
	// perRequest is true if it forgets all but the last value of each request.
	perRequest bool
	// values has the values of the devices; with perRequest, the last value of each request.
	values []string
	last   map[string]string
	// value is the value of the first device, and devices their number: a device that
	// stays because of a bug counts.
	value   string
	devices int
}

func (c *constraint) applies(r *request) bool {
	return len(c.requests) == 0 || slices.Contains(c.requests, r.Base) || slices.Contains(c.requests, r.Name)
}

// add adds a device and reports whether the constraint allows it.
func (c *constraint) add(r *request, d *device) bool {
	if !c.applies(r) {
		return true
	}
	value, has := c.valueOf(d)
	switch {
	case !has:
		return false
	case c.distinct && c.perRequest:
		if c.devices > 0 {
			for _, other := range c.last {
				if value == "" || other == value {
					return false
				}
			}
		}
		if c.last == nil {
			c.last = map[string]string{}
		}
		c.last[r.Base] = value
	case c.distinct:
		if len(c.values) > 0 && (value == "" || slices.Contains(c.values, value)) {
			return false
		}
		c.values = append(c.values, value)
	case c.devices == 0:
		c.value = value
	case value == "" || value != c.value:
		return false
	}
	c.devices++
	return true
}

// remove takes a device away that was added.
func (c *constraint) remove(r *request, d *device) {
	if !c.applies(r) {
		return
	}
	c.devices--
	if !c.distinct {
		return
	}
	if c.perRequest {
		delete(c.last, r.Base)
		return
	}
	if value, has := c.valueOf(d); has {
		if at := slices.Index(c.values, value); at >= 0 {
			c.values = slices.Delete(c.values, at, at+1)
		}
	}
}

// valueOf returns the value of the attribute, empty if it is of no kind that constraints
// compare, and false if the device does not have it.
func (c *constraint) valueOf(d *device) (string, bool) {
	a, has := d.Attributes[resourceapi.QualifiedName(c.attribute)]
	if domain, short, _ := strings.Cut(c.attribute, "/"); !has && domain == d.ID.Driver {
		a, has = d.Attributes[resourceapi.QualifiedName(short)]
	}
	switch {
	case !has:
		return "", false
	case a.StringValue != nil:
		return "string " + *a.StringValue, true
	case a.IntValue != nil:
		return fmt.Sprintf("int %d", *a.IntValue), true
	case a.BoolValue != nil:
		return fmt.Sprintf("bool %t", *a.BoolValue), true
	case a.VersionValue != nil:
		return "version " + *a.VersionValue, true
	}
	return "", true
}

// tainted reports whether a taint keeps a request from a device.
func tainted(d *device, r *request) bool {
	return slices.ContainsFunc(d.Taints, func(taint resourceapi.DeviceTaint) bool {
		return (taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute) &&
			!slices.ContainsFunc(r.Tolerations, func(t resourceapi.DeviceToleration) bool { return resourceclaim.ToleratesTaint(t, taint) })
	})
}
