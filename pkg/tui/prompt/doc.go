// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prompt is the prompt of "kubectl dra cel": an expression is evaluated
// while it is typed, its words can be completed, and those that were entered come
// back.
//
// Everything that takes time runs in a [tea.Cmd], one at a time: the text at the
// moment when one ends is the next to be evaluated, and what became outdated is
// cancelled. The package evaluates nothing by itself: pkg/inventory does. Only
// pkg/commands may import it.
package prompt
