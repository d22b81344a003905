// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// waitingPods selects pods that wait for devices.
type waitingPods struct {
	allNamespaces bool
	selector      labels.Selector
}

func newWaitingPods(allNamespaces bool, selector string) (waitingPods, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return waitingPods{}, cli.Usagef("Write it as for kubectl get: -l app=train,tier!=test.", "read --selector: %w", err)
	}
	return waitingPods{allNamespaces: allNamespaces, selector: parsed}, nil
}

// in lists the pods of a namespace, or of all if that is empty, that use devices and do not
// work: pods without a node, and pods that are blocked after their devices were allocated.
// After them come the workloads whose pods the API server refuses.
func (w waitingPods) in(c *cluster.Cluster, namespace string) []explain.Options {
	blocked := map[types.NamespacedName]bool{}
	for _, pod := range lifecycle.NewStages(c).BlockedPods() {
		blocked[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = true
	}
	var targets []explain.Options
	// They stay in the order of the snapshot.
	for _, pod := range c.Snapshot.Pods {
		asked := (namespace == "" || pod.Namespace == namespace) && w.selector.Matches(labels.Set(pod.Labels))
		if asked && (blocked[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] || snapshot.Waits(pod) && c.WantsDevices(pod)) {
			targets = append(targets, explain.Options{Object: api.RefTo(api.KindPod, pod)})
		}
	}
	for _, r := range explain.RefusedWorkloads(c) {
		if o := r.Workload; (namespace == "" || o.Namespace == namespace) && w.selector.Matches(labels.Set(o.Template.Labels)) {
			targets = append(targets, explain.Options{Object: api.Ref(o.Kind, o.Namespace, o.Name)})
		}
	}
	return targets
}
