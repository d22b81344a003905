// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

// block is a part of the overview.
type block struct {
	title string
	lines []blockLine
	// more counts the lines there was no room for; none is said if there are no
	// lines at all.
	more int
	none string
	// rest is where those lines can be seen; nil if nowhere.
	rest func() screen
}

// blockLine can be opened, unless open is nil.
type blockLine struct {
	text string
	open func() screen
}
