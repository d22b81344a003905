// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// ClosedNode is a node with devices that takes no new pods, or is not there.
type ClosedNode struct {
	Name string
	// Cordoned is true if its spec.unschedulable is set; State is NotReady or Gone
	// where that is why.
	Cordoned bool
	State    string
	// Devices counts the devices of its pools.
	Devices api.DeviceCounts
}

// ClosedNodes lists the nodes that are cordoned, not ready or gone, by name, with the
// devices of the pools that are for them alone.
func (v *Inventory) ClosedNodes(pools []api.Pool) []ClosedNode {
	closed := map[string]*ClosedNode{}
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
			closed[name] = &ClosedNode{Name: name, Cordoned: cordoned}
			if state != NodeReady {
				closed[name].State = state
			}
		}
		AddCounts(&closed[name].Devices, pools[i].Devices)
	}
	list := make([]ClosedNode, 0, len(closed))
	for _, node := range closed {
		list = append(list, *node)
	}
	slices.SortFunc(list, func(a, b ClosedNode) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// nodeTaints returns the taints of a node that keep pods away or evict them, without the
// taint of a cordoned node.
func nodeTaints(node *corev1.Node) []string {
	var taints []string
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || taint.Key == corev1.TaintNodeUnschedulable {
			continue
		}
		taints = append(taints, taint.ToString())
	}
	return taints
}
