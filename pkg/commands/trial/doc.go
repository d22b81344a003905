// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trial has the verb test: it creates the claims and pods of trials in a namespace
// of its own, follows them, looks into their containers, and deletes everything again,
// whatever happens.
//
// pkg/trial plans the trials and draws the conclusions. Only pkg/commands imports it.
package trial
