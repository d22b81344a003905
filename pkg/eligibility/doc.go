// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eligibility knows why a device is not eligible. [Steps] is the one ordered
// list of the checks that a device has to pass; a [Reason] is what a check finds.
// [Checks] makes them for a request, [Devices] those that are the same for all
// requests. Funnels, the list of checks of a single device, pools and devices in
// lists all say what these say.
//
// It looks at one device at a time: what devices have to be together is
// pkg/explain's, whether claims fit pkg/allocator's. pkg/inventory, pkg/explain and
// the packages of it may import it.
package eligibility
