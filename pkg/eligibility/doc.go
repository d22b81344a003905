// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eligibility knows why a device is not eligible. [Steps] is the one ordered list
// of the checks that a device has to pass; a [Reason] is the result of a failed check.
// [Checks] makes them for a request, [Devices] makes the checks that are the same for all
// requests. The list of checks of a single device, pools and devices in lists use them.
//
// A [Funnel] accounts for every device of the cluster for one request: it is eligible on some
// node, or there is a reason, with the code and the evidence, why it is not. It knows what each
// part of a selector does to the devices, and how many devices of a node are eligible, in use
// or of no use. A [Question] has the funnels of all requests.
//
// It looks at one device at a time and decides nothing about claims: pkg/explain compares
// devices with each other, and pkg/allocator decides whether claims fit. Every package above
// pkg/cluster may import it but pkg/allocator.
package eligibility
