// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eligibility knows why a device is not eligible. [Steps] is the one ordered list
// of the checks that a device has to pass; a [Reason] is the result of a failed check.
// [Checks] makes them for a request, [Devices] makes the checks that are the same for all
// requests. Funnels, the list of checks of a single device, pools and devices in lists all
// use them.
//
// It looks at one device at a time: pkg/explain compares devices with each other, and
// pkg/allocator decides whether claims fit. pkg/inventory, pkg/explain and its packages may
// import it.
package eligibility
