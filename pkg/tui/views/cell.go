// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// NodeStrip returns a sign for each device of a node. Those that are plugged in at the same
// place stand together; a line is between drivers.
func NodeStrip(l *widget.Look, n *inventory.Node) string {
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

// NodeCell returns the sign of a node: its problem or else how much of it is used.
func NodeCell(l *widget.Look, n *inventory.Node) (string, widget.Tone) {
	c := &n.Devices
	switch {
	case n.IsAway():
		return l.Glyphs.Unhealthy, widget.Bad
	case n.Cordoned:
		return l.Glyphs.Closed, widget.Warning
	case c.Tainted > 0, c.TaintedInUse > 0, c.Unhealthy > 0:
		return l.Glyphs.Tainted, widget.Warning
	}
	step := min((c.Allocated+c.Shared)*widget.Levels/max(c.Total, 1), widget.Levels-1)
	return l.Glyphs.Levels[step], widget.Level(step)
}

// NodeGroups draws nodes as cells, in groups; a node is known by its scope.
func NodeGroups(l *widget.Look, snap *snapshot.Snapshot, nodes []*inventory.Node, by inventory.Grouping, order inventory.Order) []widget.HeatGroup {
	groups := inventory.GroupNodes(snap, nodes, by, order)
	list := make([]widget.HeatGroup, 0, len(groups))
	for _, g := range groups {
		drawn := widget.HeatGroup{Name: g.Name, Cells: make([]widget.HeatCell, 0, len(g.Nodes))}
		for _, n := range g.Nodes {
			glyph, tone := NodeCell(l, n)
			drawn.Cells = append(drawn.Cells, widget.HeatCell{Key: n.Scope, Glyph: glyph, Tone: tone})
		}
		if by.Any() {
			drawn.Name, drawn.Note = cmp.Or(g.Name, "(none)"), groupNote(g, order)
		}
		list = append(list, drawn)
	}
	return list
}

// groupNote returns what stands behind a group.
func groupNote(g *inventory.NodesTogether, o inventory.Order) string {
	n, what := g.Whole, "all free"
	switch o {
	case inventory.ByFragmented:
		n, what = g.Partly, "partly free"
	case inventory.ByTrouble:
		n, what = g.Trouble, "in trouble"
	case inventory.ByName, inventory.ByUsed, inventory.ByWhole:
	}
	return fmt.Sprintf("%3d %%  %d %s", g.Used*100/max(g.Total, 1), n, what)
}

// NodeLegend explains the signs of cells.
func NodeLegend(l *widget.Look) string {
	g := &l.Glyphs
	return l.Say(widget.Level(0), g.Levels[0]) + g.More + l.Say(widget.Level(widget.Levels-1), g.Levels[widget.Levels-1]) + " used  " +
		l.Say(widget.Warning, g.Closed) + " cordoned  " + l.Say(widget.Warning, g.Tainted) + " tainted, unhealthy  " + l.Say(widget.Bad, g.Unhealthy) + " not usable"
}
