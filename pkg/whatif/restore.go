// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Restore returns a snapshot in which the given objects are as in an earlier one: objects that
// it had are back, and objects that it lacked are gone. With settings, the version and the
// feature gates are the earlier ones, too. The arguments are not modified; lists without such an
// object are shared.
func Restore(snap, earlier *snapshot.Snapshot, objects []api.ObjectRef, settings bool) *snapshot.Snapshot {
	of := map[string]map[objectName]bool{}
	for _, o := range objects {
		if of[o.Kind] == nil {
			of[o.Kind] = map[objectName]bool{}
		}
		of[o.Kind][objectName{o.Namespace, o.Name}] = true
	}
	s := *snap
	if settings {
		s.ServerVersion, s.Emulator, s.Skew, s.Served, s.Gates = earlier.ServerVersion, earlier.Emulator, earlier.Skew, earlier.Served, earlier.Gates
	}
	s.Nodes = restored(s.Nodes, earlier.Nodes, of[api.KindNode])
	s.Namespaces = restored(s.Namespaces, earlier.Namespaces, of["Namespace"])
	s.Pods = restored(s.Pods, earlier.Pods, of[api.KindPod])
	s.Slices = restored(s.Slices, earlier.Slices, of["ResourceSlice"])
	s.Classes = restored(s.Classes, earlier.Classes, of["DeviceClass"])
	s.Claims = restored(s.Claims, earlier.Claims, of[api.KindClaim])
	s.Templates = restored(s.Templates, earlier.Templates, of[api.KindTemplate])
	s.TaintRules = restored(s.TaintRules, earlier.TaintRules, of["DeviceTaintRule"])
	s.PodGroups = restored(s.PodGroups, earlier.PodGroups, of[api.KindPodGroup])
	s.CompositePodGroups = restored(s.CompositePodGroups, earlier.CompositePodGroups, of[api.KindCompositePodGroup])
	s.Quotas = restored(s.Quotas, earlier.Quotas, of["ResourceQuota"])
	s.LimitRanges = restored(s.LimitRanges, earlier.LimitRanges, of["LimitRange"])
	s.VolumeClaims = restored(s.VolumeClaims, earlier.VolumeClaims, of["PersistentVolumeClaim"])
	s.Volumes = restored(s.Volumes, earlier.Volumes, of["PersistentVolume"])
	s.StorageClasses = restored(s.StorageClasses, earlier.StorageClasses, of["StorageClass"])
	// Workloads of different kinds have one list.
	for kind, names := range of {
		ofKind := func(w *snapshot.Workload) bool { return w.Kind == kind }
		if slices.ContainsFunc(earlier.Workloads, ofKind) || slices.ContainsFunc(s.Workloads, ofKind) {
			others := slices.DeleteFunc(slices.Clone(s.Workloads), ofKind)
			s.Workloads = snapshot.Overlay(others, restored(only(s.Workloads, ofKind), only(earlier.Workloads, ofKind), names))
		}
	}
	return &s
}

// only returns the matching objects of a list.
func only[T any](list []T, match func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(o T) bool { return !match(o) })
}

// restored returns a list in which the objects of some names are as in an earlier one.
func restored[T metav1.Object](list, earlier []T, names map[objectName]bool) []T {
	if len(names) == 0 {
		return list
	}
	named := func(o T) bool { return names[objectName{o.GetNamespace(), o.GetName()}] }
	others := slices.DeleteFunc(slices.Clone(list), named)
	return snapshot.Overlay(others, only(earlier, named))
}
