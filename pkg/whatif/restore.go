// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"slices"
	"strings"

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

// edited is a list of objects, sorted by namespace and name, with some objects replaced or
// added. The original list is not modified.
type edited[T metav1.Object] struct {
	list    []T
	changed map[objectName]T
}

type objectName struct{ namespace, name string }

func newEdited[T metav1.Object](list []T) *edited[T] {
	return &edited[T]{list: list, changed: map[objectName]T{}}
}

// find looks an object up by its name.
func (e *edited[T]) find(namespace, name string) (object T, found bool) {
	if object, found = e.changed[objectName{namespace, name}]; found {
		return object, true
	}
	if at, found := find(e.list, namespace, name); found {
		return e.list[at], true
	}
	return object, false
}

func (e *edited[T]) put(object T) {
	e.changed[objectName{object.GetNamespace(), object.GetName()}] = object
}

// merged returns the list with the replaced and added objects; the original list if there
// are none.
func (e *edited[T]) merged() []T {
	if len(e.changed) == 0 {
		return e.list
	}
	added := make([]T, 0, len(e.changed))
	for _, object := range e.changed {
		added = append(added, object)
	}
	slices.SortFunc(added, func(a, b T) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	after := make([]T, 0, len(e.list)+len(added))
	rest := e.list
	for _, object := range added {
		at, exists := find(rest, object.GetNamespace(), object.GetName())
		after = append(append(after, rest[:at]...), object)
		if exists {
			at++
		}
		rest = rest[at:]
	}
	return append(after, rest...)
}

// find looks an object up in a list that is sorted by namespace and name, and
// returns where it is or would be.
func find[T metav1.Object](list []T, namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(list, [2]string{namespace, name}, func(o T, key [2]string) int {
		return cmp.Or(strings.Compare(o.GetNamespace(), key[0]), strings.Compare(o.GetName(), key[1]))
	})
}
