// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

// nodes returns the map of the nodes. The cursor moves between its cells.
func (p *Page) nodes() box {
	selected := func(int) Node { return p.model.Node(p.cells.Selected()) }
	return box{
		name: "nodes", title: "Nodes " + p.model.NodesTitle, cells: &p.cells, count: p.cells.Count(), all: p.model.OpenNodes,
		id:    func(int) string { return "" },
		open:  func(i int) any { return selected(i).Open },
		item:  func(i int) any { return selected(i).Item },
		about: func(i int) (string, []string) { return "Node", selected(i).About },
		rows: func(int) (string, []string) {
			return "", p.cells.View(p.look, p.selected == nodesKey)
		},
	}
}

// nodesKey is the key of the map of nodes, as if it were a row.
const nodesKey = "nodes "
