// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package evaluation knows what a CEL expression makes of the devices of a cluster:
// for which it is true, is false or fails, by driver, node and value, what was
// probably meant, how it compares with another one, which expressions single out
// devices like one of them, and what a word of an expression can be completed to.
//
// It evaluates through pkg/allocator/selector and says nothing about claims and
// whether they fit. pkg/commands and pkg/tui may import it.
package evaluation
