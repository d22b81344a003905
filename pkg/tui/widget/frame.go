// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Frame is a box around lines.
type Frame struct {
	// Title stands on the left of the upper border, Right on the right of it, where
	// the lines end; Foot and FootRight in the same way in the lower one.
	Title, Right, Foot, FootRight string
}

// FrameWidth is the width of a frame on both sides together, FrameHeight its height.
const (
	FrameWidth  = 3
	FrameHeight = 2
)

// Draw puts the frame around lines, each cut or filled up to fit into the width. The
// first column of a line, next to the frame, is for the cursor.
func (f Frame) Draw(l *Look, width int, lines []string) []string {
	g := &l.Glyphs
	inner := max(width-FrameWidth, 0)
	drawn := make([]string, 0, len(lines)+FrameHeight)
	drawn = append(drawn, l.edge(width, g.TopLeft, g.TopRight, f.Title, f.Right))
	side := l.Say(Faint, g.Between)
	for _, line := range lines {
		drawn = append(drawn, side+Padded(ansi.Truncate(line, inner, g.More), inner)+" "+side)
	}
	return append(drawn, l.edge(width, g.BottomLeft, g.BottomRight, f.Foot, f.FootRight))
}

// edge returns a border with texts in it. Where there is too little room, the right text
// loses what it begins with, up to a gap between its parts.
func (l *Look) edge(width int, left, right, text, more string) string {
	g := &l.Glyphs
	if text != "" {
		text = " " + text + " "
	}
	rest := width - 3 - lipgloss.Width(text)
	if more != "" {
		more = l.fromGap(" "+more+" ", rest-1)
	}
	if rest < 0 {
		text, more, rest = ansi.Truncate(text, max(width-3, 0), g.More), "", 0
	}
	rest -= lipgloss.Width(more)
	return ansi.Truncate(l.Say(Faint, left+g.Rule)+text+l.Say(Faint, strings.Repeat(g.Rule, max(rest, 0)))+more+l.Say(Faint, right), width, "")
}

// fromGap returns the end of a text that has room in a width: from its beginning, or from a
// gap.
func (l *Look) fromGap(text string, width int) string {
	over := lipgloss.Width(text) - width
	if over <= 0 {
		return text
	}
	text = ansi.TruncateLeft(text, over, "")
	plain := ansi.Strip(text)
	for at := range plain {
		if rest := plain[at:]; strings.HasPrefix(rest, l.Glyphs.Rule) || strings.HasPrefix(rest, "  ") {
			return ansi.TruncateLeft(text, lipgloss.Width(plain[:at]), "")
		}
	}
	return ""
}
