// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// kubeletReports quotes the last warning about a pod on its node.
func kubeletReports(snap *snapshot.Snapshot, pod *corev1.Pod) []Finding {
	event := kubeletEvent(snap, pod)
	if event == nil || pod.Spec.NodeName == "" {
		return nil
	}
	return []Finding{{
		Reason:   fmt.Sprintf("the last warning about the pod is %s: %s%s", event.Reason, unwrapped(saidOnce(event.Message)), often(snap, event)),
		Evidence: []api.Evidence{eventEvidence(event)},
	}}
}

// driverEvents quotes the events of drivers about claims. Events from before the start of
// the pods that use the claims are history.
func driverEvents(snap *snapshot.Snapshot, claims []cluster.PodClaim, users ...*corev1.Pod) []Finding {
	var findings []Finding
	since := snap.Now().Add(-time.Hour)
	if first := allStarted(users); first.After(since) {
		since = first
	}
	for i := range claims {
		claim := claims[i].Claim
		if claim == nil || claims[i].Generated {
			continue
		}
		event := newestEvent(eventsAbout(snap, api.KindClaim, claim.Namespace, claim.Name, claim.UID), func(e *corev1.Event) bool {
			return e.Type == corev1.EventTypeWarning && EventTime(e).After(since)
		})
		if event == nil {
			continue
		}
		who := cmp.Or(event.Source.Component, event.ReportingController)
		switch {
		case who == "":
			who = "an unknown component"
		case slices.Contains(driversOf(claim, ""), who):
			who = "driver " + who
		default:
			who = "component " + who
		}
		findings = append(findings, Finding{
			Instead: true, Evidence: []api.Evidence{eventEvidence(event)},
			Reason: fmt.Sprintf("%s reports about claim %s: %s: %s%s", who, claim.Name, event.Reason, saidOnce(event.Message), often(snap, event)),
		})
	}
	return findings
}
