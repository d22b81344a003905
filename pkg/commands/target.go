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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// parseTargets reads the arguments as kubectl does: NAME (a claim), TYPE/NAME …
// or TYPE NAME ….
func parseTargets(args []string) ([]snapshot.ObjectRef, error) {
	const forms = "Write NAME for a claim, TYPE/NAME or TYPE NAME, for example pod/train-0."
	slashed := 0
	for _, arg := range args {
		if strings.Contains(arg, "/") {
			slashed++
		}
	}
	switch {
	case slashed == 0 && len(args) == 1:
		return []snapshot.ObjectRef{{Resource: "resourceclaims", Name: args[0]}}, nil
	case slashed == 0:
		args = slices.Clone(args)
		for i, name := range args[1:] {
			args[i+1] = args[0] + "/" + name
		}
		return parseTargets(args[1:])
	case slashed < len(args):
		return nil, usagef(forms, "parse target: TYPE/NAME and TYPE NAME cannot be mixed")
	}
	refs := make([]snapshot.ObjectRef, 0, len(args))
	for _, arg := range args {
		resource, name, _ := strings.Cut(arg, "/")
		if resource == "" || name == "" || strings.Contains(name, "/") {
			return nil, usagef(forms, "parse target %q: not of the form TYPE/NAME", arg)
		}
		refs = append(refs, snapshot.ObjectRef{Resource: fullResource(resource), Name: name})
	}
	return refs, nil
}

// fullResource resolves the short names that this program adds to kubectl's, and
// those of built-in types, which a snapshot file cannot resolve.
func fullResource(resource string) string {
	switch strings.ToLower(resource) {
	case "claim", "claims":
		return "resourceclaims"
	case "template", "templates":
		return "resourceclaimtemplates"
	case "po":
		return "pods"
	case "deploy":
		return "deployments"
	case "sts":
		return "statefulsets"
	case "ds":
		return "daemonsets"
	case "rs":
		return "replicasets"
	case "rc":
		return "replicationcontrollers"
	case "cj":
		return "cronjobs"
	default:
		return strings.ToLower(resource)
	}
}

// names tells whether a resource as the user typed it ("job", "jobs.batch",
// "jobs.v1.batch") stands for a kind.
func names(resource string, kind schema.GroupVersionKind) bool {
	resource, group, grouped := strings.Cut(resource, ".")
	plural, singular := meta.UnsafeGuessKindToResource(kind)
	if resource != plural.Resource && resource != singular.Resource {
		return false
	}
	return !grouped || group == kind.Group || group == kind.Version+"."+kind.Group
}

// candidate is an object of a snapshot that can be explained.
type candidate struct {
	kind   schema.GroupVersionKind
	object metav1.Object
}

// candidates lists all that a snapshot has: pods, claims, templates, workloads.
func candidates(snap *snapshot.Snapshot) []candidate {
	var found []candidate
	resourceKind := func(kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: kind}
	}
	for _, claim := range snap.Claims {
		found = append(found, candidate{resourceKind(explain.KindClaim), claim})
	}
	for _, pod := range snap.Pods {
		found = append(found, candidate{corev1.SchemeGroupVersion.WithKind(explain.KindPod), pod})
	}
	for _, template := range snap.Templates {
		found = append(found, candidate{resourceKind(explain.KindTemplate), template})
	}
	for _, workload := range snap.Workloads {
		found = append(found, candidate{workload.GroupVersionKind(), &workload.ObjectMeta})
	}
	return found
}

// resolve turns what the user typed into what explain understands. An empty
// namespace, which only files have, becomes the one in which the object is.
func resolve(from *source, snap *snapshot.Snapshot, ref snapshot.ObjectRef) (explain.Options, error) {
	all := candidates(snap)
	ref.Namespace = from.namespace
	kind, err := resolveKind(from, all, ref)
	if err != nil {
		return explain.Options{}, err
	}
	options := explain.Options{Kind: kind, Namespace: ref.Namespace, Name: ref.Name}
	if options.Namespace != "" {
		return options, nil
	}
	var namespaces []string
	for _, c := range all {
		if c.kind.Kind == kind && c.object.GetName() == ref.Name {
			namespaces = append(namespaces, c.object.GetNamespace())
		}
	}
	namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	switch len(namespaces) {
	case 0:
		options.Namespace = metav1.NamespaceDefault
	case 1:
		options.Namespace = namespaces[0]
	default:
		return explain.Options{}, usagef("Choose one with -n.",
			"find %s %s: it is ambiguous, there is one in each of the namespaces %s", kind, ref.Name, strings.Join(namespaces, ", "))
	}
	return options, nil
}

// resolveKind finds the kind that a resource name stands for, preferring one
// that has an object of the name. What neither the snapshot nor this program
// knows, the cluster may.
func resolveKind(from *source, all []candidate, ref snapshot.ObjectRef) (string, error) {
	builtIn := []schema.GroupVersionKind{
		{Group: "resource.k8s.io", Version: "v1", Kind: explain.KindClaim},
		{Group: "resource.k8s.io", Version: "v1", Kind: explain.KindTemplate},
		{Version: "v1", Kind: explain.KindPod},
		{Version: "v1", Kind: "ReplicationController"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "StatefulSet"},
		{Group: "apps", Version: "v1", Kind: "DaemonSet"},
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
		{Group: "batch", Version: "v1", Kind: "Job"},
		{Group: "batch", Version: "v1", Kind: "CronJob"},
	}
	kind := ""
	for _, c := range all {
		if names(ref.Resource, c.kind) && (kind == "" || c.object.GetName() == ref.Name) {
			kind = c.kind.Kind
		}
	}
	if kind != "" {
		return kind, nil
	}
	for _, gvk := range builtIn {
		if names(ref.Resource, gvk) {
			return gvk.Kind, nil
		}
	}
	if from.kindOf != nil {
		return from.kindOf(ref.Resource)
	}
	return "", usagef("Targets are claims, templates, pods and whatever has a pod template.",
		"find %s %s: there is no %q here", ref.Resource, ref.Name, ref.Resource)
}

// inNamespace returns manifests in which every object has a namespace, as
// kubectl apply -n would give it one. The argument is not changed.
func inNamespace(objects *snapshot.Snapshot, namespace string) *snapshot.Snapshot {
	placed := *objects
	place(&placed.Pods, namespace, (*corev1.Pod).DeepCopy)
	place(&placed.Claims, namespace, (*resourceapi.ResourceClaim).DeepCopy)
	place(&placed.Templates, namespace, (*resourceapi.ResourceClaimTemplate).DeepCopy)
	place(&placed.PodGroups, namespace, (*schedulingapi.PodGroup).DeepCopy)
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
// workloads with claims, then the claims and templates that none of those use.
// Without any, it is every pod and workload: they may use extended resources.
func targetsOf(objects *snapshot.Snapshot) ([]explain.Options, error) {
	var targets, others []explain.Options
	used := map[string]bool{}
	add := func(kind string, object metav1.Object, spec *corev1.PodSpec) {
		target := explain.Options{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
		if len(spec.ResourceClaims) == 0 {
			others = append(others, target)
			return
		}
		targets = append(targets, target)
		for _, c := range spec.ResourceClaims {
			if c.ResourceClaimName != nil {
				used[explain.KindClaim+"/"+target.Namespace+"/"+*c.ResourceClaimName] = true
			}
			if c.ResourceClaimTemplateName != nil {
				used[explain.KindTemplate+"/"+target.Namespace+"/"+*c.ResourceClaimTemplateName] = true
			}
		}
	}
	for _, pod := range objects.Pods {
		add(explain.KindPod, pod, &pod.Spec)
	}
	for _, workload := range objects.Workloads {
		add(workload.Kind, &workload.ObjectMeta, &workload.Template.Spec)
	}
	for _, c := range candidates(objects) {
		key := fmt.Sprintf("%s/%s/%s", c.kind.Kind, c.object.GetNamespace(), c.object.GetName())
		if (c.kind.Kind == explain.KindClaim || c.kind.Kind == explain.KindTemplate) && !used[key] {
			targets = append(targets, explain.Options{Kind: c.kind.Kind, Namespace: c.object.GetNamespace(), Name: c.object.GetName()})
		}
	}
	if len(targets) == 0 {
		targets = others
	}
	if len(targets) == 0 {
		return nil, usagef("It takes a claim, a template, a pod or something with a pod template; or name a target.",
			"find a target in the files: there is none")
	}
	return targets, nil
}
