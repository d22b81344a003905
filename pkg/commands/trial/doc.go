// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trial has the verb test: it makes the claims and pods of trials in a
// namespace of its own, follows them, looks into their containers, and deletes
// everything again, whatever happens.
//
// What is made and what follows from what was seen, pkg/trial knows. Only pkg/commands
// imports it.
package trial
