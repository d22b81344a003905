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
// that of s. Neither snapshot is changed; the new one shares their objects.
func (s *Snapshot) With(objects *Snapshot) *Snapshot {
	merged := *s
	merged.Gates = maps.Clone(s.Gates)
	merged.Skipped = maps.Clone(s.Skipped)
	merged.Nodes = overlay(s.Nodes, objects.Nodes)
	merged.Namespaces = overlay(s.Namespaces, objects.Namespaces)
	merged.Pods = overlay(s.Pods, objects.Pods)
	merged.Events = overlay(s.Events, objects.Events)
	merged.Slices = overlay(s.Slices, objects.Slices)
	merged.Classes = overlay(s.Classes, objects.Classes)
	merged.Claims = overlay(s.Claims, objects.Claims)
	merged.Templates = overlay(s.Templates, objects.Templates)
	merged.TaintRules = overlay(s.TaintRules, objects.TaintRules)
	merged.PoolStatuses = overlay(s.PoolStatuses, objects.PoolStatuses)
	merged.PodGroups = overlay(s.PodGroups, objects.PodGroups)
	merged.Workloads = overlay(s.Workloads, objects.Workloads)
	merged.Queued = overlay(s.Queued, objects.Queued)
	merged.Quotas = overlay(s.Quotas, objects.Quotas)
	merged.LimitRanges = overlay(s.LimitRanges, objects.LimitRanges)
	merged.VolumeClaims = overlay(s.VolumeClaims, objects.VolumeClaims)
	merged.Volumes = overlay(s.Volumes, objects.Volumes)
	merged.StorageClasses = overlay(s.StorageClasses, objects.StorageClasses)
	return &merged
}

// identity tells objects of one list apart. The kind only matters for
// workloads: a Job and a Deployment may have the same name, but a Deployment
// of apps/v1 and of extensions/v1beta1 are the same kind of thing to a user,
// and one of another group is not.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

func identify(object metav1.Object) identity {
	id := identity{namespace: object.GetNamespace(), name: object.GetName()}
	if workload, ok := object.(*Workload); ok {
		id.kind = workload.GroupVersionKind().GroupKind()
	}
	return id
}

// compare orders by namespace and name, as in all lists of a snapshot.
func (id identity) compare(other identity) int {
	return cmp.Or(
		strings.Compare(id.namespace, other.namespace),
		strings.Compare(id.name, other.name),
		strings.Compare(id.kind.Group, other.kind.Group),
		strings.Compare(id.kind.Kind, other.kind.Kind),
	)
}

// overlay returns the sorted union of two lists; the upper one wins.
func overlay[T metav1.Object](lower, upper []T) []T {
	if len(upper) == 0 {
		return lower
	}
	replaced := make(map[identity]bool, len(upper))
	for _, object := range upper {
		replaced[identify(object)] = true
	}
	merged := make([]T, 0, len(lower)+len(upper))
	for _, object := range lower {
		if !replaced[identify(object)] {
			merged = append(merged, object)
		}
	}
	merged = append(merged, upper...)
	slices.SortFunc(merged, func(a, b T) int { return identify(a).compare(identify(b)) })
	return merged
}
