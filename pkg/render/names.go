// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// driverDevices are the devices of a driver, one pool a line, or several pools
// that have the same devices: "gpu-03", "gpu-04: gpu-0 … gpu-7".
type driverDevices struct {
	driver string
	lines  [][]string
}

// byDriver groups devices that are given as driver/pool/device. Drivers and pools keep
// their order.
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
			content := strings.Join(english.Collapse(pool.devices), ", ")
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

// splitDevice splits driver/pool/device; the name of a pool can have slashes. Other text is
// all device.
func splitDevice(id string) (driver, pool, device string) {
	first, last := strings.IndexByte(id, '/'), strings.LastIndexByte(id, '/')
	if first == last {
		return "", "", id
	}
	return id[:first], id[first+1 : last], id[last+1:]
}

// DeviceNames joins the names of devices, with their pools if these differ.
func DeviceNames(ids []string) string {
	var names []string
	pools := map[string]bool{}
	for _, id := range ids {
		driver, pool, device := splitDevice(id)
		pools[driver+"/"+pool] = true
		names = append(names, device)
	}
	if len(pools) <= 1 {
		return strings.Join(english.Collapse(names), ", ")
	}
	names = nil
	for _, group := range byDriver(ids) {
		for _, line := range group.lines {
			names = append(names, strings.Join(line, ", "))
		}
	}
	return strings.Join(names, "; ")
}

// InCell is how many names a cell of a table has.
const InCell = 3

// SomeOf names the first few of a list and counts the rest.
func SomeOf(names []string, total int) string {
	shown := names[:min(len(names), InCell)]
	text := strings.Join(shown, ",")
	if more := total - len(shown); more > 0 {
		text += fmt.Sprintf("+%d", more)
	}
	return text
}

// DeviceList draws devices that are given as driver/pool/device, one line a pool.
func (p *Page) DeviceList(indent int, devices []string) {
	for _, group := range byDriver(devices) {
		title := "Devices"
		if group.driver != "" {
			title += " of driver " + group.driver
		}
		p.Text(indent, Faint, title)
		for _, line := range group.lines {
			p.List(indent+2, Faint, line)
		}
	}
}

// ShortName returns a qualified name without its domain.
func ShortName(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
