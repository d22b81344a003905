// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"image/color"
	"math"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// luminance returns the relative luminance of a color as WCAG 2 defines it, or a little
// more for the darkest.
func luminance(c color.Color) float64 {
	linear := func(part uint32) float64 {
		return math.Pow((float64(part)/0xffff+0.055)/1.055, 2.4)
	}
	r, g, b, _ := c.RGBA()
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

// contrast returns the contrast ratio of two colors as WCAG 2 defines it.
func contrast(a, b color.Color) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// TestThemesCanBeRead requires the contrast of text for all colors of the themes that know their
// background, whose fuller levels stand out more, and the contrast of graphics on any background
// for the scale of the default.
func TestThemesCanBeRead(t *testing.T) {
	black, gray, white := lipgloss.Color("#000000"), lipgloss.Color("#1e1e1e"), lipgloss.Color("#ffffff")
	for name, backgrounds := range map[string][]color.Color{ThemeDefault: {black, gray, white}, ThemeColorBlind: {black, gray}, ThemeLight: {white}} {
		theme, want := NewTheme(name), 4.5
		for of, style := range theme.Styles {
			on := backgrounds
			if style.Background != nil {
				on = []color.Color{style.Background}
			}
			for _, background := range on {
				if _, chosen := style.Color.(ansi.BasicColor); chosen != (name == ThemeDefault) && style.Color != nil {
					t.Errorf("%s: whether the terminal chooses how %s looks is %t", name, of, chosen)
				} else if style.Color != nil && !chosen && contrast(style.Color, background) < want {
					t.Errorf("%s: the contrast of %s on %v is %.1f", name, of, background, contrast(style.Color, background))
				}
			}
		}
		if name == ThemeDefault {
			want = 3
		}
		for i, c := range theme.Scale {
			for _, background := range backgrounds {
				if got := contrast(c, background); got < want || name != ThemeDefault && i > 0 && got <= contrast(theme.Scale[i-1], background) {
					t.Errorf("%s: the contrast of level %d on %v is %.1f", name, i, background, got)
				}
			}
		}
	}
}

// TestColorsDiffer compares the tones with each other, and the levels with each other and with what
// needs somebody, with 256 colors and with 16.
func TestColorsDiffer(t *testing.T) {
	for _, name := range Themes() {
		theme := NewTheme(name)
		tones := func(names ...string) (colors []color.Color) {
			for _, of := range names {
				colors = append(colors, theme.Styles[of].Color)
			}
			return colors
		}
		for profile, scale := range map[colorprofile.Profile][Levels]color.Color{colorprofile.ANSI256: theme.Scale, colorprofile.ANSI: theme.Scale16} {
			for _, all := range [][]color.Color{tones("good", "busy", "warning", "bad"), append(tones("warning", "bad"), scale[:]...)} {
				seen := map[color.Color]bool{}
				for _, c := range all {
					seen[profile.Convert(c)] = true
				}
				if len(seen) != len(all) {
					t.Errorf("%s with %s: %d of %v differ", name, profile, len(seen), all)
				}
			}
		}
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
