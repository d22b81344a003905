// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// failedCreates returns a task that reads which controllers report that pods are refused,
// if that is asked for. About a target, the events are read anyway.
func (c *collector) failedCreates(ctx context.Context) error {
	l := c.progress.list(snapshot.ResourceEvents)
	defer l.finished()
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("reason", failedCreate).String()}
	err := fetchSelected(ctx, l, options, eventAPI(c.clients, c.scope()), &c.failed)
	if apierrors.IsForbidden(err) {
		c.gap(snapshot.Gap{Resource: snapshot.ResourceEvents, Reason: "this user may not list events " + cmp.Or(inNamespace(c.scope()), "at the cluster scope")})
		return nil
	}
	return err
}

// readRefused reads the workloads with devices whose pods the API server refuses, according
// to events. Without such events nothing is read. A Deployment stands for its ReplicaSets.
func (c *collector) readRefused(ctx context.Context) {
	events := c.failed
	if c.hasPodsThroughOthers() {
		events = c.snapshot.Events
	}
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
			for key, object := range c.objectsNamed(ctx, keys) {
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
				c.refused = append(c.refused, w)
			}
		}
	}
	for _, event := range c.failed {
		about := &event.InvolvedObject
		if slices.ContainsFunc(c.refused, func(w *snapshot.Workload) bool {
			return w.Kind == about.Kind && w.Namespace == about.Namespace && w.Name == about.Name
		}) {
			c.snapshot.Events = append(c.snapshot.Events, event)
		}
	}
}

// hasPodsThroughOthers reports whether the target is something whose pods are created by
// other workloads: those have the events.
func (c *collector) hasPodsThroughOthers() bool {
	return c.opts.Target != nil && (len(c.snapshot.Outlines) > 0 || len(c.snapshot.Workloads) > 0 && c.snapshot.Workloads[0].Kind == "CronJob")
}
