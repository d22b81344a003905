// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// OnlyNodes returns a snapshot with some of its nodes, and without the pools that only
// others have. The argument is not modified, and all objects are shared.
func OnlyNodes(snap *snapshot.Snapshot, nodes []*corev1.Node) *snapshot.Snapshot {
	kept, pools := map[string]bool{}, map[snapshot.PoolID]bool{}
	for _, node := range nodes {
		kept[node.Name] = true
	}
	for _, slice := range snap.Slices {
		if name := slice.Spec.NodeName; name == nil || kept[*name] {
			pools[snapshot.PoolOf(slice)] = true
		}
	}
	after := *snap
	if len(snap.Nodes) > 0 {
		after.Nodes = slices.Clone(nodes)
		slices.SortFunc(after.Nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	}
	after.Slices = slices.DeleteFunc(slices.Clone(snap.Slices), func(slice *resourceapi.ResourceSlice) bool {
		return !pools[snapshot.PoolOf(slice)]
	})
	return &after
}

// Local returns a snapshot with some nodes, their pools, the pods there and the claims with
// devices of these pools: everything that matters to a pod on these nodes, apart from its
// own claims and from pods elsewhere. The argument is not modified, and all objects are
// shared.
func Local(snap *snapshot.Snapshot, nodes []*corev1.Node) *snapshot.Snapshot {
	after := *OnlyNodes(snap, nodes)
	kept := map[string]bool{}
	for _, node := range nodes {
		kept[node.Name] = true
	}
	pools := map[snapshot.PoolID]bool{}
	for _, slice := range after.Slices {
		pools[snapshot.PoolOf(slice)] = true
	}
	after.Pods, after.Claims = nil, nil
	for _, pod := range snap.Pods {
		if kept[pod.Spec.NodeName] {
			after.Pods = append(after.Pods, pod)
		}
	}
	for _, claim := range snap.Claims {
		if claim.Status.Allocation != nil && slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(r resourceapi.DeviceRequestAllocationResult) bool {
			return pools[snapshot.PoolID{Driver: r.Driver, Name: r.Pool}]
		}) {
			after.Claims = append(after.Claims, claim)
		}
	}
	return &after
}
