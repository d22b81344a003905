// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package list has the list verbs: slices, pools, devices, claims, classes, taints,
// attributes and tree, one file for each. The verbs below taints have a package of their
// own, pkg/commands/taint. Reading, choosing, sorting, printing and following items is the
// same for all of them: [kind], [listing] and [listOptions].
//
// It computes nothing about devices: pkg/inventory does. Only pkg/commands imports it.
package list
