// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// finder looks for hints.
type finder struct {
	*eligibility.Question
	target api.ObjectRef
	// out is the explanation, found what to add to it.
	out   *api.Explanation
	found Found
}

func (h *finder) hint(text string, evidence ...api.Evidence) {
	h.found.Hints = append(h.found.Hints, api.Hint{Text: text, Evidence: evidence})
}

// rejects reports whether a device is rejected for a reason of some kind.
func rejects(q *eligibility.Question, kind func(*eligibility.Reason) bool) bool {
	found := false
	eachRejected(q, func(_ *cluster.Device, r *eligibility.Reason) { found = found || kind(r) })
	return found
}

// eachRejected visits the devices that a request rejects, except devices of other classes.
func eachRejected(q *eligibility.Question, visit func(d *cluster.Device, r *eligibility.Reason)) {
	for i := range q.Claims {
		for _, alternatives := range q.Claims[i].Funnels {
			for _, f := range alternatives {
				for j := range f.Devices {
					if r := f.Reason(&f.Devices[j]); r != nil && r.Code != api.ClassSelectorFalse {
						visit(&f.Devices[j], r)
					}
				}
			}
		}
	}
}

// lastEvent returns the newest event about a pod with one of the reasons.
func lastEvent(snap *snapshot.Snapshot, pod *corev1.Pod, reasons ...string) *corev1.Event {
	var newest *corev1.Event
	for _, event := range snap.Events {
		about := event.InvolvedObject
		if about.Kind != api.KindPod || about.Namespace != pod.Namespace || about.Name != pod.Name ||
			about.UID != "" && pod.UID != "" && about.UID != pod.UID || !slices.Contains(reasons, event.Reason) {
			continue
		}
		if newest == nil || lifecycle.EventTime(event).After(lifecycle.EventTime(newest).Time) {
			newest = event
		}
	}
	return newest
}

// Found has the hints and next steps.
type Found struct {
	// Hints are the hints, the most telling first.
	Hints []api.Hint
	// Warning is a clause for the summary of what fits or is allocated, and will
	// not see its devices.
	Warning string
	// Silent are the drivers that publish nothing where it matters, if that is no
	// hint but the reason itself: it goes into the summary.
	Silent []SilentDriver
}

// SilentDriver says where a driver publishes nothing.
type SilentDriver struct{ Name, Text string }
