// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"image/color"
	"regexp"
	"strings"

	"charm.land/lipgloss/v2"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
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

// Look is how things are drawn. It uses nothing but the sixteen colors that
// the terminal's own theme defines, so that it can be read on any background.
type Look struct {
	styles [level + Levels]lipgloss.Style
	// Tab is the style of the name of the shown view, Header the style of column titles.
	Tab, Header lipgloss.Style
	Glyphs      Glyphs
	// recolor has the colors of texts that others drew; nil to leave them.
	recolor *strings.Replacer
	// ascii is true where the locale has nothing else.
	ascii bool
}

// Glyphs are the signs that stand for devices, bars and marks.
type Glyphs struct {
	Free, Allocated, Shared, TaintedInUse, Blocked, Tainted, Unusable, Unhealthy string
	// Levels are the levels of a history, from nothing to full.
	Levels []string
	// Cursor stands before the selected row, Changed before a row that just changed.
	Cursor, Changed, Up, Down, More, Rule, Between string
	// Closed marks a node that takes no pods, Fine a good state.
	Closed, Fine string
}

// NewLook takes the locale from the environment: without UTF-8, everything is
// drawn with ASCII.
func NewLook(env func(string) string) Look {
	l := Look{
		Tab:    lipgloss.NewStyle().Reverse(true).Bold(true),
		Header: lipgloss.NewStyle().Bold(true),
		Glyphs: asciiGlyphs(),
		ascii:  !isUTF8(env),
	}
	l.styles[Plain] = lipgloss.NewStyle()
	l.styles[Faint] = lipgloss.NewStyle().Faint(true)
	l.styles[Strong] = lipgloss.NewStyle().Bold(true)
	l.styles[Good] = lipgloss.NewStyle().Foreground(lipgloss.Green)
	l.styles[Busy] = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	l.styles[Warning] = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	l.styles[Bad] = lipgloss.NewStyle().Foreground(lipgloss.Red)
	for step, color := range []color.Color{lipgloss.Green, lipgloss.Green, lipgloss.Cyan, lipgloss.Cyan, lipgloss.BrightCyan, lipgloss.BrightBlue, lipgloss.Blue, lipgloss.Magenta} {
		l.styles[Level(step)] = lipgloss.NewStyle().Foreground(color)
	}
	if !l.ascii {
		l.Glyphs = unicodeGlyphs()
	}
	return l
}

// The sets of colors.
const (
	ThemeDefault    = "default"
	ThemeColorBlind = "color-blind"
)

// Themes returns the names of all sets of colors.
func Themes() []string { return []string{ThemeDefault, ThemeColorBlind} }

// SetTheme changes the colors. Those for the color-blind tell by blue and yellow, and by
// brightness, what others tell by green and red.
func (l *Look) SetTheme(name string) {
	if name != ThemeColorBlind {
		return
	}
	l.styles[Good] = lipgloss.NewStyle().Foreground(lipgloss.Blue)
	l.styles[Busy] = lipgloss.NewStyle().Foreground(lipgloss.BrightBlue)
	l.styles[Warning] = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	l.styles[Bad] = lipgloss.NewStyle().Foreground(lipgloss.Black).Background(lipgloss.BrightYellow)
	l.recolor = strings.NewReplacer("\x1b[1;31m", "\x1b[1;30;103m", "\x1b[1;32m", "\x1b[1;34m")
}

// Recolor gives a text that pkg/render drew the colors of the theme.
func (l *Look) Recolor(text string) string {
	if l.recolor == nil {
		return text
	}
	return l.recolor.Replace(text)
}

// isUTF8 reports whether the locale is UTF-8, by the order of precedence of POSIX. An
// environment that says nothing, as on Windows, is taken for UTF-8.
func isUTF8(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := env(name); value != "" {
			value = strings.ToLower(value)
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return true
}

func unicodeGlyphs() Glyphs {
	return Glyphs{
		Free: "░", Allocated: "█", Shared: "▓", TaintedInUse: "▚", Blocked: "▒", Tainted: "!", Unusable: "?", Unhealthy: "✗",
		Levels: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
		Cursor: "›", Changed: "•", Up: "▲", Down: "▼", More: "…", Rule: "─", Between: "│",
		Closed: "○", Fine: "●",
	}
}

func asciiGlyphs() Glyphs {
	return Glyphs{
		Free: ".", Allocated: "#", Shared: "+", TaintedInUse: "%", Blocked: "-", Tainted: "!", Unusable: "?", Unhealthy: "X",
		Levels: []string{"_", ".", ":", "-", "=", "+", "*", "#"},
		Cursor: ">", Changed: "*", Up: "^", Down: "v", More: "~", Rule: "-", Between: "|",
		Closed: "o", Fine: "*",
	}
}

// Say colors a text.
func (l *Look) Say(t Tone, text string) string {
	if t == Plain || text == "" {
		return text
	}
	return l.styles[t].Render(text)
}

const (
	mark, unmark = "\x1b[7m", "\x1b[27m"
	plain        = "\x1b[m"
)

// SelectCell marks a cell that is selected: its colors are reversed.
func (l *Look) SelectCell(text string) string {
	// Each part of it ends what came before it, so that the mark begins again.
	return mark + strings.ReplaceAll(text, plain, plain+mark) + plain
}

// Select marks a row that is selected. It keeps the colors of its parts: a reversed block
// would fill its cell with the background, so that blocks are left as they are.
func (l *Look) Select(text string) string {
	return l.SelectCell(blocks.ReplaceAllString(text, unmark+"$0"+mark))
}

// blocks are runs of the characters that bars, strips and histories are drawn with.
var blocks = regexp.MustCompile(`[\x{2580}-\x{259f}]+`)

// OfState returns how devices in a state are drawn.
func (l *Look) OfState(state api.DeviceState) (glyph string, t Tone) {
	switch state {
	case api.DeviceStateFree:
		return l.Glyphs.Free, Good
	case api.DeviceStateAllocated:
		return l.Glyphs.Allocated, Busy
	case api.DeviceStateShared:
		return l.Glyphs.Shared, Busy
	case api.DeviceStateBlocked:
		return l.Glyphs.Blocked, Faint
	case api.DeviceStateTainted:
		return l.Glyphs.Tainted, Warning
	default:
		return l.Glyphs.Unusable, Bad
	}
}
