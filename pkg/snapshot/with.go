// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"strings"

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
