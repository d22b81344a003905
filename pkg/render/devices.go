// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/claimspec"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// allocation draws the devices that are allocated to a claim, and the consumers
// that it is reserved for.
func (p *Page) allocation(a *api.Allocation, titled bool) {
	if !titled {
		p.Blank()
	}
	said := "Allocated: " + english.Count(len(a.Devices), "device")
	if a.Nodes != "" {
		said += ", usable on " + a.Nodes
	}
	if !a.Since.IsZero() {
		said += ", since " + a.Since.UTC().Format(time.RFC3339)
	}
	if a.AgeSeconds > 0 {
		said += " (" + duration.HumanDuration(time.Duration(a.AgeSeconds)*time.Second) + ")"
	}
	p.Text(0, Plain, said)
	p.devices(2, a.Devices)
	if len(a.ReservedFor) == 0 {
		p.Text(0, Plain, "Not reserved for any pod")
		return
	}
	const reserved = "Reserved for "
	p.Text(0, Plain, reserved+p.some(a.ReservedFor, len(a.ReservedFor), p.width-len(reserved)))
}

// devices lists allocated devices, the requests in a column of their own.
func (p *Page) devices(indent int, devices []api.AllocatedDevice) {
	requests := make([]string, len(devices))
	for i := range devices {
		requests[i] = devices[i].Request
		if devices[i].Container != "" {
			requests[i] = claimspec.RequestTitle(devices[i].Request, devices[i].Container, devices[i].ExtendedResource)
		}
	}
	width := Widest(30, requests...)
	for i := range devices {
		d := &devices[i]
		p.Row(indent,
			Cell{Text: requests[i], Width: width},
			Cell{Text: deviceText(d)},
		)
	}
}

func deviceText(d *api.AllocatedDevice) string {
	said := d.Driver + "/" + d.Pool + "/" + d.Device
	if d.ShareID != "" {
		said += ", share " + d.ShareID
	}
	for _, name := range slices.Sorted(maps.Keys(d.ConsumedCapacity)) {
		said += fmt.Sprintf(", %s %s", inventory.QuantityText(d.ConsumedCapacity[name]), name)
	}
	if d.AdminAccess {
		said += ", admin access"
	}
	if network := networkText(d.Status); network != "" {
		said += ", network " + network
	}
	for _, odd := range oddConditions(d.Status, inventory.ConditionText) {
		said += ", " + odd
	}
	if d.Missing {
		said += ", MISSING: no longer in any ResourceSlice"
	}
	return said
}

// deviceList draws devices that are given as driver/pool/device, those of a
// pool on one line.
func (p *Page) deviceList(indent int, devices []string) {
	for _, group := range byDriver(devices) {
		title := "Devices"
		if group.driver != "" {
			title += " of driver " + group.driver
		}
		p.Text(indent, Faint, title)
		for _, line := range group.lines {
			p.list(indent+2, Faint, line)
		}
	}
}

// driverDevices are the devices of a driver, one pool a line, or several pools
// that have the same devices: "gpu-03", "gpu-04: gpu-0 … gpu-7".
type driverDevices struct {
	driver string
	lines  [][]string
}

// byDriver sorts devices that are given as driver/pool/device by what they have
// in common. Drivers and pools stay in the order in which they come.
func byDriver(devices []string) []driverDevices {
	type poolDevices struct {
		name    string
		devices []string
	}
	var drivers []string
	pools := map[string][]*poolDevices{}
	known := map[[2]string]*poolDevices{}
	for _, id := range devices {
		driver, pool, device := splitDevice(id)
		of := known[[2]string{driver, pool}]
		if of == nil {
			of = &poolDevices{name: pool}
			known[[2]string{driver, pool}] = of
			if pools[driver] == nil {
				drivers = append(drivers, driver)
			}
			pools[driver] = append(pools[driver], of)
		}
		of.devices = append(of.devices, device)
	}
	groups := make([]driverDevices, 0, len(drivers))
	for _, driver := range drivers {
		var contents []string
		names := map[string][]string{}
		for _, pool := range pools[driver] {
			content := strings.Join(collapse(pool.devices), ", ")
			if names[content] == nil {
				contents = append(contents, content)
			}
			names[content] = append(names[content], pool.name)
		}
		group := driverDevices{driver: driver}
		for _, content := range contents {
			line := names[content]
			if last := &line[len(line)-1]; *last != "" {
				*last += ": " + content
			} else {
				*last = content
			}
			group.lines = append(group.lines, line)
		}
		groups = append(groups, group)
	}
	return groups
}

// splitDevice takes driver/pool/device apart; the name of a pool can have
// slashes. What is no such name is all device.
func splitDevice(id string) (driver, pool, device string) {
	first, last := strings.IndexByte(id, '/'), strings.LastIndexByte(id, '/')
	if first == last {
		return "", "", id
	}
	return id[:first], id[first+1 : last], id[last+1:]
}

// collapse writes three or more consecutive names, such as gpu-0, gpu-1 and
// gpu-2, as "gpu-0 … gpu-2".
func collapse(names []string) []string { return collapseTo(" … ", names) }

// collapseTo puts something else between the first and the last of such names.
func collapseTo(between string, names []string) []string {
	var ranges []string
	for i := 0; i < len(names); {
		end := i + 1
		for end < len(names) && follows(names[end-1], names[end]) {
			end++
		}
		if end-i < 3 {
			ranges = append(ranges, names[i:end]...)
		} else {
			ranges = append(ranges, names[i]+between+names[end-1])
		}
		i = end
	}
	return ranges
}

// follows reports whether two names differ only in the number at their end, and the
// second's is the next one.
func follows(a, b string) bool {
	stem := strings.TrimRight(a, "0123456789")
	rest, ok := strings.CutPrefix(b, stem)
	if !ok {
		return false
	}
	n, err := strconv.ParseUint(a[len(stem):], 10, 32)
	return err == nil && rest == strconv.FormatUint(n+1, 10) && a[len(stem):] == strconv.FormatUint(n, 10)
}
