// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
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

// NodeCell returns the cell of a node: how much of it is used, with a sign for its trouble. Where
// there is room for one sign, the share is a digit, in eighths, for a node in trouble.
func NodeCell(l *widget.Look, n *inventory.Node) widget.HeatCell {
	step := min(n.Used()*widget.Levels/max(n.Devices.Total, 1), widget.Levels-1)
	cell := widget.HeatCell{Key: n.Scope, Glyph: l.Glyphs.Levels[step], Tone: widget.Level(step), MarkTone: widget.Warning}
	switch digit := strconv.Itoa(step + 1); n.Trouble() {
	case inventory.AwayNode:
		cell.Mark, cell.Alone, cell.MarkTone = l.Glyphs.Unhealthy, l.Glyphs.Unhealthy, widget.Bad
	case inventory.CordonedNode:
		cell.Mark, cell.Alone = l.Glyphs.Closed, digit
	case inventory.DevicesInTrouble:
		cell.Mark, cell.Alone = l.Glyphs.Tainted, digit
		if n.Devices.Unhealthy+n.Devices.Unusable > 0 {
			cell.MarkTone = widget.Bad
		}
	case inventory.TaintedNode:
		cell.Mark, cell.MarkTone = nodeTaintSign, widget.Faint
	case inventory.NoTrouble:
	}
	return cell
}

// nodeTaintSign marks a node with a taint of its own.
const nodeTaintSign = "t"

// NodeGroups draws nodes as cells, in groups; a node is known by its scope.
func NodeGroups(l *widget.Look, snap *snapshot.Snapshot, nodes []*inventory.Node, by inventory.Grouping, order inventory.Order) []widget.HeatGroup {
	// The list of nodes has others first.
	nodes = slices.SortedStableFunc(slices.Values(nodes), func(a, b *inventory.Node) int {
		if (a.Name == "") != (b.Name == "") {
			return cmp.Compare(b.Name, a.Name)
		}
		return cmp.Compare(a.Scope, b.Scope)
	})
	groups := inventory.GroupNodes(snap, nodes, by, order)
	list := make([]widget.HeatGroup, 0, len(groups))
	for _, g := range groups {
		drawn := widget.HeatGroup{Name: g.Name, Cells: make([]widget.HeatCell, 0, len(g.Nodes))}
		for _, n := range g.Nodes {
			drawn.Cells = append(drawn.Cells, NodeCell(l, n))
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
	return fmt.Sprintf("%3d %%  %s %s", g.Used*100/max(g.Total, 1), english.Thousands(n), what)
}

// NodeLegend explains the cells of a map, the most important text first. Narrow is for cells with room
// for one sign.
func NodeLegend(l *widget.Look, narrow bool) []string {
	g := &l.Glyphs
	away, used := l.Say(widget.Bad, g.Unhealthy)+" not usable", scale(l)+" used"
	if narrow {
		return []string{l.Say(widget.Warning, "1-8") + " used, in trouble", away, used}
	}
	return []string{
		l.Say(widget.Warning, g.Tainted) + " devices in trouble", l.Say(widget.Warning, g.Closed) + " cordoned", away,
		l.Say(widget.Faint, nodeTaintSign) + " node tainted", used,
	}
}

// scale draws all steps.
func scale(l *widget.Look) string {
	var text strings.Builder
	for step := range widget.Levels {
		text.WriteString(l.Say(widget.Level(step), l.Glyphs.Levels[step]))
	}
	return text.String()
}

// MapHelp explains the map of nodes.
func MapHelp(l *widget.Look) string {
	g := &l.Glyphs
	return l.Say(widget.Strong, "Map of nodes") + fmt.Sprintf("  %s share of the devices that claims use or block, in eighths: from under 13 %% to 88 %% and more; %s cordoned, %s with a taint of the node, %s devices tainted, unhealthy or unusable, %s not ready, gone or without usable devices. Where a cell is one sign, the digits 1 to 8 are the share of a node that is cordoned or has such devices. Behind a group: its share, and how many of its nodes are all free.",
		scale(l), l.Say(widget.Warning, g.Closed), l.Say(widget.Faint, nodeTaintSign), l.Say(widget.Warning, g.Tainted), l.Say(widget.Bad, g.Unhealthy))
}

// AboutNode returns the state of a node and of its devices.
func AboutNode(n *inventory.Node) string {
	c := &n.Devices
	counts := []string{english.Count(c.Total, "device")}
	for _, part := range []struct {
		n    int
		what string
	}{
		{c.Allocated, "allocated"},
		{c.Shared, "shared"},
		{c.Free, "free"},
		{c.Blocked, "blocked"},
		{c.Tainted, "tainted"},
		{c.TaintedInUse, "in use although tainted"},
		{c.Unhealthy, "unhealthy"},
		{c.Unusable, "not usable"},
		{c.Gone, "gone"},
	} {
		if part.n > 0 {
			counts = append(counts, english.Thousands(part.n)+" "+part.what)
		}
	}
	name := n.Scope
	if state := tables.NodeCondition(n.State, n.Cordoned, n.Taints); state != "" {
		name += ", " + state
	}
	return name + ": " + strings.Join(counts, ", ")
}

// aboutNode returns lines about a node.
func aboutNode(l *widget.Look, n *inventory.Node) []string {
	lines := []string{AboutNode(n), NodeStrip(l, n)}
	for _, taint := range n.Taints {
		lines = append(lines, "taint "+taint)
	}
	return lines
}
