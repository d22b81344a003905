package snapshot

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	storageapi "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// find looks an object up in a list sorted by namespace and name.
func find[T metav1.Object](list []T, namespace, name string) (found T, ok bool) {
	i, ok := slices.BinarySearchFunc(list, [2]string{namespace, name}, func(o T, key [2]string) int {
		if c := strings.Compare(o.GetNamespace(), key[0]); c != 0 {
			return c
		}
		return strings.Compare(o.GetName(), key[1])
	})
	if !ok {
		return found, false
	}
	return list[i], true
}

// SortByName puts a list into the order that find needs.
func SortByName[T metav1.Object](list []T) {
	slices.SortFunc(list, func(a, b T) int {
		if c := strings.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
			return c
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
}

// Claim returns the ResourceClaim of that name, or nil.
func (s *Snapshot) Claim(namespace, name string) *resourceapi.ResourceClaim {
	claim, _ := find(s.Claims, namespace, name)
	return claim
}

// Template returns the ResourceClaimTemplate of that name, or nil.
func (s *Snapshot) Template(namespace, name string) *resourceapi.ResourceClaimTemplate {
	template, _ := find(s.Templates, namespace, name)
	return template
}

// Pod returns the pod of that name, or nil.
func (s *Snapshot) Pod(namespace, name string) *corev1.Pod {
	pod, _ := find(s.Pods, namespace, name)
	return pod
}

// PodGroup returns the PodGroup of that name, or nil.
func (s *Snapshot) PodGroup(namespace, name string) *schedulingapi.PodGroup {
	group, _ := find(s.PodGroups, namespace, name)
	return group
}

// CompositePodGroup returns the CompositePodGroup of that name, or nil.
func (s *Snapshot) CompositePodGroup(namespace, name string) *schedulingv1alpha3.CompositePodGroup {
	group, _ := find(s.CompositePodGroups, namespace, name)
	return group
}

// TopOf returns the CompositePodGroup at the top of those that a PodGroup belongs to,
// nil for a PodGroup without a parent. If one of them does not exist, it is nil, too, and
// missing is the name of that. One that is its own ancestor has no top.
func (s *Snapshot) TopOf(group *schedulingapi.PodGroup) (top *schedulingv1alpha3.CompositePodGroup, missing string) {
	// The API server admits fewer levels.
	const maxDepth = 16
	parent := group.Spec.ParentCompositePodGroupName
	for depth := 0; parent != nil; depth++ {
		if top = s.CompositePodGroup(group.Namespace, *parent); top == nil || depth == maxDepth {
			return nil, *parent
		}
		parent = top.Spec.ParentCompositePodGroupName
	}
	return top, ""
}

// Class returns the DeviceClass of that name, or nil.
func (s *Snapshot) Class(name string) *resourceapi.DeviceClass {
	class, _ := find(s.Classes, "", name)
	return class
}

// Node returns the node of that name, or nil.
func (s *Snapshot) Node(name string) *corev1.Node {
	node, _ := find(s.Nodes, "", name)
	return node
}

// Namespace returns the namespace of that name, or nil.
func (s *Snapshot) Namespace(name string) *corev1.Namespace {
	namespace, _ := find(s.Namespaces, "", name)
	return namespace
}

// Sort brings all lists into the order that Snapshot promises.
func (s *Snapshot) Sort() {
	SortByName(s.Nodes)
	SortByName(s.Namespaces)
	SortByName(s.Pods)
	SortByName(s.Events)
	SortByName(s.Slices)
	SortByName(s.Classes)
	SortByName(s.Claims)
	SortByName(s.Templates)
	SortByName(s.TaintRules)
	SortByName(s.PoolStatuses)
	SortByName(s.PodGroups)
	SortByName(s.Queued)
	s.SortOptional()
	slices.SortFunc(s.Outlines, func(a, b *Outline) int { return Identify(a).Compare(Identify(b)) })
	slices.SortFunc(s.Workloads, func(a, b *Workload) int { return Identify(a).Compare(Identify(b)) })
}

// VolumeClaim returns the PersistentVolumeClaim of that name, or nil.
func (s *Snapshot) VolumeClaim(namespace, name string) *corev1.PersistentVolumeClaim {
	claim, _ := find(s.VolumeClaims, namespace, name)
	return claim
}

// Volume returns the PersistentVolume of that name, or nil.
func (s *Snapshot) Volume(name string) *corev1.PersistentVolume {
	volume, _ := find(s.Volumes, "", name)
	return volume
}

// StorageClass returns the StorageClass of that name, or nil.
func (s *Snapshot) StorageClass(name string) *storageapi.StorageClass {
	class, _ := find(s.StorageClasses, "", name)
	return class
}

// SortOptional sorts the lists that are not always read.
func (s *Snapshot) SortOptional() {
	SortByName(s.CompositePodGroups)
	SortByName(s.Quotas)
	SortByName(s.LimitRanges)
	SortByName(s.VolumeClaims)
	SortByName(s.Volumes)
	SortByName(s.StorageClasses)
	SortByName(s.Budgets)
	SortByName(s.ComputeDomains)
	SortByName(s.ClusterPolicies)
	SortByName(s.PluginConfigs)
	SortByName(s.Cliques)
}

// QueuedBy returns the workload of Kueue that one of the given objects owns or
// that has the given name, or nil. One that has not ended goes first. Owners are
// compared by UID where both have one, else by kind and name.
func (s *Snapshot) QueuedBy(namespace, name string, owners []metav1.OwnerReference) *QueuedWorkload {
	var ended *QueuedWorkload
	for _, workload := range s.Queued {
		if workload.Namespace != namespace || (name == "" || workload.Name != name) && !ownedBy(workload, owners) {
			continue
		}
		if !workload.Ended() {
			return workload
		}
		ended = workload
	}
	return ended
}

// NamespaceGone reports whether a namespace is known not to exist.
func (s *Snapshot) NamespaceGone(name string) bool {
	return len(s.Namespaces) > 0 && s.Gap(ResourceNamespaces) == nil && s.Namespace(name) == nil
}

// NamesComputeDomains reports whether a claim or a template has configuration that can
// name a ComputeDomain.
func (s *Snapshot) NamesComputeDomains() bool {
	forDriver := func(c resourceapi.DeviceConfiguration) bool {
		return c.Opaque != nil && c.Opaque.Driver == ComputeDomainDriver
	}
	inSpec := func(configs []resourceapi.DeviceClaimConfiguration) bool {
		return slices.ContainsFunc(configs, func(c resourceapi.DeviceClaimConfiguration) bool { return forDriver(c.DeviceConfiguration) })
	}
	return slices.ContainsFunc(s.Claims, func(claim *resourceapi.ResourceClaim) bool {
		return inSpec(claim.Spec.Devices.Config) || claim.Status.Allocation != nil &&
			slices.ContainsFunc(claim.Status.Allocation.Devices.Config, func(c resourceapi.DeviceAllocationConfiguration) bool { return forDriver(c.DeviceConfiguration) })
	}) || slices.ContainsFunc(s.Templates, func(template *resourceapi.ResourceClaimTemplate) bool {
		return inSpec(template.Spec.Spec.Devices.Config)
	})
}

// ownedBy reports whether one of the owners is an owner of the object.
func ownedBy(object metav1.Object, owners []metav1.OwnerReference) bool {
	for _, owner := range object.GetOwnerReferences() {
		for _, wanted := range owners {
			if SameUID(owner.UID, wanted.UID) && owner.Kind == wanted.Kind && owner.Name == wanted.Name {
				return true
			}
		}
	}
	return false
}

// Some lists are read only where a pod that waits, or that is about to be
// created or evicted, depends on them: quotas and limits, which decide whether claims
// and pods can be created, volumes, the parents of PodGroups, and PodDisruptionBudgets.
// ComputeDomains are read where a claim can name one, the configuration of device plugins where they may
// divide devices.

// Annotations of a PersistentVolumeClaim, see pv_helpers.go of
// k8s.io/component-helpers/storage/volume, which brings listers along.
const (
	// BindCompletedAnnotation is on a claim that is bound to its volume.
	BindCompletedAnnotation = "pv.kubernetes.io/bind-completed"
	// SelectedNodeAnnotation has the node for which a volume is provisioned.
	SelectedNodeAnnotation = "volume.kubernetes.io/selected-node"
)

// OptionalKinds returns the kinds of the lists that are not always read, by resource.
func OptionalKinds() map[string]string {
	return map[string]string{
		ResourceQuotas: "ResourceQuota", ResourceLimitRanges: "LimitRange",
		ResourceVolumeClaims: "PersistentVolumeClaim", ResourceVolumes: "PersistentVolume", ResourceStorageClasses: "StorageClass",
		ResourceAutoscalers: AutoscalerKind().Kind, ResourceCompositePodGroups: "CompositePodGroup",
		ResourceBudgets: "PodDisruptionBudget", ResourceComputeDomains: KindComputeDomain, ResourceCliques: KindClique,
		ResourceClusterPolicies: ClusterPolicyKind().Kind, ResourcePluginConfigs: "ConfigMap",
	}
}

// Unknown says why objects of a resource that is read only where something
// depends on it may exist in a namespace without being in the snapshot; empty if
// all of them are there. Cluster-scoped resources have no namespace.
func (s *Snapshot) Unknown(resource, namespace string) string {
	if gap := s.Gap(resource); gap != nil && (gap.Namespace == "" || gap.Namespace != namespace) {
		return gap.Reason
	}
	if !slices.Contains(s.Listed, resource) {
		return "the snapshot does not have them"
	}
	return ""
}

// maxOwners limits how far owners are followed: from the pod of a worker over the
// StatefulSet of its group and the pod of its leader to the LeaderWorkerSet are four.
// Owners in files can form a circle.
const maxOwners = 8

// named returns the part of a list, sorted as [Identify] orders, with that name.
func named[T metav1.Object](list []T, namespace, name string) []T {
	compare := func(o T, key [2]string) int {
		return cmp.Or(strings.Compare(o.GetNamespace(), key[0]), strings.Compare(o.GetName(), key[1]))
	}
	from, _ := slices.BinarySearchFunc(list, [2]string{namespace, name}, compare)
	to := from
	for to < len(list) && compare(list[to], [2]string{namespace, name}) == 0 {
		to++
	}
	return list[from:to]
}

// Autoscaler returns the HorizontalPodAutoscaler of a workload, or nil.
func (s *Snapshot) Autoscaler(w *Workload) *Outline {
	for _, o := range s.Outlines {
		if o.Scales(w.GroupVersionKind().GroupKind(), w.Namespace, w.Name) {
			return o
		}
	}
	return nil
}

// Outline returns the outline of that kind and name, or nil. The group may be
// left out.
func (s *Snapshot) Outline(kind schema.GroupKind, namespace, name string) *Outline {
	for _, o := range named(s.Outlines, namespace, name) {
		if o.Of.Kind == kind.Kind && (kind.Group == "" || o.GroupKind() == kind) {
			return o
		}
	}
	return nil
}

// Owners lists what an object belongs to: its controller, what controls that, and
// so on, as far as the snapshot has them.
func (s *Snapshot) Owners(object metav1.Object) []metav1.OwnerReference {
	var owners []metav1.OwnerReference
	for len(owners) < maxOwners {
		controller := metav1.GetControllerOfNoCopy(object)
		if controller == nil {
			break
		}
		owners = append(owners, *controller)
		if object = s.owner(object.GetNamespace(), controller); object == nil {
			break
		}
	}
	return owners
}

// owner finds the object that a reference names, nil if the snapshot does not
// have it, or has another one of that name.
func (s *Snapshot) owner(namespace string, ref *metav1.OwnerReference) metav1.Object {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	if ref.Kind == "Pod" {
		if pod := s.Pod(namespace, ref.Name); pod != nil && SameUID(pod.UID, ref.UID) {
			return pod
		}
		return nil
	}
	for _, w := range named(s.Workloads, namespace, ref.Name) {
		if w.GroupVersionKind().GroupKind() == kind && SameUID(w.UID, ref.UID) {
			return w
		}
	}
	if o := s.Outline(kind, namespace, ref.Name); o != nil && SameUID(o.UID, ref.UID) {
		return o
	}
	return nil
}
