// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trial has the verb test: it creates the claims and pods of trials in a namespace
// of its own, follows them, looks into their containers, and deletes everything again,
// whatever happens.
//
// It plans the claims and pods ([NewPlan]), records their stages ([Record]), checks the
// container ([Contents]), and draws the conclusions ([Finish], [Report]); these parts create
// nothing and ask no server. It asks pkg/explain and pkg/forecast what fits. Only pkg/commands
// imports it.
package trial
