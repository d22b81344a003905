// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Heading returns a title, remarks beside it, and the titles of columns on the right. Where there is
// too little room, remarks are left out, the first is cut, and then columns lose their titles, the
// first of them first.
func (l *Look) Heading(width int, title string, remarks []string, columns string) string {
	text := l.Header.Render(ansi.Truncate(title, max(width, 0), l.Glyphs.More))
	columns = l.fromGap(columns, width-lipgloss.Width(text)-len(headingGap))
	if remark := l.Fitting(remarks, width-lipgloss.Width(text+columns)-2*len(headingGap)); remark != "" {
		text += headingGap + remark
	}
	return Padded(text, width-lipgloss.Width(columns)) + columns
}

const headingGap = "  "

// Fitting returns the remarks that have room in a width beside each other, with a sign for the others
// where there is room for it, too; if no remark has room, the first of them, cut.
func (l *Look) Fitting(remarks []string, width int) string {
	remarks = slices.DeleteFunc(slices.Clone(remarks), func(remark string) bool { return remark == "" })
	if all := strings.Join(remarks, headingGap); all == "" || ansi.StringWidth(all) <= width {
		return all
	}
	text, more := "", " "+l.Say(Faint, l.Glyphs.More)
	for _, remark := range remarks {
		if with := strings.TrimPrefix(text+headingGap+remark, headingGap); ansi.StringWidth(with) <= width {
			text = with
		}
	}
	switch {
	case text != "" && ansi.StringWidth(text+more) <= width:
		return text + more
	case text != "":
		return text
	}
	return ansi.Truncate(remarks[0], max(width, 0), l.Glyphs.More)
}

// fromGap returns the end of a text that has room in a width: from its beginning, or from a gap.
func (l *Look) fromGap(text string, width int) string {
	over := lipgloss.Width(text) - width
	if over <= 0 {
		return text
	}
	text = ansi.TruncateLeft(text, over, "")
	plain := ansi.Strip(text)
	if at := strings.Index(plain, headingGap); at >= 0 {
		return ansi.TruncateLeft(text, at, "")
	}
	return ""
}

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
