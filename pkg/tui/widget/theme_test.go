// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// luminance returns the relative luminance of a color as WCAG 2 defines it.
func luminance(c color.Color) float64 {
	linear := func(part uint32) float64 {
		if v := float64(part) / 0xffff; v > 0.04045 {
			return math.Pow((v+0.055)/1.055, 2.4)
		} else {
			return v / 12.92
		}
	}
	r, g, b, _ := c.RGBA()
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

// contrast returns the contrast ratio of two colors as WCAG 2 defines it.
func contrast(a, b color.Color) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// isNamed reports whether the terminal chooses how a color looks.
func isNamed(c color.Color) bool {
	_, named := c.(ansi.BasicColor)
	return named
}

// TestThemesCanBeRead requires the contrast of text for all colors of the themes that know their
// background, and the contrast of graphics on any background for the scale of the default.
func TestThemesCanBeRead(t *testing.T) {
	black, gray, white := lipgloss.Color("#000000"), lipgloss.Color("#1e1e1e"), lipgloss.Color("#ffffff")
	for name, on := range map[string]struct {
		backgrounds []color.Color
		want        float64
	}{
		ThemeDefault:    {[]color.Color{black, gray, white}, 3},
		ThemeColorBlind: {[]color.Color{black, gray}, 4.5},
		ThemeLight:      {[]color.Color{white}, 4.5},
	} {
		theme := NewTheme(name)
		check := func(of string, c color.Color, backgrounds ...color.Color) {
			for _, background := range backgrounds {
				if got := contrast(c, background); got < on.want {
					t.Errorf("%s: the contrast of %s on %v is %.1f, want %v", name, of, background, got, on.want)
				}
			}
		}
		for of, style := range theme.Styles {
			switch {
			case style.Background != nil:
				check(of, style.Color, style.Background)
			case style.Color != nil && !isNamed(style.Color):
				check(of, style.Color, on.backgrounds...)
			case style.Color != nil && name != ThemeDefault:
				t.Errorf("%s: how %s looks is left to the terminal", name, of)
			}
		}
		for _, c := range theme.Scale {
			check("a level", c, on.backgrounds...)
		}
		byContrast := slices.IsSortedFunc(theme.Scale[:], func(a, b color.Color) int {
			if contrast(a, on.backgrounds[0]) < contrast(b, on.backgrounds[0]) {
				return -1
			}
			return 1
		})
		if name != ThemeDefault && !byContrast {
			t.Errorf("%s: the fuller level does not always stand out more", name)
		}
	}
}

// TestColorsDiffer compares the tones and, apart from good ones and those in use, the levels, with
// 256 colors and with 16.
func TestColorsDiffer(t *testing.T) {
	for _, name := range Themes() {
		theme := NewTheme(name)
		for profile, scale := range map[colorprofile.Profile][Levels]color.Color{
			colorprofile.TrueColor: theme.Scale, colorprofile.ANSI256: theme.Scale, colorprofile.ANSI: theme.Scale16,
		} {
			tones, levels := map[color.Color]string{}, map[color.Color]string{}
			add := func(to map[color.Color]string, what string, style Style) {
				c := profile.Convert(style.Color)
				if other, taken := to[c]; taken {
					t.Errorf("%s with %s: the color %v of %s is the color of %s, too", name, profile, c, what, other)
				}
				to[c] = what
			}
			for _, of := range []string{"good", "busy", "warning", "bad"} {
				add(tones, of, theme.Styles[of])
			}
			add(levels, "warning", theme.Styles["warning"])
			add(levels, "bad", theme.Styles["bad"])
			for i, c := range scale {
				add(levels, fmt.Sprint("level ", i), Style{Color: c})
			}
		}
	}
}

// TestSetTheme changes the style that a theme sets, in texts of pkg/render, too, and no other.
func TestSetTheme(t *testing.T) {
	marks := map[string]string{"faint": "\x1b[2m", "strong": "\x1b[1m", "good": "\x1b[1;32m", "warning": "\x1b[1;33m", "bad": "\x1b[1;31m"}
	drawn := func(theme *Theme, few bool) map[string]string {
		l := unicode()
		l.SetTheme(theme, few)
		out := map[string]string{styleTab: l.Tab.Render("x"), styleTitles: l.Header.Render("x")}
		for i, name := range StyleNames()[:Bad] {
			out[name] = l.Say(Faint+Tone(i), "x") + l.Recolor(marks[name])
		}
		for step := range Levels {
			out["level"] += l.Say(Level(step), "x")
		}
		return out
	}
	before := drawn(NewTheme(ThemeDefault), false)
	for _, name := range StyleNames() {
		theme := NewTheme(ThemeDefault)
		theme.Styles[name] = Style{Color: lipgloss.ANSIColor(201), Background: lipgloss.ANSIColor(17), Faint: true}
		for other, got := range drawn(theme, false) {
			want := before[other]
			if other == name {
				want = "\x1b[2;38;5;201;48;5;17mx\x1b[m"
				switch mark := marks[name]; {
				case len(mark) > len("\x1b[1m"):
					want += "\x1b[1;2;38;5;201;48;5;17m"
				case mark != "":
					want += "\x1b[2;38;5;201;48;5;17m"
				}
			}
			if got != want {
				t.Errorf("with another %s, %s is %q, want %q", name, other, got, want)
			}
		}
	}
	if few := drawn(NewTheme(ThemeDefault), true); few["level"] == before["level"] || few["bad"] != before["bad"] {
		t.Errorf("with 16 colors, levels are %q", few["level"])
	}
}

// TestBlocksOnBackground draws blocks in the color of the background of their text: in the color of
// the text, on the background of the terminal, they could not be seen.
func TestBlocksOnBackground(t *testing.T) {
	red := lipgloss.Red
	for want, style := range map[string]Style{
		"\x1b[30;41m2 \x1b[m\x1b[31m██▚\x1b[m\x1b[30;41m x\x1b[m": {Color: lipgloss.Black, Background: red},
		"\x1b[7;31m2 \x1b[m\x1b[31m██▚\x1b[m\x1b[7;31m x\x1b[m":   {Color: red, Reverse: true},
		"\x1b[31m2 ██▚ x\x1b[m":                                   {Color: red},
	} {
		l, theme := unicode(), NewTheme(ThemeDefault)
		theme.Styles["bad"] = style
		l.SetTheme(theme, false)
		if got := l.Say(Bad, "2 ██▚ x"); got != want {
			t.Errorf("%+v: %q, want %q", style, got, want)
		}
	}
}
