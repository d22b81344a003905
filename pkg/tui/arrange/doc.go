// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package arrange selects and orders the rows of a list of the dashboard: by namespace, by
// the item that the list was opened from, and by a filter.
//
// It keeps no state and draws nothing. Only pkg/tui and packages below it may import it.
package arrange
