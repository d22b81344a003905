// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyapi "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	storageapi "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// List is one of the lists of objects that each snapshot has.
type List struct {
	// Name is the kind of its objects: "Pod". Files of recordings have it.
	Name string
	// Len counts the objects of a snapshot.
	Len func(s *snapshot.Snapshot) int
	// All yields the objects of a snapshot.
	All func(s *snapshot.Snapshot) iter.Seq[metav1.Object]
	// Find returns the object of a snapshot, nil if there is none.
	Find func(s *snapshot.Snapshot, id snapshot.Identity) metav1.Object
	// Changes is [snapshot.Changes]; nil stands for no object.
	Changes func(before, after *snapshot.Snapshot) iter.Seq2[metav1.Object, metav1.Object]
	// Remove takes objects out of a snapshot. The list is replaced, not changed.
	Remove func(s *snapshot.Snapshot, which func(snapshot.Identity) bool)
	// Manifest returns what an object is saved as.
	Manifest func(object metav1.Object) (any, error)
}

// Lists returns all lists, in the order in which they are saved.
func Lists() []List {
	core, resource, scheduling := corev1.SchemeGroupVersion, resourceapi.SchemeGroupVersion, schedulingapi.SchemeGroupVersion
	workloads := listOf("Workload", func(s *snapshot.Snapshot) *[]*snapshot.Workload { return &s.Workloads }, kinds.WorkloadManifest)
	return []List{
		objects(core.WithKind("Namespace"), func(s *snapshot.Snapshot) *[]*corev1.Namespace { return &s.Namespaces }),
		objects(core.WithKind("Node"), func(s *snapshot.Snapshot) *[]*corev1.Node { return &s.Nodes }),
		objects(resource.WithKind("DeviceClass"), func(s *snapshot.Snapshot) *[]*resourceapi.DeviceClass { return &s.Classes }),
		objects(resource.WithKind("ResourceSlice"), func(s *snapshot.Snapshot) *[]*resourceapi.ResourceSlice { return &s.Slices }),
		objects(resource.WithKind("DeviceTaintRule"), func(s *snapshot.Snapshot) *[]*resourceapi.DeviceTaintRule { return &s.TaintRules }),
		objects(resource.WithKind("ResourceClaimTemplate"), func(s *snapshot.Snapshot) *[]*resourceapi.ResourceClaimTemplate { return &s.Templates }),
		objects(resource.WithKind("ResourceClaim"), func(s *snapshot.Snapshot) *[]*resourceapi.ResourceClaim { return &s.Claims }),
		objects(resourcev1alpha3.SchemeGroupVersion.WithKind(snapshot.KindPoolStatus), func(s *snapshot.Snapshot) *[]*resourcev1alpha3.ResourcePoolStatusRequest { return &s.PoolStatuses }),
		objects(schedulingv1alpha3.SchemeGroupVersion.WithKind("CompositePodGroup"), func(s *snapshot.Snapshot) *[]*schedulingv1alpha3.CompositePodGroup { return &s.CompositePodGroups }),
		objects(scheduling.WithKind("PodGroup"), func(s *snapshot.Snapshot) *[]*schedulingapi.PodGroup { return &s.PodGroups }),
		objects(core.WithKind("Pod"), func(s *snapshot.Snapshot) *[]*corev1.Pod { return &s.Pods }),
		objects(core.WithKind("Event"), func(s *snapshot.Snapshot) *[]*corev1.Event { return &s.Events }),
		objects(snapshot.ComputeDomainVersionKind(snapshot.KindComputeDomain), func(s *snapshot.Snapshot) *[]*snapshot.ComputeDomain { return &s.ComputeDomains }),
		objects(snapshot.ComputeDomainVersionKind(snapshot.KindClique), func(s *snapshot.Snapshot) *[]*snapshot.ComputeDomainClique { return &s.Cliques }),
		objects(snapshot.ClusterPolicyKind(), func(s *snapshot.Snapshot) *[]*snapshot.ClusterPolicy { return &s.ClusterPolicies }),
		objects(core.WithKind("ConfigMap"), func(s *snapshot.Snapshot) *[]*corev1.ConfigMap { return &s.PluginConfigs }),
		renamed("QueuedWorkload", objects(snapshot.QueuedWorkloadKind(), func(s *snapshot.Snapshot) *[]*snapshot.QueuedWorkload { return &s.Queued })),
		objects(schema.FromAPIVersionAndKind(api.APIVersion, snapshot.KindOutline), func(s *snapshot.Snapshot) *[]*snapshot.Outline { return &s.Outlines }),
		objects(core.WithKind("ResourceQuota"), func(s *snapshot.Snapshot) *[]*corev1.ResourceQuota { return &s.Quotas }),
		objects(core.WithKind("LimitRange"), func(s *snapshot.Snapshot) *[]*corev1.LimitRange { return &s.LimitRanges }),
		objects(core.WithKind("PersistentVolumeClaim"), func(s *snapshot.Snapshot) *[]*corev1.PersistentVolumeClaim { return &s.VolumeClaims }),
		objects(core.WithKind("PersistentVolume"), func(s *snapshot.Snapshot) *[]*corev1.PersistentVolume { return &s.Volumes }),
		objects(storageapi.SchemeGroupVersion.WithKind("StorageClass"), func(s *snapshot.Snapshot) *[]*storageapi.StorageClass { return &s.StorageClasses }),
		objects(policyapi.SchemeGroupVersion.WithKind("PodDisruptionBudget"), func(s *snapshot.Snapshot) *[]*policyapi.PodDisruptionBudget { return &s.Budgets }),
		workloads,
	}
}

func renamed(name string, list List) List {
	list.Name = name
	return list
}

// objects returns a list whose objects are saved as copies that say what they are.
func objects[T any, P interface {
	*T
	metav1.Object
	GetObjectKind() schema.ObjectKind
}](kind schema.GroupVersionKind, field func(*snapshot.Snapshot) *[]P) List {
	return listOf(kind.Kind, field, func(object P) (any, error) {
		manifest := *object
		P(&manifest).GetObjectKind().SetGroupVersionKind(kind)
		return &manifest, nil
	})
}

func listOf[P interface {
	comparable
	metav1.Object
}](name string, field func(*snapshot.Snapshot) *[]P, manifest func(P) (any, error)) List {
	var none P
	orNil := func(object P) metav1.Object {
		if object == none {
			return nil
		}
		return object
	}
	return List{
		Name: name,
		Len:  func(s *snapshot.Snapshot) int { return len(*field(s)) },
		All: func(s *snapshot.Snapshot) iter.Seq[metav1.Object] {
			return func(yield func(metav1.Object) bool) {
				for _, object := range *field(s) {
					if !yield(object) {
						return
					}
				}
			}
		},
		Find: func(s *snapshot.Snapshot, id snapshot.Identity) metav1.Object {
			objects := *field(s)
			at, found := slices.BinarySearchFunc(objects, id, func(object P, id snapshot.Identity) int { return snapshot.Identify(object).Compare(id) })
			if !found {
				return nil
			}
			return objects[at]
		},
		Changes: func(before, after *snapshot.Snapshot) iter.Seq2[metav1.Object, metav1.Object] {
			return func(yield func(was, is metav1.Object) bool) {
				for was, is := range snapshot.Changes(*field(before), *field(after)) {
					if !yield(orNil(was), orNil(is)) {
						return
					}
				}
			}
		},
		Remove: func(s *snapshot.Snapshot, which func(snapshot.Identity) bool) {
			list := field(s)
			*list = slices.DeleteFunc(slices.Clone(*list), func(object P) bool { return which(snapshot.Identify(object)) })
		},
		Manifest: func(object metav1.Object) (any, error) {
			own, _ := object.(P)
			return manifest(own)
		},
	}
}
