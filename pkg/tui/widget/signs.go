// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import "strings"

// PaintStrip colors the signs of devices.
func (l *Look) PaintStrip(text string) string {
	tones := map[string]Tone{}
	for _, sign := range l.Signs() {
		tones[sign.Glyph] = sign.Tone
	}
	var painted, run strings.Builder
	last := Plain
	flush := func() {
		painted.WriteString(l.Say(last, run.String()))
		run.Reset()
	}
	for _, r := range text {
		if t := tones[string(r)]; t != last {
			flush()
			last = t
		}
		run.WriteRune(r)
	}
	flush()
	return painted.String()
}

// Sign stands for a device.
type Sign struct {
	Glyph, Means string
	Tone         Tone
}

// Signs returns all of them.
func (l *Look) Signs() []Sign {
	return []Sign{
		{l.Glyphs.Free, "free", Good},
		{l.Glyphs.Allocated, "used", Busy},
		{l.Glyphs.Shared, "shared", Busy},
		{l.Glyphs.TaintedInUse, "used+tainted", Bad},
		{l.Glyphs.Blocked, "blocked", Faint},
		{l.Glyphs.Tainted, "tainted", Warning},
		{l.Glyphs.Unusable, "unusable", Bad},
		{l.Glyphs.Unhealthy, "unhealthy", Bad},
	}
}

// Legend explains the signs, in no more than 80 columns.
func (l *Look) Legend() string {
	parts := make([]string, 0, len(l.Signs()))
	for _, sign := range l.Signs() {
		parts = append(parts, l.Say(sign.Tone, sign.Glyph)+" "+sign.Means)
	}
	return strings.Join(parts, " ")
}
