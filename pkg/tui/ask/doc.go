// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ask has the line below a screen in which something is typed: a filter, a
// namespace, a taint.
//
// What is asked is a [Question], which also says what becomes of the answer: [Line] knows
// nothing about it. Only pkg/tui may import it.
package ask
