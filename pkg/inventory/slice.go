// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// Slices lists all ResourceSlices by driver, pool and name.
func (v *Inventory) Slices() []api.Slice {
	list := make([]api.Slice, 0, len(v.cluster.Snapshot.Slices))
	for _, pool := range v.cluster.Pools.All() {
		all := slices.Concat(pool.Obsolete, pool.Slices)
		for _, slice := range all {
			list = append(list, describeSlice(v.eligible, v.notRead, pool, slice))
		}
	}
	return list
}

func describeSlice(eligible *eligibility.Devices, notRead notRead, pool *cluster.Pool, slice *resourceapi.ResourceSlice) api.Slice {
	out := api.Slice{
		TypeMeta: typeMeta("Slice"),
		Name:     slice.Name, Driver: pool.Driver, Pool: pool.Name, Labels: slice.Labels,
		Generation: slice.Spec.Pool.Generation, PoolGeneration: pool.Generation,
		Devices: len(slice.Spec.Devices),
	}
	out.Node, out.Scope = scopeOf(slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector)
	out.Created, out.AgeSeconds = age(eligible.Facts, slice.CreationTimestamp)
	for _, set := range slice.Spec.SharedCounters {
		out.Counters += len(set.Counters)
	}
	out.State, out.Reason = sliceState(eligible, pool, slice)
	if slice.Spec.Pool.Generation < pool.Generation {
		return out
	}
	for i := range slice.Spec.Devices {
		device := cluster.DeviceIn(pool, slice, i)
		state, _ := deviceState(eligible, &device)
		if state == api.DeviceStateFree {
			out.Free++
			out.FreeIsUpperBound = notRead.uncertain(state)
		}
	}
	return out
}

// StillTaken counts the devices of earlier generations that the allocator takes
// all the same, for nodes without newer slices. They are in no list and no count
// of devices.
func (v *Inventory) StillTaken() int {
	count := 0
	for _, pool := range v.cluster.Pools.All() {
		for _, slice := range pool.Obsolete {
			count += v.eligible.StillTaken(slice)
		}
	}
	return count
}

// stillTaken is said of devices of an earlier generation that are not listed.
const stillTaken = "the allocator still takes its devices for nodes without newer slices"

func sliceState(eligible *eligibility.Devices, pool *cluster.Pool, slice *resourceapi.ResourceSlice) (api.SliceState, string) {
	node := ptr.Deref(slice.Spec.NodeName, "")
	switch {
	case slice.Spec.Pool.Generation < pool.Generation && eligible.StillTaken(slice) > 0:
		return api.SliceStateObsolete, fmt.Sprintf("generation %d, the pool is at %d; %s", slice.Spec.Pool.Generation, pool.Generation, stillTaken)
	case slice.Spec.Pool.Generation < pool.Generation:
		return api.SliceStateObsolete, fmt.Sprintf("generation %d, the pool is at %d", slice.Spec.Pool.Generation, pool.Generation)
	case node != "" && nodeGone(eligible.Facts, node):
		return api.SliceStateNodeGone, fmt.Sprintf("node %s does not exist", node)
	case pool.Incomplete:
		return api.SliceStateIncomplete, pool.WhyIncomplete()
	case pool.Invalid != "":
		return api.SliceStateInvalid, pool.Invalid
	case len(slice.Spec.Devices) == 0 && len(slice.Spec.SharedCounters) == 0:
		return api.SliceStateEmpty, "no devices"
	case node != "" && notReady(eligible.Facts.Snapshot.Node(node)):
		return api.SliceStateNodeNotReady, fmt.Sprintf("node %s is not ready", node)
	default:
		return api.SliceStateCurrent, ""
	}
}

func notReady(node *corev1.Node) bool { return node != nil && cluster.NotReady(node) != nil }
