// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/names"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// inNamespace returns manifests in which every object has a namespace, as
// kubectl apply -n would give it one. The argument is not changed.
func inNamespace(objects *snapshot.Snapshot, namespace string) *snapshot.Snapshot {
	placed := *objects
	place(&placed.Pods, namespace, (*corev1.Pod).DeepCopy)
	place(&placed.Claims, namespace, (*resourceapi.ResourceClaim).DeepCopy)
	place(&placed.Templates, namespace, (*resourceapi.ResourceClaimTemplate).DeepCopy)
	place(&placed.PodGroups, namespace, (*schedulingapi.PodGroup).DeepCopy)
	place(&placed.VolumeClaims, namespace, (*corev1.PersistentVolumeClaim).DeepCopy)
	place(&placed.Quotas, namespace, (*corev1.ResourceQuota).DeepCopy)
	place(&placed.LimitRanges, namespace, (*corev1.LimitRange).DeepCopy)
	place(&placed.Workloads, namespace, func(w *snapshot.Workload) *snapshot.Workload {
		placed := *w
		return &placed
	})
	return &placed
}

// place puts copies of the objects without a namespace into one.
func place[T metav1.Object](list *[]T, namespace string, copyOf func(T) T) {
	placed := make([]T, len(*list))
	for i, object := range *list {
		if object.GetNamespace() == "" {
			object = copyOf(object)
			object.SetNamespace(namespace)
		}
		placed[i] = object
	}
	*list = placed
}

// targetsOf lists what in a set of manifests is worth explaining: pods and
// workloads that use devices, then the claims and templates that none of those
// use. passed has the others that might have been meant, as "Pod web". uses
// reports whether a pod uses devices.
func targetsOf(objects *snapshot.Snapshot, uses func(*corev1.Pod) bool) (targets []explain.Options, passed []string, err error) {
	used := map[string]bool{}
	add := func(kind string, pod *corev1.Pod) {
		target := explain.Options{Kind: kind, Namespace: pod.Namespace, Name: pod.Name}
		if !uses(pod) {
			passed = append(passed, fmt.Sprintf("%s %s (uses no devices)", kind, pod.Name))
			return
		}
		targets = append(targets, target)
		for _, c := range pod.Spec.ResourceClaims {
			if c.ResourceClaimName != nil {
				used[api.KindClaim+"/"+target.Namespace+"/"+*c.ResourceClaimName] = true
			}
			if c.ResourceClaimTemplateName != nil {
				used[api.KindTemplate+"/"+target.Namespace+"/"+*c.ResourceClaimTemplateName] = true
			}
		}
	}
	for _, pod := range objects.Pods {
		add(api.KindPod, pod)
	}
	for _, workload := range objects.Workloads {
		add(workload.Kind, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: workload.Namespace, Name: workload.Name},
			Spec:       workload.Template.Spec,
		})
	}
	for _, c := range names.Candidates(objects) {
		key := fmt.Sprintf("%s/%s/%s", c.Kind.Kind, c.Object.GetNamespace(), c.Object.GetName())
		if (c.Kind.Kind == api.KindClaim || c.Kind.Kind == api.KindTemplate) && !used[key] {
			targets = append(targets, explain.Options{Kind: c.Kind.Kind, Namespace: c.Object.GetNamespace(), Name: c.Object.GetName()})
		}
	}
	passed = append(passed, objects.SkippedNames...)
	if len(targets) > 0 {
		return targets, passed, nil
	}
	there := "there is none"
	if len(passed) > 0 {
		there += ", only " + list(passed)
	}
	return nil, passed, cli.Usagef("It takes a claim, a template, or a pod or something with a pod template that uses claims; or name a target.",
		"find a target in the files: %s", there)
}

// hasObject reports whether manifests have an object, "Kind/namespace/name" or
// "Kind/name".
func hasObject(objects *snapshot.Snapshot, object string) bool {
	is := func(kind string, o metav1.Object) bool {
		if o.GetNamespace() == "" {
			return object == kind+"/"+o.GetName()
		}
		return object == kind+"/"+o.GetNamespace()+"/"+o.GetName()
	}
	return slices.ContainsFunc(names.Candidates(objects), func(c names.Candidate) bool { return is(c.Kind.Kind, c.Object) }) ||
		slices.ContainsFunc(objects.Classes, func(c *resourceapi.DeviceClass) bool { return is("DeviceClass", c) }) ||
		slices.ContainsFunc(objects.Slices, func(s *resourceapi.ResourceSlice) bool { return is("ResourceSlice", s) }) ||
		slices.ContainsFunc(objects.TaintRules, func(r *resourceapi.DeviceTaintRule) bool { return is("DeviceTaintRule", r) }) ||
		slices.ContainsFunc(objects.Namespaces, func(n *corev1.Namespace) bool { return is("Namespace", n) })
}

// list joins words, but not too many of them.
func list(words []string) string {
	const most = 10
	if len(words) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
	}
	return strings.Join(words, ", ")
}
