// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"context"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// AddPlaceable counts, for each class, the claims for one device that the allocator can place
// now, and the nodes that take them. It fails if ctx is done.
func AddPlaceable(ctx context.Context, c *cluster.Cluster, classes []api.Class) error {
	for i := range classes {
		now, err := oneDevice(ctx, c, classes[i].Name)
		if err != nil {
			return err
		}
		classes[i].Placeable, classes[i].PlaceableNodes = now.count, now.byNumber()
	}
	return nil
}

// AddPlaceableTo is like AddPlaceable, for the capacity of classes.
func AddPlaceableTo(ctx context.Context, c *cluster.Cluster, capacity []api.ClassCapacity) error {
	for i := range capacity {
		if capacity[i].Class == "" {
			continue
		}
		now, err := oneDevice(ctx, c, capacity[i].Class)
		if err != nil {
			return err
		}
		// A pointer into what was counted would keep all of it.
		capacity[i].Placeable, capacity[i].PlaceableNodes = new(now.count), now.byNumber()
	}
	return nil
}

// byNumber counts the nodes that take copies by the number that they take, the highest first.
func (c *counted) byNumber() []api.PlaceableNodes {
	var list []api.PlaceableNodes
	at := map[int]int{}
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		copies := c.nodes[name].copies
		if copies == 0 {
			continue
		}
		if _, ok := at[copies]; !ok {
			at[copies] = len(list)
			list = append(list, api.PlaceableNodes{Placeable: copies, First: name})
		}
		list[at[copies]].Nodes++
	}
	slices.SortFunc(list, func(a, b api.PlaceableNodes) int { return cmp.Compare(b.Placeable, a.Placeable) })
	return list
}

// AddPlaceableOn is like AddPlaceable, for the classes of each node.
func AddPlaceableOn(ctx context.Context, c *cluster.Cluster, nodes []api.ListedNode) error {
	counts := map[string]*counted{}
	for i := range nodes {
		for j := range nodes[i].Classes {
			class := &nodes[i].Classes[j]
			if counts[class.Class] == nil {
				now, err := oneDevice(ctx, c, class.Class)
				if err != nil {
					return err
				}
				counts[class.Class] = now
			}
			if on := counts[class.Class].nodes[nodes[i].Name]; on != nil {
				class.Placeable = on.copies
			}
		}
	}
	return nil
}

// oneDevice counts claims for one device of a class, for pods without tolerations.
func oneDevice(ctx context.Context, c *cluster.Cluster, class string) (*counted, error) {
	shape, snap := ShapeOfClaims(c.Snapshot, metav1.NamespaceDefault, "copy", &resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
		Requests: []resourceapi.DeviceRequest{{
			Name: "device", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1},
		}},
	}})
	return countIn(ctx, &explain.Asker{}, c.Amended(snap), shape.Pod, nil, mostCopies(), false)
}
