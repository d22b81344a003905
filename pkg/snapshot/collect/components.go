// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// readComponents reads the pods of the control plane once more, with their arguments,
// which lists of pods come without, and notes on those that are known which feature
// gates they set. It takes no other right than the list of pods. It needs the pods.
func readComponents(ctx context.Context, r *reader, s *snapshot.Snapshot) error {
	if !r.wants(snapshot.ResourcePods) || s.Gap(snapshot.ResourcePods) != nil {
		return nil
	}
	selector := snapshot.ComponentLabel + " in (" + strings.Join(snapshot.Components(), ",") + ")"
	// The dynamic client asks for JSON, of which nothing is taken out on the way.
	list, err := r.clients.Dynamic.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(metav1.NamespaceSystem).
		List(ctx, metav1.ListOptions{LabelSelector: selector})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return serverError(ctx, r.server, err)
	}
	noted := map[types.UID]snapshot.Component{}
	for i := range list.Items {
		pod := &corev1.Pod{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, pod) != nil {
			continue
		}
		delete(pod.Annotations, snapshot.ComponentAnnotation)
		kinds.Strip(pod)
		if component, ok := snapshot.ComponentOf(pod); ok {
			noted[pod.UID] = component
		}
	}
	// A watcher has the same pods.
	pods := slices.Clone(s.Pods)
	for i, pod := range pods {
		component, ok := noted[pod.UID]
		// Anybody can annotate a pod.
		if _, annotated := pod.Annotations[snapshot.ComponentAnnotation]; !ok && !annotated {
			continue
		}
		pods[i] = pod.DeepCopy()
		delete(pods[i].Annotations, snapshot.ComponentAnnotation)
		if ok {
			snapshot.NoteComponent(pods[i], &component)
		}
	}
	s.Pods = pods
	return nil
}
