// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// AddNodes returns the snapshot with more nodes like one of it, without any pods, each with
// pools of its own like the pools that only that node has. The argument is not modified,
// and all other objects are shared.
func AddNodes(snap *snapshot.Snapshot, like string, count int) *snapshot.Snapshot {
	node := snap.Node(like)
	if node == nil {
		return snap
	}
	after := *snap
	after.Nodes, after.Slices = slices.Clone(snap.Nodes), slices.Clone(snap.Slices)
	for i := range count {
		suffix := fmt.Sprintf("-new-%d", i)
		after.Nodes = append(after.Nodes, newNode(node, suffix))
		for _, slice := range snap.Slices {
			if ptr.Deref(slice.Spec.NodeName, "") != like {
				continue
			}
			added := *slice
			added.Name, added.UID = slice.Name+suffix, ""
			added.Spec.NodeName = ptr.To(like + suffix)
			added.Spec.Pool.Name = slice.Spec.Pool.Name + suffix
			after.Slices = append(after.Slices, &added)
		}
	}
	snapshot.SortByName(after.Nodes)
	snapshot.SortByName(after.Slices)
	return &after
}

// PublishLike returns the snapshot in which a driver publishes for a node what it publishes for another
// one, but for no more than so many devices. The argument is not modified, and all other objects are
// shared.
func PublishLike(snap *snapshot.Snapshot, driver, like, node string, most int) *snapshot.Snapshot {
	after := *snap
	after.Slices = slices.Clone(snap.Slices)
	for _, slice := range snap.Slices {
		if slice.Spec.Driver != driver || ptr.Deref(slice.Spec.NodeName, "") != like {
			continue
		}
		added := *slice
		added.Name, added.UID = slice.Name+"-"+node, ""
		added.Spec.NodeName = new(node)
		if added.Spec.Pool.Name = slice.Spec.Pool.Name + "-" + node; slice.Spec.Pool.Name == like {
			added.Spec.Pool.Name = node
		}
		if len(slice.Spec.Devices) > most {
			added.Spec.Devices = slice.Spec.Devices[:most:most]
		}
		most -= len(added.Spec.Devices)
		after.Slices = append(after.Slices, &added)
	}
	snapshot.SortByName(after.Slices)
	return &after
}

// newNode returns a healthy node.
func newNode(like *corev1.Node, suffix string) *corev1.Node {
	node := like.DeepCopy()
	node.Name, node.UID = like.Name+suffix, ""
	if node.Labels[corev1.LabelHostname] != "" {
		node.Labels[corev1.LabelHostname] = node.Name
	}
	node.Spec.Unschedulable = false
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return strings.HasPrefix(taint.Key, "node.kubernetes.io/") })
	return node
}

// RemoveNode returns the snapshot without a node and its own slices. Pods and claims stay
// as they are. The argument is not modified, and all other objects are shared.
func RemoveNode(snap *snapshot.Snapshot, name string) *snapshot.Snapshot {
	after := *snap
	after.Nodes = slices.DeleteFunc(slices.Clone(snap.Nodes), func(node *corev1.Node) bool { return node.Name == name })
	after.Slices = slices.DeleteFunc(slices.Clone(snap.Slices), func(slice *resourceapi.ResourceSlice) bool { return ptr.Deref(slice.Spec.NodeName, "") == name })
	return &after
}

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
