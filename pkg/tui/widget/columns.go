// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// columnGap is the space between two columns.
const columnGap = 3

// Columns lays texts beside each other, as many as there is room for. Where there is no
// room for all, the next one stands below the shortest.
func Columns(texts [][]string, width int) []string {
	var widths []int
	var stacks [][]string
	for count := len(texts); count > 0; count-- {
		if widths, stacks = stacked(texts, count); totalOf(widths) <= width {
			break
		}
	}
	height := 0
	for _, stack := range stacks {
		height = max(height, len(stack))
	}
	lines := make([]string, 0, height)
	for i := range height {
		var line strings.Builder
		for column, stack := range stacks {
			text := ""
			if i < len(stack) {
				text = stack[i]
			}
			if column < len(stacks)-1 {
				text = Padded(text, widths[column]+columnGap)
			}
			line.WriteString(text)
		}
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}

func stacked(texts [][]string, count int) (widths []int, stacks [][]string) {
	widths, stacks = make([]int, count), make([][]string, count)
	for i, text := range texts {
		at := i
		if i >= count {
			at = 0
			for k := range stacks {
				if len(stacks[k]) < len(stacks[at]) {
					at = k
				}
			}
			stacks[at] = append(stacks[at], "")
		}
		stacks[at] = append(stacks[at], text...)
		for _, line := range text {
			widths[at] = max(widths[at], lipgloss.Width(line))
		}
	}
	return widths, stacks
}

func totalOf(widths []int) int {
	total := columnGap * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	return total
}
