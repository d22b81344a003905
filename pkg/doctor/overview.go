// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// Overview makes the overview of a cluster: it explains all pods that wait, and makes all
// checks. Pods and claims are those of a namespace or, if that is empty, of all. The error
// says what failed, which is none of the cluster's faults.
func Overview(ctx context.Context, c *facts.Cluster, namespace string) (*inventory.Overview, error) {
	in := newCluster(c, &Options{})
	survey, err := in.inventory.Survey(ctx, in.inventory.Usage())
	if err != nil {
		return nil, fmt.Errorf("look at the cluster: %w", err)
	}
	explained, err := in.explained(ctx)
	if err != nil {
		return nil, err
	}
	reasons := make(map[*corev1.Pod]api.StuckReason, len(explained))
	for i, pod := range c.Waiting() {
		reasons[pod] = explain.Reason(explained[i].Explanation, explained[i].Err)
	}
	found, err := in.diagnose(ctx)
	if err != nil {
		return nil, err
	}
	o := survey.Overview(inventory.Known{
		Namespace: namespace, Reason: func(pod *corev1.Pod) api.StuckReason { return reasons[pod] }, Findings: found.Findings,
	})
	o.AddNodes(in.inventory.Nodes())
	return o, nil
}
