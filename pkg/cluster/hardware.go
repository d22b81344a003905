// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
)

// SameHardware reports whether a driver and an extended resource have names of the same
// hardware: gpu.example.com is example.com/gpu, example.com/gpu.shared and
// gpu.example.com/anything. A vendor may have drivers for hardware without a device plugin.
func SameHardware(driver, resource string) bool {
	domain, name, _ := strings.Cut(resource, "/")
	kind, vendor, _ := strings.Cut(driver, ".")
	return domain == driver || domain == vendor && (name == kind || strings.HasPrefix(name, kind+".")) ||
		slices.ContainsFunc(otherNames()[driver], func(prefix string) bool { return strings.HasPrefix(resource, prefix) })
}

// otherNames returns, by driver, the prefixes of the resources of device plugins with names
// of another form.
func otherNames() map[string][]string {
	return map[string][]string{
		"gaudi.intel.com": {"habana.ai/gaudi"},
		"gpu.nvidia.com":  {"nvidia.com/mig-"},
		"neuron.aws.com":  {"aws.amazon.com/neuron"},
	}
}
