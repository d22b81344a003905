// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// judgeDevices compares the devices of a reply with the allocation.
func (c *caller) judgeDevices(call *Call) {
	results := c.order.results(call.Driver)
	seen := map[string]bool{}
	wrong := false
	bad := func(format string, args ...any) {
		wrong = true
		c.done.bad(checkAllocated, call.Endpoint, "driver %s: %s", call.Driver, fmt.Sprintf(format, args...))
	}
	prepared := map[string]bool{}
	for i := range call.Devices {
		d := &call.Devices[i]
		if d.Pool == "" || d.Device == "" {
			bad("the reply has a device without %s", map[bool]string{true: "a pool", false: "a name"}[d.Pool == ""])
			continue
		}
		id := d.key()
		if seen[id] {
			bad("the reply has the device %s twice", d.name())
		}
		seen[id] = true
		allocated := false
		for _, result := range results {
			if result.Pool == d.Pool && result.Device == d.Device && (d.ShareID == "" || string(ptr.Deref(result.ShareID, "")) == d.ShareID) {
				allocated = true
				prepared[result.Pool+"/"+result.Device] = true
			}
		}
		if !allocated && c.order.Object != nil {
			bad("the reply has the device %s, which the claim does not have", d.name())
		}
	}
	var left []string
	for _, result := range results {
		if name := result.Pool + "/" + result.Device; !prepared[name] && !slices.Contains(left, name) {
			left = append(left, name)
		}
	}
	switch {
	case len(left) > 0:
		c.done.notKnown(checkAllocated, call.Endpoint, "driver %s: the reply does not have %s: nothing of it gets into a container, which a driver may want", call.Driver, strings.Join(left, ", "))
	case !wrong && c.order.Object != nil:
		c.done.good(checkAllocated, call.Endpoint, "driver %s: the reply has the %s that the claim has", call.Driver, english.Count(len(call.Devices), "device"))
	}
}

// name returns the device's name in messages.
func (d *PreparedDevice) name() string { return clip(d.Pool + "/" + d.Device) }

// key returns a key that identifies an entry of a reply.
func (d *PreparedDevice) key() string {
	requests := slices.Sorted(slices.Values(d.Requests))
	return strings.Join(append([]string{d.Pool, d.Device, d.ShareID}, requests...), "\x00")
}

// judgeTwice compares the replies to the same call: the kubelet may repeat it at any time,
// so nothing may change.
func (c *caller) judgeTwice(first, second *Call) {
	method, driver := second.Method, second.Driver
	switch {
	case second.Error != "":
		c.done.bad(checkIdempotent, second.Endpoint, "driver %s: %s is not idempotent: the second call fails", driver, method)
	case !slices.Equal(outcomes(first), outcomes(second)):
		c.done.bad(checkIdempotent, second.Endpoint, "driver %s: %s is not idempotent: the second call brings other devices or CDI names", driver, method)
	default:
		c.done.good(checkIdempotent, second.Endpoint, "driver %s: %s a second time brings the same", driver, method)
	}
}

// outcomes returns the devices of a call with their CDI names, in an order independent of
// the reply.
func outcomes(call *Call) []string {
	var all []string
	for i := range call.Devices {
		d := &call.Devices[i]
		text := d.key()
		for _, cdi := range d.CDI {
			text += "\x00" + cdi.ID
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}
