// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

type preview struct {
	Settings
	findings *Findings
}

// slot is one physical GPU with the driver's devices.
type slot struct {
	gpu     *GPU
	devices []resourceapi.Device
	// counters is the GPU's counter set, if it has one.
	counters []resourceapi.CounterSet
}

// quantity returns a number in the driver's format.
func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }

// CannotStartError means that the driver does not start on a machine, so that there are no
// slices.
type CannotStartError struct{ Reason string }

// Error returns the reason.
func (e *CannotStartError) Error() string {
	return "the driver would publish nothing: " + e.Reason
}
