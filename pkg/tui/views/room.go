// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// NodeRoom says on how many nodes a claim fits for as many devices of the most common class
// as one node has, and how many nodes are partly free, a text each. If that is not known, it says why.
func NodeRoom(ctx context.Context, facts *cluster.Cluster, known *inventory.Inventory) ([]string, error) {
	classes, err := known.Classes(ctx)
	if err != nil {
		return nil, err
	}
	if len(classes) == 0 {
		return []string{"no DeviceClasses"}, nil
	}
	class := slices.MaxFunc(classes, func(a, b api.Class) int { return a.Devices - b.Devices })
	ids, _, err := known.Choose(ctx, facts.Snapshot.Class(class.Name).Spec.Selectors)
	if err != nil {
		return nil, err
	}
	perNode, most := map[string]int{}, 0
	for _, id := range ids {
		if d := facts.Pools.Device(id); d != nil {
			if node, _ := inventory.DeviceScope(d); node != "" {
				perNode[node]++
				most = max(most, perNode[node])
			}
		}
	}
	if most == 0 {
		return []string{"no class has devices on a node"}, nil
	}
	spec := &resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
		Name: "devices", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class.Name, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(most)},
	}}}}
	state := facts
	shape, with := forecast.ShapeOfClaims(facts.Snapshot, "default", "copy", spec)
	state = state.Amended(with)
	found, err := forecast.CountShape(ctx, state, shape, 1)
	if err != nil {
		return nil, err
	}
	if found.Verdict == api.Undetermined {
		return []string{"not known on how many nodes large claims fit: " + found.Summary}, nil
	}
	fits := 0
	for i := range found.Nodes {
		if found.Nodes[i].Now > 0 {
			fits += found.Nodes[i].Count
		}
	}
	partly := 0
	for _, g := range inventory.GroupNodes(facts.Snapshot, realNodes(known.Nodes()), inventory.Grouping{}, inventory.ByName) {
		partly += g.Partly
	}
	return []string{fmt.Sprintf("%s of %s fit on %s", english.Thousands(most), class.Name, NodeCount(fits)), "partly free: " + NodeCount(partly)}, nil
}

// realNodes leaves out what devices for several nodes have in place of one.
func realNodes(all []inventory.Node) []*inventory.Node {
	var nodes []*inventory.Node
	for i := range all {
		if all[i].Name != "" {
			nodes = append(nodes, &all[i])
		}
	}
	return nodes
}

// NodesText counts nodes with devices, and what devices for several nodes have in place of one: "11
// nodes with devices, 1 set of nodes". Of is the number of all nodes; 0 if that is not known.
func NodesText(nodes []*inventory.Node, of int) string {
	sets := 0
	for _, n := range nodes {
		if n.Name == "" {
			sets++
		}
	}
	text := NodeCount(len(nodes) - sets)
	if of > 0 {
		text = english.Thousands(len(nodes)-sets) + " of " + english.Thousands(of)
	}
	if text += " with devices"; sets > 0 {
		text += ", " + english.Count(sets, "set") + " of nodes"
	}
	return text
}

// NodeCount returns "5,000 nodes".
func NodeCount(n int) string {
	if n == 1 {
		return "1 node"
	}
	return english.Thousands(n) + " nodes"
}
