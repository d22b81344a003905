// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
)

// nodeContent is the map: each node with a strip of its devices.
type nodeContent struct {
	listOf[inventory.Node]
}

const stripTitle = "Devices"

func newNodes(p *picture, l *look.Look) content {
	s := &nodeContent{}
	s.listOf = listOf[inventory.Node]{
		items: p.inventory.Nodes(),
		cols: append(render.NodeColumns(), render.Column[inventory.Node]{
			Name: stripTitle, Cell: func(n *inventory.Node) string { return strip(l, n) },
		}, render.NodeTaints()),
		id:    func(n *inventory.Node) string { return n.Scope },
		state: nodeTone, stateColumn: "State",
	}
	return s
}

func nodeTone(n *inventory.Node) look.Tone {
	switch {
	case n.State == "NotReady", n.State == "Gone":
		return look.Bad
	case n.Cordoned, len(n.Taints) > 0:
		return look.Warning
	case n.State == "Ready":
		return look.Good
	default:
		return look.Plain
	}
}

// strip has a sign for each device of a node. Those that are plugged in at the
// same place stand together; a line is between drivers.
func strip(l *look.Look, n *inventory.Node) string {
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

func (s *nodeContent) paint(l *look.Look, row, column int, text string) string {
	if s.cols[column].Name != stripTitle {
		return s.listOf.paint(l, row, column, text)
	}
	return l.PaintStrip(text)
}
