// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func controllerCheck() Check {
	return Check{
		Code: "DRA1010", Title: "dra-controller without a ready pod", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourcePods},
		About:  "dra-controller, which exports metrics about devices, has pods in the cluster, and none of them is ready: there are no metrics, no alerts and no events, so that nothing tells of what goes wrong from now on. It is known by the labels app.kubernetes.io/name=dra-controller and app.kubernetes.io/part-of=kubectl-dra, as in config. Nothing is found in a cluster that does not run it.",
		Advice: "Read the log of the pods, and what the events about them say.",
		find:   findStoppedController,
	}
}

// findStoppedController finds pods of dra-controller if none of them is ready.
func findStoppedController(_ context.Context, in *cluster) ([]api.Finding, error) {
	f := api.Finding{}
	var first, namespace string
	for _, pod := range in.cluster.Snapshot.Pods {
		if pod.Labels["app.kubernetes.io/name"] != "dra-controller" || pod.Labels["app.kubernetes.io/part-of"] != "kubectl-dra" ||
			snapshot.Finished(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		if lifecycle.Ready(pod) {
			return nil, nil
		}
		trouble, evidence := lifecycle.PodTrouble(pod)
		if len(f.Objects) == 0 {
			first, namespace = trouble, pod.Namespace
		}
		f.Objects, f.Evidence = append(f.Objects, api.RefTo(api.KindPod, pod)), append(f.Evidence, evidence)
	}
	if len(f.Objects) == 0 {
		return nil, nil
	}
	f.Message = fmt.Sprintf("dra-controller has %s in namespace %s, and none is ready: %s; there are no metrics and no alerts", english.Count(len(f.Objects), "pod"), namespace, first)
	f.Remedy = &api.NextStep{
		Actor: api.ActorAdmin, Text: "read the log of the pods and the events about them",
		Commands: []string{
			fmt.Sprintf("kubectl describe pods -n %s -l app.kubernetes.io/name=dra-controller", namespace),
			fmt.Sprintf("kubectl logs -n %s -l app.kubernetes.io/name=dra-controller", namespace),
		},
	}
	return []api.Finding{f}, nil
}
