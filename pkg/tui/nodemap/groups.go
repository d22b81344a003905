// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodemap

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Grouping is the key by which nodes are grouped: the value of a label, or the drivers of
// their devices. The zero value puts all nodes into one group.
type Grouping struct {
	Label   string
	Drivers bool
}

// Groupings returns the useful groupings of a cluster, the zero value first.
func Groupings(nodes []*corev1.Node) []Grouping {
	labels := map[string]bool{}
	for _, node := range nodes {
		for label := range node.Labels {
			labels[label] = true
		}
	}
	list := []Grouping{{}, {Drivers: true}}
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, Grouping{Label: label})
	}
	return list
}

// Any reports whether nodes are put into groups.
func (g Grouping) Any() bool { return g != Grouping{} }

// Kind returns "label", empty for other groupings.
func (g Grouping) Kind() string {
	if g.Label != "" {
		return "label"
	}
	return ""
}

func (g Grouping) String() string {
	switch {
	case g.Label != "":
		return g.Label
	case g.Drivers:
		return "drivers"
	default:
		return "not grouped"
	}
}

// of returns the name of the group of a node; empty if it has none.
func (g Grouping) of(snap *snapshot.Snapshot, n *inventory.Node) string {
	switch node := snap.Node(n.Name); {
	case g.Drivers:
		var drivers []string
		for i := range n.Groups {
			driver, _, _ := strings.Cut(n.Groups[i].Driver, ".")
			if !slices.Contains(drivers, driver) {
				drivers = append(drivers, driver)
			}
		}
		slices.Sort(drivers)
		return strings.Join(drivers, "+")
	case node != nil && g.Label != "":
		return node.Labels[g.Label]
	default:
		return ""
	}
}

// Order is the order of groups or, where there are none, of nodes.
type Order int

// The orders. By name is that in which the nodes are given.
const (
	ByName Order = iota
	ByUsed
	ByFragmented
	ByWhole
	ByTrouble
)

// Orders returns all of them.
func Orders() []Order { return []Order{ByName, ByUsed, ByFragmented, ByWhole, ByTrouble} }

func (o Order) String() string {
	return []string{"name", "used", "fragmented", "whole nodes free", "trouble"}[o]
}

// amount is how much nodes have of what an order is about: the most comes first.
type amount struct {
	nodes, used, total, partly, whole, trouble int
}

func (a *amount) add(n *inventory.Node) {
	c := &n.Devices
	a.nodes++
	a.used, a.total = a.used+c.Allocated+c.Shared, a.total+c.Total
	open := !isAway(n) && !n.Cordoned
	switch {
	case open && c.Total > 0 && c.Free == c.Total:
		a.whole++
	case open && c.Free > 0:
		a.partly++
	}
	if inTrouble(n) {
		a.trouble++
	}
}

func (a *amount) of(o Order) float64 {
	switch o {
	case ByUsed:
		return float64(a.used) / float64(max(a.total, 1))
	case ByFragmented:
		return float64(a.partly)
	case ByWhole:
		return float64(a.whole)
	case ByTrouble:
		return float64(a.trouble)
	default:
		return 0
	}
}

// note returns what stands behind a group.
func (a *amount) note(o Order) string {
	n, what := a.whole, "all free"
	switch o {
	case ByFragmented:
		n, what = a.partly, "partly free"
	case ByTrouble:
		n, what = a.trouble, "in trouble"
	case ByName, ByUsed, ByWhole:
	}
	return fmt.Sprintf("%3d %%  %d %s", a.used*100/max(a.total, 1), n, what)
}

// Groups returns the cells of nodes, which are known by their scopes.
func Groups(l *widget.Look, snap *snapshot.Snapshot, nodes []*inventory.Node, by Grouping, order Order) []widget.HeatGroup {
	type group struct {
		widget.HeatGroup
		amount
	}
	if !by.Any() && order != ByName {
		nodes = slices.Clone(nodes)
		most := make(map[*inventory.Node]float64, len(nodes))
		for _, n := range nodes {
			var a amount
			a.add(n)
			most[n] = a.of(order)
		}
		slices.SortStableFunc(nodes, func(a, b *inventory.Node) int { return cmp.Compare(most[b], most[a]) })
	}
	known := map[string]*group{}
	for _, n := range nodes {
		name := by.of(snap, n)
		if known[name] == nil {
			known[name] = &group{HeatGroup: widget.HeatGroup{Name: name}}
		}
		g := known[name]
		glyph, tone := Cell(l, n)
		g.Cells = append(g.Cells, widget.HeatCell{Key: n.Scope, Glyph: glyph, Tone: tone})
		g.add(n)
	}
	groups := make([]*group, 0, len(known))
	for _, name := range slices.SortedFunc(maps.Keys(known), naming.Compare) {
		groups = append(groups, known[name])
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(b.of(order), a.of(order)) })
	list := make([]widget.HeatGroup, 0, len(groups))
	for _, g := range groups {
		if by.Any() {
			g.Name = cmp.Or(g.Name, "(none)")
			g.Note = g.note(order)
		}
		list = append(list, g.HeatGroup)
	}
	return list
}
