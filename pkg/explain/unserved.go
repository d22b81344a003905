// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// WantsDevices reports whether a pod uses claims or extended resources of DRA, or
// an extended resource that nothing in the cluster serves: that is mostly a typo in
// the name of one that something does.
func WantsDevices(c *cluster.Cluster, pod *corev1.Pod) bool {
	return len(c.Claims.OfPod(pod)) > 0 || len(target.Unserved(c, pod)) > 0
}

// RefusedWorkloads lists the workloads whose pods use devices, and that the API server
// refuses.
func RefusedWorkloads(c *cluster.Cluster) []*lifecycle.Refusal {
	return slices.DeleteFunc(lifecycle.Refusals(c.Snapshot), func(r *lifecycle.Refusal) bool {
		w := r.Workload
		return !WantsDevices(c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}, Spec: w.Template.Spec})
	})
}
