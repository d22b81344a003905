// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodemap

import (
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Strip has a sign for each device of a node. Those that are plugged in at the
// same place stand together; a line is between drivers.
func Strip(l *widget.Look, n *inventory.Node) string {
	var text strings.Builder
	for i := range n.Groups {
		group := &n.Groups[i]
		switch {
		case i == 0:
		case group.Driver != n.Groups[i-1].Driver:
			text.WriteString(" " + l.Glyphs.Between + " ")
		default:
			text.WriteByte(' ')
		}
		for _, d := range group.Devices {
			glyph, _ := l.OfState(d.State)
			switch {
			case d.Unhealthy:
				glyph = l.Glyphs.Unhealthy
			case d.TaintedInUse:
				glyph = l.Glyphs.TaintedInUse
			}
			text.WriteString(glyph)
		}
	}
	return text.String()
}

// isAway reports whether no pod can use a node: it is not ready or gone, or all of its
// devices are unusable.
func isAway(n *inventory.Node) bool {
	c := &n.Devices
	return n.State == inventory.NodeNotReady || n.State == inventory.NodeGone || c.Unusable > 0 && c.Unusable == c.Total || c.Gone > 0 && c.Total == 0
}

// inTrouble reports whether something is wrong with a node or its devices.
func inTrouble(n *inventory.Node) bool {
	c := &n.Devices
	return isAway(n) || n.Cordoned || c.Tainted > 0 || c.TaintedInUse > 0 || c.Unhealthy > 0 || c.Unusable > 0
}

// Cell is the sign of a node: what is wrong with it or else how much is used.
func Cell(l *widget.Look, n *inventory.Node) (string, widget.Tone) {
	c := &n.Devices
	switch {
	case isAway(n):
		return l.Glyphs.Unhealthy, widget.Bad
	case n.Cordoned:
		return l.Glyphs.Closed, widget.Warning
	case c.Tainted > 0, c.TaintedInUse > 0, c.Unhealthy > 0:
		return l.Glyphs.Tainted, widget.Warning
	}
	level := (c.Allocated + c.Shared) * len(l.Glyphs.Levels) / max(c.Total, 1)
	tone := widget.Busy
	if c.Free == c.Total {
		tone = widget.Good
	}
	return l.Glyphs.Levels[min(level, len(l.Glyphs.Levels)-1)], tone
}

// Legend explains the signs of cells.
func Legend(l *widget.Look) string {
	g := &l.Glyphs
	return l.Say(widget.Busy, g.Levels[0]+g.More+g.Levels[len(g.Levels)-1]) + " used  " +
		l.Say(widget.Warning, g.Closed) + " cordoned  " + l.Say(widget.Warning, g.Tainted) + " tainted, unhealthy  " + l.Say(widget.Bad, g.Unhealthy) + " not usable"
}
