// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// verify compares the steps of an earlier plan with the cluster. A step that was not begun has
// no findings.
func verify(snap *snapshot.Snapshot, plan *api.Migration) []api.MigrationCheck {
	checks := make([]api.MigrationCheck, 0, len(plan.Steps))
	for i := range plan.Steps {
		check, begun := verifyStep(snap, &plan.Steps[i])
		check.Step = i + 1
		switch {
		case !begun:
			check.State, check.Findings = api.MigrationNotTaken, nil
		case len(check.Findings) > 0:
			check.State = api.MigrationDiffers
		default:
			check.State = api.MigrationTaken
		}
		checks = append(checks, check)
	}
	return checks
}

// verifyStep returns what differs from a step, and whether some of it is done: a node without its
// device plugin, or a workload with claims.
func verifyStep(snap *snapshot.Snapshot, s *api.MigrationStep) (check api.MigrationCheck, begun bool) {
	find := func(format string, args ...any) {
		check.Findings = append(check.Findings, fmt.Sprintf(format, args...))
	}
	for _, name := range s.Nodes {
		node := snap.Node(name)
		if node == nil {
			find("node %s does not exist", name)
			continue
		}
		gone := true
		for _, resource := range s.Resources {
			if quantity := node.Status.Allocatable[corev1.ResourceName(resource)]; !quantity.IsZero() {
				gone = false
				find("node %s still offers %s %s", name, quantity.String(), resource)
			}
		}
		begun = begun || gone
		if got := publishedOn(snap, name, s.Driver); s.Devices > 0 && got != s.Devices {
			find("%s publishes %s for node %s, and %d were expected", s.Driver, english.Count(got, "device"), name, s.Devices)
		}
		if node.Spec.Unschedulable {
			find("node %s is cordoned", name)
		}
	}
	for _, object := range s.Moves {
		pods := podsOf(snap, object)
		asks, waits := 0, 0
		for _, pod := range pods {
			if len(cluster.ExtendedResources(pod)) > 0 {
				asks++
			} else if snapshot.Waits(pod) {
				waits++
			}
		}
		begun = begun || asks < len(pods)
		name := object.Namespace + " " + object.Argument()
		switch {
		case len(pods) == 0:
			find("%s has no pods", name)
		case asks > 0:
			find("%s of %s still %s for extended resources", english.Count(asks, "pod"), name, english.Plural(asks, "asks", "ask"))
		case waits > 0:
			find("%s of %s %s for a node", english.Count(waits, "pod"), name, english.Plural(waits, "waits", "wait"))
		}
	}
	return check, begun
}

// podsOf returns the pods of a workload that are not finished, or a bare pod.
func podsOf(snap *snapshot.Snapshot, object api.ObjectRef) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range snap.Pods {
		of := api.RefTo(api.KindPod, pod)
		if w, owned := whatif.WorkloadOf(snap, pod); owned {
			of = w.ObjectRef
		}
		if of == object && !snapshot.Finished(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}
