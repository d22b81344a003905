// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/admission"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Manifests are objects that users have in files and ask about as if they were
// applied.
type Manifests struct {
	// Objects all have a namespace, if their kind has one.
	Objects *snapshot.Snapshot
	texts   *fileTexts
}

// Place takes objects to be in a namespace, where they name none. They are not
// changed. Paths are the files that they were read from, empty for what no edit can
// be made in.
func Place(objects *snapshot.Snapshot, namespace string, paths []string) *Manifests {
	return &Manifests{Objects: inNamespace(objects, namespace), texts: readTexts(paths, namespace)}
}

// Over returns a snapshot in which the objects were applied. Containers of pods that are
// new have the requests and limits that the LimitRanges of their namespace give them.
func (m *Manifests) Over(snap *snapshot.Snapshot) *snapshot.Snapshot {
	applied := snap.With(m.Objects)
	completed := *m.Objects
	completed.Pods, completed.Workloads = slices.Clone(m.Objects.Pods), slices.Clone(m.Objects.Workloads)
	limits := func(namespace string) []*corev1.LimitRange {
		return slices.DeleteFunc(slices.Clone(applied.LimitRanges), func(r *corev1.LimitRange) bool { return r.Namespace != namespace })
	}
	for i, pod := range completed.Pods {
		if ranges := limits(pod.Namespace); len(ranges) > 0 && snap.Pod(pod.Namespace, pod.Name) == nil {
			completed.Pods[i] = admission.WithDefaults(ranges, pod)
		}
	}
	for i, w := range completed.Workloads {
		if ranges := limits(w.Namespace); len(ranges) > 0 {
			completed.Workloads[i] = w.DeepCopy()
			template := &completed.Workloads[i].Template
			admission.SetDefaults(ranges, &template.ObjectMeta, &template.Spec)
		}
	}
	return snap.With(&completed)
}

// inNamespace returns manifests in which every object has a namespace, as
// kubectl apply -n would give it one. The argument is not changed.
func inNamespace(objects *snapshot.Snapshot, namespace string) *snapshot.Snapshot {
	placed := *objects
	place(&placed.Pods, namespace, (*corev1.Pod).DeepCopy)
	place(&placed.Claims, namespace, (*resourceapi.ResourceClaim).DeepCopy)
	place(&placed.Templates, namespace, (*resourceapi.ResourceClaimTemplate).DeepCopy)
	place(&placed.PodGroups, namespace, (*schedulingapi.PodGroup).DeepCopy)
	place(&placed.CompositePodGroups, namespace, (*schedulingv1alpha3.CompositePodGroup).DeepCopy)
	place(&placed.VolumeClaims, namespace, (*corev1.PersistentVolumeClaim).DeepCopy)
	place(&placed.Quotas, namespace, (*corev1.ResourceQuota).DeepCopy)
	place(&placed.LimitRanges, namespace, (*corev1.LimitRange).DeepCopy)
	place(&placed.Outlines, namespace, (*snapshot.Outline).DeepCopy)
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

// Targets lists the targets that need an explanation: pods and workloads that use devices,
// then the claims and templates that none of them uses. skipped has the others, as "Pod
// web". uses reports whether a pod uses devices.
func (m *Manifests) Targets(uses func(*corev1.Pod) bool) (targets []explain.Options, skipped []string, err error) {
	objects, used := m.Objects, map[api.ObjectRef]bool{}
	add := func(target api.ObjectRef, pod *corev1.Pod) {
		if !uses(pod) {
			skipped = append(skipped, fmt.Sprintf("%s %s (uses no devices)", target.Kind, target.Name))
			return
		}
		targets = append(targets, explain.Options{Object: target})
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
	for _, c := range cli.Candidates(objects) {
		if (c.Kind.Kind == api.KindClaim || c.Kind.Kind == api.KindTemplate) && !used[c.Ref()] {
			targets = append(targets, explain.Options{Object: c.Ref()})
		}
	}
	skipped = append(skipped, objects.SkippedNames...)
	if len(targets) > 0 {
		return targets, skipped, nil
	}
	there := "there is none"
	if len(skipped) > 0 {
		there += ", only " + english.Sample(skipped, 10)
	}
	return nil, skipped, cli.Usagef("It takes a claim, a template, or a pod or something with a pod template that uses claims; or name a target.",
		"find a target in the files: %s", there)
}

// has reports whether manifests have an object.
func (m *Manifests) has(object api.ObjectRef) bool {
	objects := m.Objects
	is := func(kind string, o metav1.Object) bool { return object == api.RefTo(kind, o) }
	return slices.ContainsFunc(cli.Candidates(objects), func(c cli.Candidate) bool { return object == c.Ref() }) ||
		slices.ContainsFunc(objects.Classes, func(c *resourceapi.DeviceClass) bool { return is("DeviceClass", c) }) ||
		slices.ContainsFunc(objects.Slices, func(s *resourceapi.ResourceSlice) bool { return is("ResourceSlice", s) }) ||
		slices.ContainsFunc(objects.TaintRules, func(r *resourceapi.DeviceTaintRule) bool { return is("DeviceTaintRule", r) }) ||
		slices.ContainsFunc(objects.Namespaces, func(n *corev1.Namespace) bool { return is("Namespace", n) })
}

// Settle turns the edits of remedies that concern objects of the files into
// diffs. The commands for them are left out: they are not in the cluster yet.
func (m *Manifests) Settle(snap *snapshot.Snapshot, e *api.Explanation) {
	for i := range e.Remedies {
		r := &e.Remedies[i]
		var stored, local []api.Edit
		for _, edit := range r.Edits {
			if m.has(edit.Object) {
				local = append(local, edit)
			} else {
				stored = append(stored, edit)
			}
		}
		if len(local) == 0 {
			continue
		}
		if len(r.Commands) > 0 {
			r.Commands = whatif.Commands(snap, stored, nil)
		}
		// They get the change when the files are applied, and not by commands.
		for j := range r.UsedBy {
			r.UsedBy[j].Changed = false
		}
		r.Diff = m.texts.diff(local)
	}
}
