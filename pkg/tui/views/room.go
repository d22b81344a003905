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
// as one node has, and how many nodes have some of them available.
func NodeRoom(ctx context.Context, facts *cluster.Cluster, known *inventory.Inventory) (string, error) {
	classes, err := known.Classes(ctx)
	if err != nil {
		return "", err
	}
	if len(classes) == 0 {
		return "no DeviceClasses", nil
	}
	class := slices.MaxFunc(classes, func(a, b api.Class) int { return a.Devices - b.Devices })
	ids, _, err := known.Choose(ctx, facts.Snapshot.Class(class.Name).Spec.Selectors)
	if err != nil {
		return "", err
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
		return "no class has devices on a node", nil
	}
	spec := &resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
		Name: "devices", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class.Name, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(most)},
	}}}}
	state := facts
	shape, with := forecast.ShapeOfClaims(facts.Snapshot, "default", "copy", spec)
	state = state.Amended(with)
	found, err := forecast.CountShape(ctx, state, shape, 1)
	if err != nil {
		return "", err
	}
	if found.Verdict == api.Undetermined {
		return "not known on how many nodes large claims fit: " + found.Summary, nil
	}
	fits := 0
	for i := range found.Nodes {
		if found.Nodes[i].Now > 0 {
			fits += found.Nodes[i].Count
		}
	}
	some := 0
	nodes := known.Nodes()
	for i := range nodes {
		if c := &nodes[i].Devices; c.Free > 0 && c.Free < c.Total {
			some++
		}
	}
	return fmt.Sprintf("%d of %s fit on %s; partly free: %s", most, class.Name, NodeCount(fits), NodeCount(some)), nil
}

// NodeCount returns "5,000 nodes".
func NodeCount(n int) string {
	if n == 1 {
		return "1 node"
	}
	return english.Thousands(n) + " nodes"
}
