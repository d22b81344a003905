// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"math"
	"strings"
)

// History draws shares from 0 to 1 over time, the newest on the right, each cell with
// the mean of its part. What is negative is not known, and left blank.
func (l *Look) History(shares []float64, width int) string {
	var line strings.Builder
	levels := l.Glyphs.Levels
	for cell := range width {
		sum, n := 0.0, 0
		for _, share := range shares[cell*len(shares)/width : max((cell+1)*len(shares)/width, min(cell*len(shares)/width+1, len(shares)))] {
			if share >= 0 {
				sum += share
				n++
			}
		}
		if n == 0 {
			line.WriteByte(' ')
			continue
		}
		level := int(sum / float64(n) * float64(len(levels)))
		line.WriteString(levels[min(max(level, 0), len(levels)-1)])
	}
	return line.String()
}

// Share returns a bar of a share from 0 to 1.
func (l *Look) Share(share float64, width int) string {
	full := min(max(int(math.Round(share*float64(width))), 0), width)
	if share > 0 && width > 0 {
		full = max(full, 1)
	}
	return l.Say(Busy, strings.Repeat(l.Glyphs.Allocated, full)) + l.Say(Faint, strings.Repeat(l.Glyphs.Free, width-full))
}
