// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// With returns a new snapshot that has the objects of both; where both have an
// object of the same kind, namespace and name, it is the other's. Everything
// that is not an object (the source, the time, the version, the gates) stays
// as in s. Neither snapshot is changed; the new one shares their objects.
func (s *Snapshot) With(objects *Snapshot) *Snapshot {
	merged := *s
	merged.Gates = maps.Clone(s.Gates)
	merged.Skipped = maps.Clone(s.Skipped)
	merged.Nodes = Overlay(s.Nodes, objects.Nodes)
	merged.Namespaces = Overlay(s.Namespaces, objects.Namespaces)
	merged.Pods = Overlay(s.Pods, objects.Pods)
	merged.Events = Overlay(s.Events, objects.Events)
	merged.Slices = Overlay(s.Slices, objects.Slices)
	merged.Classes = Overlay(s.Classes, objects.Classes)
	merged.Claims = Overlay(s.Claims, objects.Claims)
	merged.Templates = Overlay(s.Templates, objects.Templates)
	merged.TaintRules = Overlay(s.TaintRules, objects.TaintRules)
	merged.PoolStatuses = Overlay(s.PoolStatuses, objects.PoolStatuses)
	merged.PodGroups = Overlay(s.PodGroups, objects.PodGroups)
	merged.CompositePodGroups = Overlay(s.CompositePodGroups, objects.CompositePodGroups)
	merged.Workloads = Overlay(s.Workloads, objects.Workloads)
	merged.ComputeDomains = Overlay(s.ComputeDomains, objects.ComputeDomains)
	merged.Cliques = Overlay(s.Cliques, objects.Cliques)
	merged.ClusterPolicies = Overlay(s.ClusterPolicies, objects.ClusterPolicies)
	merged.PluginConfigs = Overlay(s.PluginConfigs, objects.PluginConfigs)
	merged.Queued = Overlay(s.Queued, objects.Queued)
	merged.Outlines = Overlay(s.Outlines, objects.Outlines)
	merged.Quotas = Overlay(s.Quotas, objects.Quotas)
	merged.LimitRanges = Overlay(s.LimitRanges, objects.LimitRanges)
	merged.VolumeClaims = Overlay(s.VolumeClaims, objects.VolumeClaims)
	merged.Volumes = Overlay(s.Volumes, objects.Volumes)
	merged.StorageClasses = Overlay(s.StorageClasses, objects.StorageClasses)
	merged.Budgets = Overlay(s.Budgets, objects.Budgets)
	return &merged
}

// Identity tells objects of one list apart. The kind only matters for
// workloads and outlines: a Job and a Deployment may have the same name, but a Deployment
// of apps/v1 and of extensions/v1beta1 are the same kind of thing to a user,
// and one of another group is not.
type Identity struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// Identify returns what tells an object from the others of its list.
func Identify(object metav1.Object) Identity {
	id := Identity{Namespace: object.GetNamespace(), Name: object.GetName()}
	if workload, ok := object.(*Workload); ok {
		id.Kind = workload.GroupVersionKind().GroupKind()
	}
	if outline, ok := object.(*Outline); ok {
		id.Kind = outline.GroupKind()
	}
	return id
}

// Compare orders by namespace and name, as in all lists of a snapshot.
func (id Identity) Compare(other Identity) int {
	return cmp.Or(
		strings.Compare(id.Namespace, other.Namespace),
		strings.Compare(id.Name, other.Name),
		strings.Compare(id.Kind.Group, other.Kind.Group),
		strings.Compare(id.Kind.Kind, other.Kind.Kind),
	)
}

// Overlay returns the sorted union of two lists; the upper one wins.
func Overlay[T metav1.Object](lower, upper []T) []T {
	if len(upper) == 0 {
		return lower
	}
	rest, upper := inOrder(lower), inOrder(upper)
	merged := make([]T, 0, len(lower)+len(upper))
	for i, object := range upper {
		id := Identify(object)
		before, found := slices.BinarySearchFunc(rest, id, func(object T, id Identity) int { return Identify(object).Compare(id) })
		merged = append(merged, rest[:before]...)
		for rest = rest[before:]; found && len(rest) > 0 && Identify(rest[0]) == id; {
			rest = rest[1:]
		}
		// Of equal names, the last one counts.
		if i+1 == len(upper) || Identify(upper[i+1]) != id {
			merged = append(merged, object)
		}
	}
	return append(merged, rest...)
}

// inOrder returns a list in the order of a snapshot.
func inOrder[T metav1.Object](list []T) []T {
	compare := func(a, b T) int { return Identify(a).Compare(Identify(b)) }
	if slices.IsSortedFunc(list, compare) {
		return list
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, compare)
	return list
}

// InNamespace returns the objects of manifests, each in a namespace, as kubectl apply -n would
// give it one. The argument is not changed.
func (s *Snapshot) InNamespace(namespace string) *Snapshot {
	placed := *s
	place(&placed.Pods, namespace, (*corev1.Pod).DeepCopy)
	place(&placed.Claims, namespace, (*resourceapi.ResourceClaim).DeepCopy)
	place(&placed.Templates, namespace, (*resourceapi.ResourceClaimTemplate).DeepCopy)
	place(&placed.PodGroups, namespace, (*schedulingapi.PodGroup).DeepCopy)
	place(&placed.CompositePodGroups, namespace, (*schedulingv1alpha3.CompositePodGroup).DeepCopy)
	place(&placed.VolumeClaims, namespace, (*corev1.PersistentVolumeClaim).DeepCopy)
	place(&placed.Quotas, namespace, (*corev1.ResourceQuota).DeepCopy)
	place(&placed.LimitRanges, namespace, (*corev1.LimitRange).DeepCopy)
	place(&placed.Outlines, namespace, (*Outline).DeepCopy)
	place(&placed.Workloads, namespace, func(w *Workload) *Workload {
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

// Changes compares two sorted lists of snapshots. It yields each object that they do not share
// as it was and as it is; was is the zero value for a new object, is for a deleted one. An
// object that was deleted and created again under its name is one object here, with another
// UID.
func Changes[T interface {
	comparable
	metav1.Object
}](before, after []T) iter.Seq2[T, T] {
	return func(yield func(was, is T) bool) {
		if SameList(before, after) {
			return
		}
		var none T
		for i, k := 0, 0; ; {
			for i < len(before) && k < len(after) && before[i] == after[k] {
				i, k = i+1, k+1
			}
			was, is, order := none, none, 0
			switch {
			case i == len(before) && k == len(after):
				return
			case i == len(before):
				order = 1
			case k == len(after):
				order = -1
			default:
				order = Identify(before[i]).Compare(Identify(after[k]))
			}
			if order <= 0 {
				was, i = before[i], i+1
			}
			if order >= 0 {
				is, k = after[k], k+1
			}
			if !yield(was, is) {
				return
			}
		}
	}
}

// SameList reports whether two lists are the same list.
func SameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
