// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"image/color"
	"maps"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Tone is the meaning of a piece of text. Colors only repeat it.
type Tone int

// The tones, each with a style of its own.
const (
	Plain Tone = iota
	Faint
	Strong
	Good
	Busy
	Warning
	Bad
	// level is the first of the tones of a scale.
	level
)

// Levels is the number of steps of a scale, from nothing to full.
const Levels = 8

// Level returns the tone of a step of a scale, from 0 for nothing to Levels-1 for full.
func Level(step int) Tone { return level + Tone(min(max(step, 0), Levels-1)) }

// Style is how text is drawn. The zero value leaves it as it is.
type Style struct {
	// Color and Background are nil for the colors of the terminal.
	Color, Background    color.Color
	Bold, Faint, Reverse bool
}

func (s Style) drawn() lipgloss.Style {
	style := lipgloss.NewStyle().Bold(s.Bold).Faint(s.Faint).Reverse(s.Reverse)
	if s.Color != nil {
		style = style.Foreground(s.Color)
	}
	if s.Background != nil {
		style = style.Background(s.Background)
	}
	return style
}

// filled returns the style of blocks that fill their cells, in the color of the background that
// text has; nil if text has none.
func (s Style) filled() *lipgloss.Style {
	if s.Background == nil && !s.Reverse {
		return nil
	}
	style := Style{Color: s.Color}.drawn()
	if !s.Reverse {
		style = Style{Color: s.Background}.drawn()
	}
	return &style
}

// Opening returns the escape sequence that text of the style begins with.
func (s Style) Opening() string {
	sequence, _, _ := strings.Cut(s.drawn().Render("x"), "x")
	return sequence
}

// Theme has the colors of the dashboard.
type Theme struct {
	// Styles are the styles by the names of [StyleNames].
	Styles map[string]Style
	// Scale has the colors of the levels. Scale16 has the colors for a terminal with 16, where
	// the nearest ones of others are often the same.
	Scale, Scale16 [Levels]color.Color
}

// The names of styles that are not of a tone.
const (
	styleTab    = "tab"
	styleTitles = "titles"
)

// StyleNames returns the names of the styles of a theme: the tones in their order, the name of the
// shown view and the titles of columns.
func StyleNames() []string {
	return []string{"faint", "strong", "good", "busy", "warning", "bad", styleTab, styleTitles}
}

// The themes that need no file.
const (
	ThemeDefault    = "default"
	ThemeColorBlind = "color-blind"
	ThemeLight      = "light"
)

// Themes returns the names of the themes that need no file.
func Themes() []string { return []string{ThemeDefault, ThemeColorBlind, ThemeLight} }

// NewTheme returns one of [Themes]. The default has the colors that the terminal's own theme
// defines, and a scale that can be seen on any background, from gray to blue: what needs somebody
// stands out from it. The others know theirs: color-blind is for a dark one and tells by blue, yellow
// and brightness what others tell by green and red.
func NewTheme(name string) *Theme {
	t := &Theme{
		Styles: map[string]Style{
			"faint": {Faint: true}, "strong": {Bold: true},
			"good": {Color: lipgloss.Green}, "busy": {Color: lipgloss.Cyan}, "warning": {Color: lipgloss.Yellow}, "bad": {Color: lipgloss.BrightRed},
			styleTab: {Bold: true, Reverse: true}, styleTitles: {Bold: true},
		},
		Scale: scale(102, 66, 30, 67, 31, 68, 32, 33),
		Scale16: [Levels]color.Color{
			lipgloss.BrightGreen, lipgloss.Green, lipgloss.BrightCyan, lipgloss.Cyan, lipgloss.BrightBlue, lipgloss.Blue, lipgloss.BrightMagenta, lipgloss.Magenta,
		},
	}
	switch name {
	case ThemeColorBlind:
		maps.Copy(t.Styles, map[string]Style{
			"faint": indexed(246), "good": indexed(75), "busy": indexed(116), "warning": indexed(226),
			"bad": {Color: lipgloss.ANSIColor(16), Background: lipgloss.ANSIColor(228)},
		})
		t.Scale = scale(68, 69, 74, 111, 81, 153, 159, 231)
		t.Scale16[0], t.Scale16[1] = lipgloss.White, lipgloss.BrightBlack
	case ThemeLight:
		maps.Copy(t.Styles, map[string]Style{
			"faint": indexed(241), "good": indexed(28), "busy": indexed(25), "warning": indexed(130), "bad": indexed(160),
		})
		t.Scale = scale(29, 27, 25, 57, 56, 55, 54, 53)
	}
	return t
}

// indexed returns the style of one of 256 colors.
func indexed(number uint8) Style { return Style{Color: lipgloss.ANSIColor(number)} }

// scale returns a scale of 8 of 256 colors.
func scale(numbers ...uint8) (colors [Levels]color.Color) {
	for i, number := range numbers {
		colors[i] = lipgloss.ANSIColor(number)
	}
	return colors
}

// SetLevels sets the scale of levels. On a terminal with 16 colors, it is used only if it has no
// others.
func (t *Theme) SetLevels(colors [Levels]color.Color) {
	t.Scale = colors
	for _, c := range colors {
		if _, named := c.(ansi.BasicColor); !named {
			return
		}
	}
	t.Scale16 = colors
}
