// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// room counts the claims with a spec that some devices of one pool take, by the allocator, on a cluster
// that has nothing but these devices: none of them is in use or tainted, and one node reaches them.
func (f *finder) room(ctx context.Context, devices []*cluster.Device, spec *resourceapi.ResourceClaimSpec) (api.CopyCount, error) {
	const name, pods = "node", 1_000_000
	kept := map[string]bool{}
	for _, d := range devices {
		kept[d.ID.Device] = true
	}
	pool := devices[0].Pool
	var published []*resourceapi.ResourceSlice
	for _, slice := range pool.Slices {
		slice = slice.DeepCopy()
		slice.Spec.NodeName, slice.Spec.NodeSelector, slice.Spec.AllNodes, slice.Spec.PerDeviceNodeSelection = new(name), nil, nil, nil
		slice.Spec.Pool.ResourceSliceCount = int64(len(pool.Slices))
		slice.Spec.Devices = slices.DeleteFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return !kept[d.Name] })
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			d.Taints, d.NodeName, d.NodeSelector, d.AllNodes = nil, nil, nil, nil
		}
		published = append(published, slice)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}
	s := f.Snapshot
	shape, snap := ShapeOfClaims(&snapshot.Snapshot{
		Source: s.Source, Clock: s.Clock, Release: s.Release,
		Nodes: []*corev1.Node{node}, Slices: published, Classes: []*resourceapi.DeviceClass{f.class},
	}, f.namespace, request, spec)
	count, err := CountShape(ctx, f.Amended(snap), shape, 1)
	if err != nil {
		return api.CopyCount{}, fmt.Errorf("count claims on %s: %w", devices[0].ID, err)
	}
	if most := count.Now.AtMost; most != nil && *most >= pods {
		// Nothing of the devices limits it.
		count.Now.AtMost = nil
	}
	return count.Now, nil
}
