// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// mapped makes a page with a map of so many nodes.
func mapped(width, height, nodes int) *Page {
	m := model(20)
	m.Room, m.OpenNodes = []string{"8 fit on 2 nodes"}, "all nodes"
	m.NodeLegend = func(bool) []string { return []string{"▇ used"} }
	m.Node = func(key string) Node { return Node{About: []string{"this is " + key}, Open: "open " + key, Item: key} }
	m.Nodes = []widget.HeatGroup{{}}
	for i := range nodes {
		m.Nodes[0].Cells = append(m.Nodes[0].Cells, widget.HeatCell{Key: fmt.Sprint("node-", i), Glyph: "▇"})
	}
	return page(width, height, m)
}

// TestMapOnPage shows every node of a fleet also on the smallest terminals, where the cursor leads to
// them, with wider cells where there is room, and leaves room for causes and for what waits.
func TestMapOnPage(t *testing.T) {
	for _, c := range []struct{ width, height, nodes, lines, cell int }{
		{80, 20, 600, 8, 1}, {120, 36, 600, 6, 1}, {200, 56, 600, 16, 2}, {200, 56, 24, 2, 4}, {200, 56, 5000, 27, 1},
	} {
		p := mapped(c.width, c.height, c.nodes)
		if waiting := strings.Count(ansi.Strip(p.View()), "research/pod-"); waiting < 4 {
			t.Errorf("%dx%d has %d lines of what waits\n%s", c.width, c.height, waiting, ansi.Strip(p.View()))
		}
		if c.height < pairLines {
			for range 100 {
				if p.Move(1); p.selected == nodesKey {
					break
				}
			}
		}
		text := strings.ReplaceAll(ansi.Strip(p.View()), "››", " ▇")
		lines, cells := 0, 0
		for line := range strings.SplitSeq(text, "\n") {
			line = string([]rune(line)[:min(len([]rune(line)), c.width)])
			if strings.HasPrefix(line, " "+strings.Repeat("▇", c.cell)) {
				lines++
				cells += strings.Count(line, "▇")
			}
		}
		if lines != c.lines || c.nodes < 5000 && cells < c.nodes*c.cell || !strings.Contains(text, "8 fit on 2 nodes") || !strings.Contains(text, "\nCauses") {
			t.Errorf("%dx%d has %d lines of %d cells\n%s", c.width, c.height, lines, cells/c.cell, text)
		}
	}
}

// TestMoveOnMap moves between cells, and on to the rows above and below.
func TestMoveOnMap(t *testing.T) {
	p := mapped(120, 36, 300)
	for range 100 {
		if p.Selected() == "open node-0" {
			break
		}
		p.Move(1)
	}
	p.Right(3)
	if got := p.Item(); got != "node-3" || !strings.Contains(p.View(), "this is node-3") {
		t.Fatalf("on %v", got)
	}
	p.Move(1)
	below, ok := p.Item().(string)
	if p.Move(-1); !ok || !strings.HasPrefix(below, "node-") || p.Item() != "node-3" {
		t.Errorf("from %v back to %v", below, p.Item())
	}
	p.Move(-1)
	if got := p.Section(); got == "all nodes" {
		t.Errorf("above the map is %v", got)
	}
	p.Move(1)
	p.Move(50)
	if got := p.Section(); got == "all nodes" {
		t.Errorf("below the map is %v", got)
	}
}
