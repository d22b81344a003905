// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package arrange knows which rows of a list of the dashboard are wanted, and in which
// order: those of a namespace, of what the list was opened from, and of a filter.
//
// It keeps no state and draws nothing. Only pkg/tui and packages below it may import it.
package arrange
