// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"

	"charm.land/lipgloss/v2"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// tone is what a piece of text means. Colours only repeat it.
type tone int

const (
	plain tone = iota
	faint
	strong
	good
	busy
	warning
	bad
)

// look is how things are drawn. It uses nothing but the sixteen colours that
// the terminal's own theme defines, so that it can be read on any background.
type look struct {
	styles [bad + 1]lipgloss.Style
	// selected is the style of the row with the cursor, tab that of the view
	// that is shown, header that of column titles.
	selected, tab, header lipgloss.Style
	glyphs                glyphs
}

// glyphs are the signs that stand for devices, bars and marks.
type glyphs struct {
	free, allocated, shared, taintedInUse, blocked, tainted, unusable, unhealthy string
	// levels are those of a history, from nothing to full.
	levels []string
	// cursor stands before the row that is selected, changed before one that
	// just changed.
	cursor, changed, up, down, more, rule, between string
}

// newLook takes the locale from the environment: without UTF-8, everything is
// drawn with ASCII.
func newLook(env func(string) string) look {
	l := look{
		selected: lipgloss.NewStyle().Reverse(true),
		tab:      lipgloss.NewStyle().Reverse(true).Bold(true),
		header:   lipgloss.NewStyle().Bold(true),
		glyphs:   asciiGlyphs(),
	}
	l.styles[plain] = lipgloss.NewStyle()
	l.styles[faint] = lipgloss.NewStyle().Faint(true)
	l.styles[strong] = lipgloss.NewStyle().Bold(true)
	l.styles[good] = lipgloss.NewStyle().Foreground(lipgloss.Green)
	l.styles[busy] = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	l.styles[warning] = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	l.styles[bad] = lipgloss.NewStyle().Foreground(lipgloss.Red)
	if isUTF8(env) {
		l.glyphs = unicodeGlyphs()
	}
	return l
}

// isUTF8 follows the order of precedence of POSIX. An environment that says
// nothing, as on Windows, is taken for UTF-8.
func isUTF8(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := env(name); value != "" {
			value = strings.ToLower(value)
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return true
}

func unicodeGlyphs() glyphs {
	return glyphs{
		free: "░", allocated: "█", shared: "▓", taintedInUse: "▚", blocked: "▒", tainted: "!", unusable: "?", unhealthy: "✗",
		levels: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
		cursor: "›", changed: "•", up: "▲", down: "▼", more: "…", rule: "─", between: "│",
	}
}

func asciiGlyphs() glyphs {
	return glyphs{
		free: ".", allocated: "#", shared: "+", taintedInUse: "%", blocked: "-", tainted: "!", unusable: "?", unhealthy: "X",
		levels: []string{"_", ".", ":", "-", "=", "+", "*", "#"},
		cursor: ">", changed: "*", up: "^", down: "v", more: "~", rule: "-", between: "|",
	}
}

func (l *look) say(t tone, text string) string {
	if t == plain || text == "" {
		return text
	}
	return l.styles[t].Render(text)
}

// ofState is how devices in a state are drawn.
func (l *look) ofState(state api.DeviceState) (glyph string, t tone) {
	switch state {
	case api.DeviceStateFree:
		return l.glyphs.free, good
	case api.DeviceStateAllocated:
		return l.glyphs.allocated, busy
	case api.DeviceStateShared:
		return l.glyphs.shared, busy
	case api.DeviceStateBlocked:
		return l.glyphs.blocked, faint
	case api.DeviceStateTainted:
		return l.glyphs.tainted, warning
	default:
		return l.glyphs.unusable, bad
	}
}
