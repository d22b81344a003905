// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// Apply returns a snapshot in which objects were applied that all have a namespace. Containers
// of pods that are new have the requests and limits that the LimitRanges of their namespace
// give them.
func Apply(snap, objects *snapshot.Snapshot) *snapshot.Snapshot {
	applied := snap.With(objects)
	completed := *objects
	completed.Pods, completed.Workloads = slices.Clone(objects.Pods), slices.Clone(objects.Workloads)
	limits := func(namespace string) []*corev1.LimitRange {
		return slices.DeleteFunc(slices.Clone(applied.LimitRanges), func(r *corev1.LimitRange) bool { return r.Namespace != namespace })
	}
	for i, pod := range completed.Pods {
		if ranges := limits(pod.Namespace); len(ranges) > 0 && snap.Pod(pod.Namespace, pod.Name) == nil {
			completed.Pods[i] = kinds.WithLimitDefaults(ranges, pod)
		}
	}
	for i, w := range completed.Workloads {
		if ranges := limits(w.Namespace); len(ranges) > 0 {
			completed.Workloads[i] = w.DeepCopy()
			template := &completed.Workloads[i].Template
			kinds.SetLimitDefaults(ranges, &template.ObjectMeta, &template.Spec)
		}
	}
	return snap.With(&completed)
}

// Among lists the targets that need an explanation: pods and workloads that use devices,
// then the claims and templates that none of them uses. skipped has the others, as "Pod
// web". uses reports whether a pod uses devices.
func Among(objects *snapshot.Snapshot, uses func(*corev1.Pod) bool) (targets []Options, skipped []string) {
	used := map[api.ObjectRef]bool{}
	add := func(target api.ObjectRef, pod *corev1.Pod) {
		if !uses(pod) {
			skipped = append(skipped, fmt.Sprintf("%s %s (uses no devices)", target.Kind, target.Name))
			return
		}
		targets = append(targets, Options{Object: target})
		for _, c := range pod.Spec.ResourceClaims {
			if c.ResourceClaimName != nil {
				used[api.Ref(api.KindClaim, target.Namespace, *c.ResourceClaimName)] = true
			}
			if c.ResourceClaimTemplateName != nil {
				used[api.Ref(api.KindTemplate, target.Namespace, *c.ResourceClaimTemplateName)] = true
			}
		}
	}
	for _, pod := range objects.Pods {
		add(api.RefTo(api.KindPod, pod), pod)
	}
	for _, workload := range objects.Workloads {
		add(workload.Ref(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: workload.Namespace, Name: workload.Name}, Spec: workload.Template.Spec})
	}
	unused := func(object api.ObjectRef) {
		if !used[object] {
			targets = append(targets, Options{Object: object})
		}
	}
	for _, claim := range objects.Claims {
		unused(api.RefTo(api.KindClaim, claim))
	}
	for _, template := range objects.Templates {
		unused(api.RefTo(api.KindTemplate, template))
	}
	return targets, append(skipped, objects.SkippedNames...)
}
