// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Heading returns a title, a remark beside it, and the titles of columns on the right. Where there is
// too little room, the remark is cut, and then columns lose their titles, the first of them first.
func (l *Look) Heading(width int, title, remark, columns string) string {
	text := l.Header.Render(ansi.Truncate(title, max(width, 0), l.Glyphs.More))
	columns = l.fromGap(columns, width-lipgloss.Width(text)-len(headingGap))
	if room := width - lipgloss.Width(text+columns) - 2*len(headingGap); remark != "" && room > 0 {
		text += headingGap + ansi.Truncate(remark, room, l.Glyphs.More)
	}
	return Padded(text, width-lipgloss.Width(columns)) + columns
}

const headingGap = "  "

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
