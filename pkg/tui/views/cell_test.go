// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// fleet returns nodes with eight devices each, of which so many are used.
func fleet() (*snapshot.Snapshot, []*inventory.Node) {
	snap := &snapshot.Snapshot{}
	var nodes []*inventory.Node
	add := func(rack string, used int, amend func(n *inventory.Node)) {
		name := fmt.Sprintf("node-%d", len(nodes))
		snap.Nodes = append(snap.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rack": rack}}})
		n := &inventory.Node{
			Node:   api.Node{Name: name, Scope: name, State: "Ready", Devices: api.DeviceCounts{Total: 8, Allocated: used, Free: 8 - used}},
			Groups: []inventory.NodeGroup{{Driver: "gpu.example.com"}},
		}
		if amend != nil {
			amend(n)
		}
		nodes = append(nodes, n)
	}
	add("a", 8, nil)
	add("a", 6, nil)
	add("b", 0, nil)
	add("b", 0, func(n *inventory.Node) { n.Cordoned = true })
	add("b", 4, func(n *inventory.Node) { n.State = "NotReady" })
	add("c", 3, nil)
	add("c", 5, nil)
	add("c", 0, func(n *inventory.Node) { n.Groups = append(n.Groups, inventory.NodeGroup{Driver: "nic.example.com"}) })
	add("c", 0, nil)
	return snap, nodes
}

// TestGroups puts nodes together, and the groups that have most of something first.
func TestGroups(t *testing.T) {
	snap, nodes := fleet()
	l := widget.NewLook(func(string) string { return "" })
	for _, test := range []struct {
		by    inventory.Grouping
		order inventory.Order
		want  []string
	}{
		{inventory.Grouping{Label: "rack"}, inventory.ByName, []string{"a █▇  87 %  0 all free", "b ▁▁○▅✗  16 %  1 all free", "c ▄▆▁▁  25 %  2 all free"}},
		{inventory.Grouping{Label: "rack"}, inventory.ByUsed, []string{"a █▇  87 %  0 all free", "c ▄▆▁▁  25 %  2 all free", "b ▁▁○▅✗  16 %  1 all free"}},
		{inventory.Grouping{Label: "rack"}, inventory.ByFragmented, []string{"c ▄▆▁▁  25 %  2 partly free", "a █▇  87 %  1 partly free", "b ▁▁○▅✗  16 %  0 partly free"}},
		{inventory.Grouping{Label: "rack"}, inventory.ByWhole, []string{"c ▄▆▁▁  25 %  2 all free", "b ▁▁○▅✗  16 %  1 all free", "a █▇  87 %  0 all free"}},
		{inventory.Grouping{Label: "rack"}, inventory.ByTrouble, []string{"b ▁▁○▅✗  16 %  2 in trouble", "a █▇  87 %  0 in trouble", "c ▄▆▁▁  25 %  0 in trouble"}},
		{inventory.Grouping{Drivers: true}, inventory.ByName, []string{"gpu █▇▁▁○▅✗▄▆▁  40 %  2 all free", "gpu+nic ▁   0 %  1 all free"}},
		{inventory.Grouping{Label: "nosuch"}, inventory.ByName, []string{"(none) █▇▁▁○▅✗▄▆▁▁  36 %  3 all free"}},
		{inventory.Grouping{}, inventory.ByName, []string{" █▇▁▁○▅✗▄▆▁▁"}},
		{inventory.Grouping{}, inventory.ByUsed, []string{" █▇▆▅✗▄▁▁○▁▁"}},
	} {
		var got []string
		for _, g := range NodeGroups(&l, snap, nodes, test.by, test.order) {
			var cells strings.Builder
			for _, cell := range g.Cells {
				cells.WriteString(cell.Glyph + cell.Mark)
			}
			got = append(got, strings.TrimRight(g.Name+" "+cells.String()+" "+g.Note, " "))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v by %v: %q, want %q", test.by, test.order, got, test.want)
		}
	}
}

// TestGroupings offers all labels of nodes, even one named like another grouping.
func TestGroupings(t *testing.T) {
	snap, _ := fleet()
	snap.Nodes[0].Labels["drivers"] = "yes"
	var got []string
	for _, by := range inventory.Groupings(snap.Nodes) {
		got = append(got, strings.TrimSpace(by.Kind()+" "+by.String()))
	}
	if want := []string{"not grouped", "drivers", "label drivers", "label rack"}; !slices.Equal(got, want) {
		t.Errorf("it offers %q, want %q", got, want)
	}
}

// TestBrokenDevicesAreRed marks nodes with devices that do not work in another color than those with
// tainted ones.
func TestBrokenDevicesAreRed(t *testing.T) {
	l := widget.NewLook(func(string) string { return "" })
	for want, amend := range map[widget.Tone]func(c *api.DeviceCounts){
		widget.Warning: func(c *api.DeviceCounts) { c.Tainted = 1 },
		widget.Bad:     func(c *api.DeviceCounts) { c.Unusable = 1 },
	} {
		_, nodes := fleet()
		amend(&nodes[0].Devices)
		if cell := NodeCell(&l, nodes[0]); cell.Mark != "!" || cell.MarkTone != want {
			t.Errorf("the mark is %q in tone %v, want %v", cell.Mark, cell.MarkTone, want)
		}
	}
}
