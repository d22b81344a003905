// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// Examination has the facts behind an overview of a cluster: what there is, why pods wait or
// do not work, and the findings of all checks.
type Examination struct {
	Inventory *inventory.Inventory
	Survey    *inventory.Survey
	// Answers are the explanations of the pods that wait, in the order of [facts.Cluster.Waiting].
	Answers []explain.Answer
	// Blocked are the pods that have devices and cannot work with them.
	Blocked []lifecycle.BlockedPod
	// Diagnosis has the findings with all of their objects and all evidence.
	Diagnosis *api.Diagnosis

	in   *cluster
	made made
}

// Within returns the findings that matter in a namespace, or all if that is empty, as [Diagnose]
// does.
func (x *Examination) Within(namespace string) *api.Diagnosis {
	return x.in.diagnosis(x.made, namespace, maxObjects)
}

// Examine explains all pods that wait, and makes the checks of the options, in all namespaces. An
// error means that one of these failed, not that the cluster has a problem.
func Examine(ctx context.Context, c *facts.Cluster, opts Options) (*Examination, error) {
	in := newCluster(c, &opts)
	survey, err := in.inventory.Survey(ctx, in.inventory.Usage())
	if err != nil {
		return nil, fmt.Errorf("look at the cluster: %w", err)
	}
	x := &Examination{Inventory: in.inventory, Survey: survey, in: in}
	if x.Answers, err = in.explained(ctx); err != nil {
		return nil, err
	}
	if x.made, err = in.makeChecks(ctx); err != nil {
		return nil, err
	}
	x.Diagnosis = in.diagnosis(x.made, "", math.MaxInt)
	x.Blocked = in.blocked()
	return x, nil
}

// Overview makes the overview of a cluster: it explains all pods that wait, and makes all
// checks. Pods and claims are in one namespace or, if that is empty, in any. The error
// says what failed, which is none of the cluster's faults.
func Overview(ctx context.Context, c *facts.Cluster, namespace string) (*inventory.Overview, error) {
	x, err := Examine(ctx, c, Options{})
	if err != nil {
		return nil, err
	}
	reasons := make(map[*corev1.Pod]api.StuckReason, len(x.Answers))
	for i, pod := range c.Waiting() {
		reasons[pod] = explain.Reason(x.Answers[i].Explanation, x.Answers[i].Err)
	}
	o := x.Survey.Overview(inventory.Known{
		Namespace: namespace, Reason: func(pod *corev1.Pod) api.StuckReason { return reasons[pod] }, Findings: x.Diagnosis.Findings,
	})
	o.AddNodes(x.Inventory.Nodes())
	return o, nil
}
