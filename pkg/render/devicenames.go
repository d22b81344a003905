// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strconv"
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

// splitDevice splits driver/pool/device; the name of a pool can have slashes. Other text is
// all device.
func splitDevice(id string) (driver, pool, device string) {
	first, last := strings.IndexByte(id, '/'), strings.LastIndexByte(id, '/')
	if first == last {
		return "", "", id
	}
	return id[:first], id[first+1 : last], id[last+1:]
}

// collapse orders names naturally and writes three or more consecutive ones, such
// as gpu-0, gpu-1 and gpu-2, as "gpu-0 … gpu-2".
func collapse(names []string) []string { return collapseTo(" … ", names) }

// collapseTo is like collapse, with another text between the first and the last of such
// names.
func collapseTo(between string, names []string) []string {
	names = slices.SortedFunc(slices.Values(names), english.CompareNames)
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
		return strings.Join(collapse(names), ", ")
	}
	names = nil
	for _, group := range byDriver(ids) {
		for _, line := range group.lines {
			names = append(names, strings.Join(line, ", "))
		}
	}
	return strings.Join(names, "; ")
}
