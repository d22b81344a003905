// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// RefusedWorkloads lists the workloads whose pods use devices, and that the API server
// refuses.
func RefusedWorkloads(c *cluster.Cluster) []*lifecycle.Refusal {
	return slices.DeleteFunc(lifecycle.Refusals(c.Snapshot), func(r *lifecycle.Refusal) bool {
		w := r.Workload
		return !c.WantsDevices(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}, Spec: w.Template.Spec})
	})
}
