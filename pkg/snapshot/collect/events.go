// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// maxStartingNamespaces is in how many namespaces events are read one by one.
// Beyond that, all events of the cluster are read.
const maxStartingNamespaces = 5

// startingReasons returns the reasons of events with which a kubelet reports that it cannot
// start a pod with devices (pkg/kubelet/events).
func startingReasons() []string {
	return []string{"FailedPrepareDynamicResources", "FailedCreatePodSandBox"}
}

// eventQuery is which events to read: those in some namespaces that a selector chooses, and
// of these the wanted ones.
type eventQuery struct {
	namespaces map[string]bool
	selectors  []fields.Selector
	wanted     func(*corev1.ObjectReference) bool
}

// aboutStarting returns a query for what kubelets report about pods of a namespace, or, if
// that is empty, of all, that have a node and devices and do not run.
func aboutStarting(pods []*corev1.Pod, namespace string) eventQuery {
	starting, namespaces := map[types.NamespacedName]bool{}, map[string]bool{}
	for _, pod := range pods {
		if isStarting(pod) && (namespace == "" || pod.Namespace == namespace) {
			starting[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = true
			namespaces[pod.Namespace] = true
		}
	}
	var selectors []fields.Selector
	for _, reason := range startingReasons() {
		selectors = append(selectors, fields.OneTermEqualSelector("reason", reason))
	}
	return eventQuery{namespaces, selectors, func(about *corev1.ObjectReference) bool {
		return about.Kind == "Pod" && starting[types.NamespacedName{Namespace: about.Namespace, Name: about.Name}]
	}}
}

// aboutPlugins returns a query for the warnings about the DaemonSets of plugins for the
// kubelet that have fewer pods that are ready than they want, and about their pods.
func aboutPlugins(plugins []*snapshot.Workload, pods []*corev1.Pod) eventQuery {
	concerned, namespaces := map[types.UID]bool{}, map[string]bool{}
	for _, set := range plugins {
		if set.Daemon != nil && set.Daemon.Ready < set.Daemon.Desired {
			concerned[set.UID], namespaces[set.Namespace] = true, true
		}
	}
	for _, pod := range pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && concerned[owner.UID] {
			concerned[pod.UID] = true
		}
	}
	warnings := []fields.Selector{fields.OneTermEqualSelector("type", corev1.EventTypeWarning)}
	return eventQuery{namespaces, warnings, func(about *corev1.ObjectReference) bool { return concerned[about.UID] }}
}

// aboutPods returns a query for the warnings about pods with devices.
func aboutPods(pods []*corev1.Pod) eventQuery {
	concerned, namespaces := map[types.UID]bool{}, map[string]bool{}
	for _, pod := range pods {
		if len(pod.Spec.ResourceClaims) > 0 || usesExtendedResources(&pod.Spec) {
			concerned[pod.UID], namespaces[pod.Namespace] = true, true
		}
	}
	warnings := []fields.Selector{fields.SelectorFromSet(fields.Set{"type": corev1.EventTypeWarning, "involvedObject.kind": "Pod"})}
	return eventQuery{namespaces, warnings, func(about *corev1.ObjectReference) bool { return concerned[about.UID] }}
}

// readEvents reads the events of a query, and adds the new ones to *known. A missing
// permission leaves a gap.
func readEvents(ctx context.Context, r *reader, query eventQuery, known *[]*corev1.Event) error {
	namespaces := query.namespaces
	if len(namespaces) > maxStartingNamespaces {
		namespaces = map[string]bool{metav1.NamespaceAll: true}
	}
	seen := map[types.UID]bool{}
	for _, event := range *known {
		seen[event.UID] = event.UID != ""
	}
	l := r.progress.list(snapshot.ResourceEvents)
	defer l.finished()
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		for _, selector := range query.selectors {
			var events []*corev1.Event
			err := fetchSelected(ctx, l, metav1.ListOptions{FieldSelector: selector.String()}, eventAPI(r.clients, namespace), &events)
			if apierrors.IsForbidden(err) {
				r.gap(snapshot.Gap{Resource: snapshot.ResourceEvents, Reason: "this user may not list events " + where(namespace)})
				break
			}
			if err != nil {
				return serverError(ctx, r.server, err)
			}
			for _, event := range events {
				if query.wanted(&event.InvolvedObject) && !seen[event.UID] && !snapshot.IsAnswer(event) {
					*known = append(*known, event)
				}
			}
		}
	}
	return nil
}

// isStarting reports whether a pod has a node, may have devices, and does not run.
func isStarting(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && cmp.Or(pod.Status.Phase, corev1.PodPending) == corev1.PodPending &&
		(len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil)
}

// usesExtendedResources reports whether the pod may get a claim from the
// scheduler.
func usesExtendedResources(spec *corev1.PodSpec) bool {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for name := range containers[i].Resources.Requests {
				if strings.Contains(string(name), "/") {
					return true
				}
			}
		}
	}
	return false
}

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
