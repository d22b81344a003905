// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// hardware finds UUIDs and PCI addresses in texts.
type hardware struct{ uuid, pci *regexp.Regexp }

func newHardware() *hardware {
	return &hardware{
		uuid: regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`),
		// A domain may have more than four digits.
		pci: regexp.MustCompile(`[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]`),
	}
}

// keys returns the UUIDs and PCI addresses in a text: GPU-UUID::1, 00000000:01:00.0.
func (h *hardware) keys(text string) []string {
	text = strings.ToLower(text)
	return slices.Concat(h.uuid.FindAllString(text, -1), h.pci.FindAllString(text, -1))
}

// sharedBy returns the resource that also has a device, and the attribute that identifies
// it; given has resources by UUIDs and PCI addresses.
func (h *hardware) sharedBy(device *resourceapi.Device, given map[string]string) (resource, identity string) {
	for _, name := range slices.Sorted(maps.Keys(device.Attributes)) {
		value := device.Attributes[name].StringValue
		if value == nil {
			continue
		}
		for _, key := range h.keys(*value) {
			if given[key] != "" {
				return given[key], *value
			}
		}
	}
	return "", ""
}
