// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// group has the pods of one workload, or a bare pod.
type group struct {
	object   api.ObjectRef
	workload whatif.Workload
	// owned is true if the pods have a workload.
	owned bool
	pods  []*corev1.Pod
}

// groups returns the workloads whose pods ask for extended resources, in the order of the snapshot.
// Pods that are finished do not count.
func groups(snap *snapshot.Snapshot, namespace string) []*group {
	var list []*group
	known := map[api.ObjectRef]*group{}
	for _, pod := range snap.Pods {
		if namespace != "" && pod.Namespace != namespace || snapshot.Finished(pod) || len(cluster.ExtendedResources(pod)) == 0 {
			continue
		}
		g := &group{object: api.RefTo(api.KindPod, pod)}
		if g.workload, g.owned = whatif.WorkloadOf(snap, pod); g.owned {
			g.object = g.workload.ObjectRef
		}
		if known[g.object] == nil {
			known[g.object], list = g, append(list, g)
		}
		known[g.object].pods = append(known[g.object].pods, pod)
	}
	return list
}
