// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
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
func (g Grouping) of(snap *snapshot.Snapshot, n *Node) string {
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

// Orders returns all orders.
func Orders() []Order { return []Order{ByName, ByUsed, ByFragmented, ByWhole, ByTrouble} }

func (o Order) String() string {
	return []string{"name", "used", "fragmented", "whole nodes free", "trouble"}[o]
}

// NodesTogether are nodes of one group, and how much they have of what groups are sorted by.
type NodesTogether struct {
	// Name is the value that the nodes have in common; empty for nodes without one.
	Name  string
	Nodes []*Node
	// Used counts the used devices, Total all devices, see [Node.Used].
	Used, Total int
	// Whole counts the nodes of which all devices are free, Partly those with some that are;
	// Trouble counts the nodes with which something is wrong, see [NodeTrouble.Any].
	Whole, Partly, Trouble int
}

func (g *NodesTogether) add(n *Node) {
	c := &n.Devices
	g.Nodes = append(g.Nodes, n)
	g.Used, g.Total = g.Used+n.Used(), g.Total+c.Total
	open := !n.IsAway() && !n.Cordoned
	switch {
	case open && c.Total > 0 && c.Free == c.Total:
		g.Whole++
	case open && c.Free > 0:
		g.Partly++
	}
	if n.Trouble().Any() {
		g.Trouble++
	}
}

// amount returns the number that an order compares; the highest comes first.
func (g *NodesTogether) amount(o Order) float64 {
	switch o {
	case ByUsed:
		return float64(g.Used) / float64(max(g.Total, 1))
	case ByFragmented:
		return float64(g.Partly)
	case ByWhole:
		return float64(g.Whole)
	case ByTrouble:
		return float64(g.Trouble)
	default:
		return 0
	}
}

// GroupNodes puts nodes into groups and sorts these or, where there are none, the nodes.
func GroupNodes(snap *snapshot.Snapshot, nodes []*Node, by Grouping, order Order) []*NodesTogether {
	if !by.Any() && order != ByName {
		nodes = slices.Clone(nodes)
		most := make(map[*Node]float64, len(nodes))
		for _, n := range nodes {
			var alone NodesTogether
			alone.add(n)
			most[n] = alone.amount(order)
		}
		slices.SortStableFunc(nodes, func(a, b *Node) int { return cmp.Compare(most[b], most[a]) })
	}
	known := map[string]*NodesTogether{}
	for _, n := range nodes {
		name := by.of(snap, n)
		if known[name] == nil {
			known[name] = &NodesTogether{Name: name}
		}
		known[name].add(n)
	}
	groups := make([]*NodesTogether, 0, len(known))
	for _, name := range slices.SortedFunc(maps.Keys(known), english.CompareNames) {
		groups = append(groups, known[name])
	}
	slices.SortStableFunc(groups, func(a, b *NodesTogether) int { return cmp.Compare(b.amount(order), a.amount(order)) })
	return groups
}

// Groups has the properties of items that a list of groups needs.
type Groups[T any] struct {
	// By is the property that the items of a group have in common, Of what they are.
	By, Of string
	// Names returns the values of the property, which put the item in as many groups; none
	// puts it in the group without a name.
	Names func(T) []string
	// State returns the state of an item; nil if items have none.
	State func(T) string
	// Devices counts the devices of items; nil if they have none.
	Devices func([]T) api.DeviceCounts
}

// List lists the groups of items by name.
func (g *Groups[T]) List(items []T) []api.Group {
	members := map[string][]T{}
	for _, item := range items {
		names := g.Names(item)
		if len(names) == 0 {
			names = []string{""}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			members[name] = append(members[name], item)
		}
	}
	groups := make([]api.Group, 0, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		group := api.Group{TypeMeta: typeMeta("Group"), By: g.By, Name: name, Of: g.Of, Count: len(members[name])}
		for _, item := range members[name] {
			if g.State == nil || g.State(item) == "" {
				continue
			}
			if group.States == nil {
				group.States = map[string]int{}
			}
			group.States[g.State(item)]++
		}
		if g.Devices != nil {
			counts := g.Devices(members[name])
			group.Devices = &counts
		}
		groups = append(groups, group)
	}
	return groups
}

// ClassesOf lists the classes that a claim asks for.
func ClassesOf(c *api.Claim) []string {
	var classes []string
	for i := range c.Requests {
		if r := &c.Requests[i]; r.DeviceClass != "" {
			classes = append(classes, r.DeviceClass)
		}
		classes = append(classes, c.Requests[i].DeviceClasses...)
	}
	return classes
}

// OwnersOf lists the workloads of the pods that use a claim, and the pods without one.
func OwnersOf(facts *cluster.Cluster, c *api.Claim) []string {
	var owners []string
	for _, pod := range facts.Claims.Users(c.Namespace, c.Name) {
		owners = append(owners, ownerName(pod))
	}
	return owners
}
