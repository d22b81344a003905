// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-dra/kubectl-dra/pkg/behavior"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// upgradeNotes says which gates change, and what the scheduler does otherwise.
func upgradeNotes(before, after *cluster.Cluster) []string {
	var notes []string
	if is, err := version.ParseGeneric(before.Snapshot.ServerVersion); err == nil && version.MustParseGeneric(after.Snapshot.ServerVersion).LessThan(is) {
		notes = append(notes, fmt.Sprintf("the cluster has %s: Kubernetes does not support downgrades", before.Snapshot.ServerVersion))
	}
	for _, name := range snapshot.KnownGates() {
		was, is := before.Snapshot.Gate(name).Enabled, after.Snapshot.Gate(name).Enabled
		if was != is {
			notes = append(notes, fmt.Sprintf("feature gate %s: %s -> %s", name, onOff(was), onOff(is)))
		}
	}
	for _, change := range behavior.Changes() {
		was, is := before.Behaves(change.Behavior), after.Behaves(change.Behavior)
		if was == is {
			continue
		}
		component, when := "kube-scheduler", "from then on"
		if change.Behavior == behavior.ExtendedNotEvicted {
			component = "kube-controller-manager"
		}
		if was {
			when = "no longer"
		}
		notes = append(notes, fmt.Sprintf("%s, %s: %s (kubernetes/kubernetes#%d)", component, when, behaviorText(change.Behavior), change.Upstream))
	}
	return notes
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// behaviorText says in a clause what kube-schedulers of some releases do.
func behaviorText(b behavior.Behavior) string {
	switch b {
	case behavior.AllPoolErrorEndsAttempt:
		return "a request for all devices that meets an incomplete pool on one node keeps the pod from all nodes"
	case behavior.TimeoutEndsAttempt:
		return "a search that takes too long on one node keeps the pod from all nodes"
	case behavior.AllWithCountersPanics:
		return "it panics where a request for all devices takes a partition"
	case behavior.MixedClaimsFailScore:
		return "a pod with some claims allocated and others not is not scheduled if several nodes are suitable"
	case behavior.DistinctPerRequest:
		return "distinctAttribute lets one request get devices with the same value"
	case behavior.ListsNotCompared:
		return "constraints do not compare attributes that are lists"
	case behavior.UnsortedPools:
		return "pools are tried in no certain order"
	case behavior.GroupsNotCompared:
		return "pods are placed even if their priorities differ from that of their PodGroup"
	case behavior.OpenRuleTaintsAll:
		return "a DeviceTaintRule without deviceSelector taints all devices, and evicts nobody"
	case behavior.ExtendedNotEvicted:
		return "taints do not evict pods from the devices of extended resources"
	default:
		return string(b)
	}
}
