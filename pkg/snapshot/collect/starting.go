// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// maxStartingNamespaces is in how many namespaces events are read one by one.
// Beyond that, all events of the cluster are read.
const maxStartingNamespaces = 5

// startingReasons returns the reasons of events with which a kubelet reports that it cannot
// start a pod with devices (pkg/kubelet/events).
func startingReasons() []string {
	return []string{"FailedPrepareDynamicResources", "FailedCreatePodSandBox"}
}

// readStarting reads what kubelets report about pods that have a node and devices
// and do not run, if that is asked for. Without such pods nothing is read. It
// needs the pods.
func (c *collector) readStarting(ctx context.Context) error {
	if !c.opts.Starting {
		return nil
	}
	starting, namespaces := map[types.NamespacedName]bool{}, map[string]bool{}
	for _, pod := range c.snapshot.Pods {
		if isStarting(pod) && (c.opts.AllNamespaces || pod.Namespace == c.namespace) {
			starting[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = true
			namespaces[pod.Namespace] = true
		}
	}
	var selectors []fields.Selector
	for _, reason := range startingReasons() {
		selectors = append(selectors, fields.OneTermEqualSelector("reason", reason))
	}
	return c.readEvents(ctx, namespaces, selectors, func(about *corev1.ObjectReference) bool {
		return about.Kind == "Pod" && starting[types.NamespacedName{Namespace: about.Namespace, Name: about.Name}]
	})
}

// readPluginEvents reads the warnings about the DaemonSets of plugins for the kubelet
// that have fewer pods that are ready than they want, and about their pods, if the
// question is whether anything is wrong. It needs the DaemonSets and the pods.
func (c *collector) readPluginEvents(ctx context.Context) error {
	if !c.opts.Health {
		return nil
	}
	concerned, namespaces := map[types.UID]bool{}, map[string]bool{}
	for _, set := range c.plugins {
		if set.Daemon != nil && set.Daemon.Ready < set.Daemon.Desired {
			concerned[set.UID], namespaces[set.Namespace] = true, true
		}
	}
	for _, pod := range c.snapshot.Pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && concerned[owner.UID] {
			concerned[pod.UID] = true
		}
	}
	warnings := []fields.Selector{fields.OneTermEqualSelector("type", corev1.EventTypeWarning)}
	return c.readEvents(ctx, namespaces, warnings, func(about *corev1.ObjectReference) bool { return concerned[about.UID] })
}

// readPodEvents reads the warnings about pods with devices, if that is asked for. It needs the pods.
func (c *collector) readPodEvents(ctx context.Context) error {
	if !c.opts.podEvents {
		return nil
	}
	concerned, namespaces := map[types.UID]bool{}, map[string]bool{}
	for _, pod := range c.snapshot.Pods {
		if len(pod.Spec.ResourceClaims) > 0 || usesExtendedResources(&pod.Spec) {
			concerned[pod.UID], namespaces[pod.Namespace] = true, true
		}
	}
	warnings := []fields.Selector{fields.SelectorFromSet(fields.Set{"type": corev1.EventTypeWarning, "involvedObject.kind": "Pod"})}
	return c.readEvents(ctx, namespaces, warnings, func(about *corev1.ObjectReference) bool { return concerned[about.UID] })
}

// readEvents reads the events in some namespaces that a selector chooses, and keeps the
// wanted ones. A missing permission leaves a gap.
func (c *collector) readEvents(ctx context.Context, namespaces map[string]bool, selectors []fields.Selector, wanted func(*corev1.ObjectReference) bool) error {
	if len(namespaces) > maxStartingNamespaces {
		namespaces = map[string]bool{metav1.NamespaceAll: true}
	}
	known := map[types.UID]bool{}
	for _, event := range c.snapshot.Events {
		known[event.UID] = event.UID != ""
	}
	l := c.progress.list(snapshot.ResourceEvents)
	defer l.finished()
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		for _, selector := range selectors {
			var events []*corev1.Event
			err := fetchSelected(ctx, l, metav1.ListOptions{FieldSelector: selector.String()}, eventAPI(c.clients, namespace), &events)
			if apierrors.IsForbidden(err) {
				c.gap(snapshot.Gap{Resource: snapshot.ResourceEvents, Reason: fmt.Sprintf("this user may not list events %s", cmp.Or(inNamespace(namespace), "at the cluster scope"))})
				break
			}
			if err != nil {
				return serverError(ctx, c.server, err)
			}
			for _, event := range events {
				if wanted(&event.InvolvedObject) && !known[event.UID] && !snapshot.IsAnswer(event) {
					c.snapshot.Events = append(c.snapshot.Events, event)
				}
			}
		}
	}
	return nil
}

// inNamespace returns "in namespace a", empty for none.
func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return "in namespace " + namespace
}

// isStarting reports whether a pod has a node, may have devices, and does not run.
func isStarting(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && cmp.Or(pod.Status.Phase, corev1.PodPending) == corev1.PodPending &&
		(len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil)
}
