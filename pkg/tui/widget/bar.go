// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
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
