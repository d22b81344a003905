// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Selects tells whether a device matches all selectors, as the allocator sees
// it. It fails where the allocator's attempt would fail.
func (a *Allocator) Selects(ctx context.Context, selectors []resourceapi.DeviceSelector, d *Device) (bool, error) {
	input := cel.Device{Driver: d.ID.Driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity}
	if a.channel == channelStable {
		// It does not tell selectors that a device can be shared.
		input.AllowMultipleAllocations = nil
	}
	for i, s := range selectors {
		if s.CEL == nil {
			continue
		}
		compiled := a.celCache.GetOrCompile(s.CEL.Expression)
		if compiled.Error != nil {
			return false, a.Compile(selectors)
		}
		matches, _, err := compiled.DeviceMatches(ctx, input)
		if err != nil {
			return false, fmt.Errorf("selector %d on device %s: %w", i+1, d.ID, err)
		}
		if !matches {
			return false, nil
		}
	}
	return true, nil
}

// Compile fails for selectors that do not compile.
func (a *Allocator) Compile(selectors []resourceapi.DeviceSelector) error {
	for i, s := range selectors {
		if s.CEL == nil {
			continue
		}
		if compiled := a.celCache.GetOrCompile(s.CEL.Expression); compiled.Error != nil {
			return fmt.Errorf("selector %d does not compile: %w", i+1, compiled.Error)
		}
	}
	return nil
}
