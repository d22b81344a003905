// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// nodeContent is the map: each node with a strip of its devices.
type nodeContent struct {
	widget.ListOf[inventory.Node]
}

const stripTitle = "Devices"

func newNodes(p *live.Picture, l *widget.Look) widget.Content {
	s := &nodeContent{}
	s.ListOf = widget.ListOf[inventory.Node]{
		Items: troubleFirst(p.Inventory.Nodes(), nodeTone),
		Cols: append(tables.NodeColumns(), render.Column[inventory.Node]{
			Name: stripTitle, Cell: func(n *inventory.Node) string { return NodeStrip(l, n) },
		}, tables.NodeTaints()),
		ID:    func(n *inventory.Node) string { return n.Scope },
		State: nodeTone, StateColumn: "State",
	}
	return s
}

func nodeTone(n *inventory.Node) widget.Tone {
	switch {
	case n.State == inventory.NodeNotReady, n.State == inventory.NodeGone, n.Devices.Unusable > 0, n.Devices.Unhealthy > 0:
		return widget.Bad
	case n.Cordoned, len(n.Taints) > 0, n.Devices.Tainted > 0, n.Devices.TaintedInUse > 0:
		return widget.Warning
	case n.State == inventory.NodeReady:
		return widget.Good
	default:
		return widget.Plain
	}
}

// NodesOf returns the nodes of rows, or of all if there is no list of these; none of
// another view.
func NodesOf(c widget.Content, rows []int) []*inventory.Node {
	all, ok := c.(*nodeContent)
	if !ok {
		return nil
	}
	var nodes []*inventory.Node
	if rows == nil {
		for i := range all.Items {
			nodes = append(nodes, &all.Items[i])
		}
	}
	for _, row := range rows {
		nodes = append(nodes, &all.Items[row])
	}
	return nodes
}

// Paint draws strips in colors of their own.
func (s *nodeContent) Paint(l *widget.Look, row, column int, text string) string {
	if s.Cols[column].Name != stripTitle {
		return s.ListOf.Paint(l, row, column, text)
	}
	return l.PaintStrip(text)
}
