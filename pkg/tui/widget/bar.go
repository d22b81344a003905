// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"math"
	"strings"

	"charm.land/lipgloss/v2"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// segment is a part of a bar: so many devices, and how they are drawn.
type segment struct {
	count int
	glyph string
	tone  Tone
}

// segments returns the parts of a bar, from used to free.
func (l *Look) segments(c api.DeviceCounts) []segment {
	// Most devices cannot be shared, so those in use and tainted come out of Allocated first.
	allocated := min(c.TaintedInUse, c.Allocated)
	parts := []segment{{c.TaintedInUse, l.Glyphs.TaintedInUse, Bad}}
	c.Allocated -= allocated
	c.Shared -= c.TaintedInUse - allocated
	for _, state := range []api.DeviceState{
		api.DeviceStateAllocated, api.DeviceStateShared, api.DeviceStateBlocked, api.DeviceStateTainted, api.DeviceStateUnusable, api.DeviceStateGone, api.DeviceStateFree,
	} {
		glyph, t := l.OfState(state)
		parts = append(parts, segment{inventory.CountOf(c, state), glyph, t})
	}
	return parts
}

// Bar draws the signs of devices, one after the other. Each state with a device gets at
// least one sign.
func (l *Look) Bar(c api.DeviceCounts, width int) string {
	// Claims have those that are gone.
	c.Total += c.Gone
	if c.Total == 0 {
		return strings.Repeat(" ", width)
	}
	parts := l.segments(c)
	cells := make([]int, len(parts))
	left := width
	for i, part := range parts {
		if part.count > 0 {
			cells[i] = max(part.count*width/c.Total, 1)
			left -= cells[i]
		}
	}
	// What rounding left over goes to the part that lacks most, or comes from the
	// part that has most.
	for left != 0 {
		most := 0
		for i, part := range parts {
			lacks := func(k, count int) int { return count*width - cells[k]*c.Total }
			if left > 0 && lacks(i, part.count) > lacks(most, parts[most].count) || left < 0 && cells[i] > cells[most] {
				most = i
			}
		}
		if left > 0 {
			cells[most]++
			left--
		} else {
			cells[most]--
			left++
		}
	}
	var bar strings.Builder
	for i, part := range parts {
		bar.WriteString(l.Say(part.tone, strings.Repeat(part.glyph, cells[i])))
	}
	return bar.String()
}

// Padded returns a text filled up with blanks, to be at least so wide.
func Padded(text string, width int) string {
	return text + strings.Repeat(" ", max(width-lipgloss.Width(text), 0))
}

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
