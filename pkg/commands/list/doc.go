// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package list has the list verbs: slices, pools, devices, claims, classes, taints,
// attributes and tree, one file for each. Reading, choosing, sorting, printing and following
// items is the same for all of them: [kind], [listing] and [listOptions].
//
// The verbs below taints add, remove and preview DeviceTaintRules. They show which pods a rule
// evicts before they write it, and refuse the careless form.
//
// It computes nothing about devices: pkg/inventory does. Only pkg/commands imports it.
package list
