// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// Nodes lists nodes with their devices by class.
func Nodes(items []*api.ListedNode) *metav1.Table {
	return render.NewTable(items, []render.Column[api.ListedNode]{
		{Name: "Name", Key: true, Cell: func(n *api.ListedNode) string { return n.Name }},
		{Name: "State", Cell: func(n *api.ListedNode) string { return NodeCondition(n.State, n.Cordoned, n.Taints) }},
		numbers("Devices", func(n *api.ListedNode) int { return n.Devices.Total }),
		bounds("Free", func(n *api.ListedNode) int { return n.Devices.Free }, func(n *api.ListedNode) api.Bound { return render.UpperBound(n.Devices.FreeIsUpperBound) }),
		{Name: "Placeable by class", Cell: nodeClassTexts},
		{Name: "Drivers", Cell: nodeDriverTexts},
		numbers("Pods", func(n *api.ListedNode) int { return n.Pods }),
		{Name: "Problems", Cell: func(n *api.ListedNode) string {
			var parts []string
			for i := range n.Problems {
				parts = append(parts, n.Problems[i].Message)
			}
			return strings.Join(parts, "; ")
		}},
		{Name: "Taints", Wide: true, Cell: func(n *api.ListedNode) string { return strings.Join(n.Taints, ",") }},
	})
}

// nodeClassTexts returns "gpu.example.com 3": placeable claims of each class.
func nodeClassTexts(n *api.ListedNode) string {
	var parts []string
	for i := range n.Classes {
		c := &n.Classes[i]
		parts = append(parts, c.Class+" "+render.AtMost(c.Placeable, c.Devices.FreeIsUpperBound))
	}
	return strings.Join(parts, ", ")
}

// nodeDriverTexts returns the drivers with their versions.
func nodeDriverTexts(n *api.ListedNode) string {
	var parts []string
	for i := range n.Drivers {
		parts = append(parts, strings.TrimSpace(n.Drivers[i].Driver+" "+cmp.Or(n.Drivers[i].Version, n.Drivers[i].Image)))
	}
	return strings.Join(parts, ", ")
}

// NodeColumns returns the columns of a list of nodes.
func NodeColumns() []render.Column[inventory.Node] {
	return []render.Column[inventory.Node]{
		{Name: "Node", Cell: func(n *inventory.Node) string { return n.Scope }},
		{Name: "State", Cell: nodeState},
		numbers("Total", func(n *inventory.Node) int { return n.Devices.Total }),
		bounds("Free", func(n *inventory.Node) int { return n.Devices.Free }, func(n *inventory.Node) api.Bound { return render.UpperBound(n.Devices.FreeIsUpperBound) }),
	}
}

// nodeState returns the condition of a node, with the number of its devices that cannot be used.
func nodeState(n *inventory.Node) string {
	var parts []string
	if condition := NodeCondition(n.State, n.Cordoned, n.Taints); condition != "" {
		parts = append(parts, condition)
	}
	if n.Devices.Unusable > 0 {
		parts = append(parts, fmt.Sprintf("%d unusable", n.Devices.Unusable))
	}
	if n.Devices.Unhealthy > 0 {
		parts = append(parts, fmt.Sprintf("%d unhealthy", n.Devices.Unhealthy))
	}
	return strings.Join(parts, ", ")
}

// NodeCondition returns "Ready, cordoned, tainted".
func NodeCondition(state string, cordoned bool, taints []string) string {
	var parts []string
	if state != "" {
		parts = append(parts, state)
	}
	if cordoned {
		parts = append(parts, "cordoned")
	}
	if len(taints) > 0 {
		parts = append(parts, "tainted")
	}
	return strings.Join(parts, ", ")
}

// NodeTaints returns the column for the taints of the nodes themselves.
func NodeTaints() render.Column[inventory.Node] {
	return render.Column[inventory.Node]{Name: "Taints", Cell: func(n *inventory.Node) string { return strings.Join(n.Taints, ",") }}
}
