// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// ClosedNodes lists the nodes that are cordoned, not ready or gone, by name, with the
// devices of the pools that are for them alone.
func (v *Inventory) ClosedNodes(pools []api.Pool) []Node {
	closed := map[string]*Node{}
	for i := range pools {
		name := pools[i].Node
		if name == "" {
			continue
		}
		if closed[name] == nil {
			node, state := v.cluster.Snapshot.Node(name), nodeState(v.cluster, name)
			cordoned := node != nil && node.Spec.Unschedulable
			if !cordoned && state != NodeNotReady && state != NodeGone {
				continue
			}
			closed[name] = &Node{Node: api.Node{Name: name, Scope: name, State: state, Cordoned: cordoned}}
		}
		AddCounts(&closed[name].Devices, pools[i].Devices)
	}
	list := make([]Node, 0, len(closed))
	for _, node := range closed {
		list = append(list, *node)
	}
	slices.SortFunc(list, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
