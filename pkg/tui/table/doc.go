// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package table is a table on a screen: a [Content] has rows and columns, a [Table] shows
// a window of them and knows which row is selected.
//
// Only what is in the window is made and drawn. What the rows are about, and which of them
// are wanted, is not known here. Only pkg/tui and packages below it may import it.
package table
