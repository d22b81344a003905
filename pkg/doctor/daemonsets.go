// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// daemonSets lists the DaemonSets of drivers that publish slices, or that the selector of a
// class names.
func daemonSets(in *cluster) []*snapshot.Workload {
	var found []*snapshot.Workload
	for _, p := range plugins(in) {
		if !slices.Contains(found, p.Workload) {
			found = append(found, p.Workload)
		}
	}
	for _, w := range in.cluster.Snapshot.Workloads {
		if names, ok := w.KubeletPlugin(); ok && !slices.Contains(found, w) && slices.ContainsFunc(names, func(name string) bool { return isClassDriver(in, name) }) {
			found = append(found, w)
		}
	}
	return found
}

// isClassDriver reports whether the selector of a class names a driver.
func isClassDriver(in *cluster, name string) bool {
	selectors := in.cluster.Gates.Selectors()
	for _, class := range in.cluster.Snapshot.Classes {
		for _, s := range class.Spec.Selectors {
			if s.CEL != nil && slices.Contains(selectors.Compile(s.CEL.Expression).Drivers(), name) {
				return true
			}
		}
	}
	return false
}

// plugins lists the DaemonSets of all drivers that publish slices.
func plugins(in *cluster) []plugin {
	var found []plugin
	seen := map[string]bool{}
	for _, slice := range in.cluster.Snapshot.Slices {
		driver := slice.Spec.Driver
		if seen[driver] {
			continue
		}
		seen[driver] = true
		for _, set := range lifecycle.DaemonSets(in.cluster.Snapshot, driver) {
			found = append(found, plugin{set, driver})
		}
	}
	return found
}

// plugin is a DaemonSet with the kubelet plugin of a driver.
type plugin struct {
	lifecycle.DaemonSet
	driver string
}

// waitsForPlugin reports whether a pod waits for a plugin that does not answer, because the
// plugin's pod on the node is not ready.
func (in *cluster) waitsForPlugin(blocked *lifecycle.BlockedPod, w *snapshot.Workload) bool {
	pod := in.cluster.Snapshot.Pod(blocked.Namespace, blocked.Name)
	return blocked.Code == api.PreparationFailed && pod != nil && slices.ContainsFunc(lifecycle.Pods(in.cluster.Snapshot, w), func(p *corev1.Pod) bool {
		return lifecycle.DaemonNode(p) == blocked.Node && !lifecycle.Ready(p)
	}) && slices.ContainsFunc(in.cluster.Claims.OfPod(pod), func(pc facts.PodClaim) bool {
		return pc.Claim != nil && pc.Claim.Status.Allocation != nil && slices.ContainsFunc(pc.Claim.Status.Allocation.Devices.Results, func(r resourceapi.DeviceRequestAllocationResult) bool {
			return slices.ContainsFunc(lifecycle.DaemonSets(in.cluster.Snapshot, r.Driver), func(set lifecycle.DaemonSet) bool { return set.Workload == w })
		})
	})
}
