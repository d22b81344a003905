// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
)

// BarWidth is the number of characters between the brackets of a bar.
const BarWidth = 10

// Bar draws a used part: "[####------]". Every part above zero is visible, used or free.
func Bar(percent int) string {
	full := percent * BarWidth / 100
	switch {
	case percent <= 0:
		full = 0
	case percent >= 100:
		full = BarWidth
	default:
		full = max(full, 1)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", BarWidth-full) + "]"
}

// DrawnBar draws a part of a whole in eighths of a cell. Every part above zero is visible.
func DrawnBar(part, whole, width int) string {
	if part <= 0 || whole <= 0 {
		return ""
	}
	eighths := max(part*width*8/whole, 1)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}
