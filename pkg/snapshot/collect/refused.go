// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// failedCreates reads into *events which controllers of a namespace report that pods are
// refused.
func failedCreates(ctx context.Context, r *reader, namespace string, events *[]*corev1.Event) error {
	l := r.progress.list(snapshot.ResourceEvents)
	defer l.finished()
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("reason", failedCreate).String()}
	err := fetchSelected(ctx, l, options, eventAPI(r.clients, namespace), events)
	if apierrors.IsForbidden(err) {
		r.gap(snapshot.Gap{Resource: snapshot.ResourceEvents, Reason: "this user may not list events " + where(namespace)})
		return nil
	}
	return err
}

// readRefused returns the workloads with devices whose pods the API server refuses, according
// to events. Without such events nothing is read. A Deployment stands for its ReplicaSets.
func readRefused(ctx context.Context, r *reader, events []*corev1.Event) []*snapshot.Workload {
	var refused []*snapshot.Workload
	// What is refused: of ReplicaSets that a Deployment controls, the Deployment.
	next := map[objectKey]bool{}
	for _, event := range events {
		about := &event.InvolvedObject
		if event.Reason != failedCreate {
			continue
		}
		next[objectKey{about.APIVersion, about.Kind, about.Namespace, about.Name}] = true
	}
	for len(next) > 0 {
		wanted := next
		next = map[objectKey]bool{}
		for kind, keys := range byKind(wanted) {
			shape := kinds.KnownWorkload(schema.FromAPIVersionAndKind(kind.apiVersion, kind.kind).Group, kind.kind)
			if shape == kinds.NotWorkload {
				continue
			}
			for key, object := range r.objectsNamed(ctx, keys) {
				if owner := metav1.GetControllerOf(object); owner != nil && kind.kind == snapshot.KindReplicaSet && owner.Kind == snapshot.KindDeployment {
					next[objectKey{owner.APIVersion, owner.Kind, key.namespace, owner.Name}] = true
					continue
				}
				data, err := object.MarshalJSON()
				if err != nil {
					continue
				}
				w, err := kinds.DecodeWorkload(data, shape)
				if err != nil || len(w.Template.Spec.ResourceClaims) == 0 && !usesExtendedResources(&w.Template.Spec) {
					continue
				}
				kinds.Strip(w)
				refused = append(refused, w)
			}
		}
	}
	return refused
}

// isAbout reports whether one of the workloads has an event.
func isAbout(event *corev1.Event, workloads []*snapshot.Workload) bool {
	about := &event.InvolvedObject
	return slices.ContainsFunc(workloads, func(w *snapshot.Workload) bool {
		return w.Kind == about.Kind && w.Namespace == about.Namespace && w.Name == about.Name
	})
}

// hasPodsThroughOthers reports whether the target is something whose pods are created by
// other workloads: those have the events.
func hasPodsThroughOthers(s *snapshot.Snapshot) bool {
	return len(s.Outlines) > 0 || len(s.Workloads) > 0 && s.Workloads[0].Kind == "CronJob"
}
