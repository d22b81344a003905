// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/nodemap"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/picture"
)

// nodeContent is the map: each node with a strip of its devices.
type nodeContent struct {
	listOf[inventory.Node]
}

const stripTitle = "Devices"

func newNodes(p *picture.Picture, l *look.Look) content {
	s := &nodeContent{}
	s.listOf = listOf[inventory.Node]{
		items: p.Inventory.Nodes(),
		cols: append(render.NodeColumns(), render.Column[inventory.Node]{
			Name: stripTitle, Cell: func(n *inventory.Node) string { return nodemap.Strip(l, n) },
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

func (s *nodeContent) paint(l *look.Look, row, column int, text string) string {
	if s.cols[column].Name != stripTitle {
		return s.listOf.paint(l, row, column, text)
	}
	return l.PaintStrip(text)
}
