// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commands is the command line: one file for each verb, in which flags become
// options and options run; a verb with more files has its name before each of them. The verbs
// mcp, test (trial), node-probe and taints, the faults of doctor and lint (check) and the list
// verbs (list) have packages below it,
// and so have the common parts of all verbs (cli) and the files that they ask about
// (manifest).
//
// It has no logic of its own about devices. It finds out what was asked for, gets a
// snapshot, calls the package that knows the answer, prints what that returns and chooses
// the exit code; see [Run]. Only cmd/kubectl-dra imports it.
package commands
