// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

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
	for _, change := range cluster.BehaviorChanges() {
		was, is := before.Behaves(change.Behavior), after.Behaves(change.Behavior)
		if was == is {
			continue
		}
		component, when := "kube-scheduler", "from then on"
		if change.Behavior == cluster.ExtendedNotEvicted {
			component = "kube-controller-manager"
		}
		if was {
			when = "no longer"
		}
		notes = append(notes, fmt.Sprintf("%s, %s: %s (kubernetes/kubernetes#%d)", component, when, change.Behavior.Text(), change.Upstream))
	}
	return notes
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
