// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory lists what there is: slices, pools, devices, the claims
// that hold them, classes and taints, as plain data for tables, JSON and the
// dashboard. It also makes the overview of a cluster, of reasons and findings that are
// handed to it. A [DeviceEvaluator] says what a CEL expression makes of devices, and how to
// write it.
//
// What is free, and whether something more would fit, is the word of
// pkg/allocator. The package prints nothing and talks to no cluster. pkg/explain,
// pkg/doctor, pkg/render, pkg/tui and pkg/commands may import it.
package inventory
