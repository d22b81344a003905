// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package taint has the verbs below taints that add, remove and preview DeviceTaintRules,
// and the description of a rule on the command line.
//
// They show which pods a rule evicts before they write it, and refuse the careless form.
// What a rule does is worked out by pkg/inventory. pkg/commands and pkg/commands/list
// import it.
package taint
