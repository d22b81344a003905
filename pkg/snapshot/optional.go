// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storageapi "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Some lists are read only where a pod that waits, or that is about to be
// created, depends on them: quotas and limits, which decide whether claims and
// pods can be created, and volumes.

// Annotations of a PersistentVolumeClaim, see pv_helpers.go of
// k8s.io/component-helpers/storage/volume, which brings listers along.
const (
	// BindCompletedAnnotation is on a claim that is bound to its volume.
	BindCompletedAnnotation = "pv.kubernetes.io/bind-completed"
	// selectedNodeAnnotation has the node for which a volume is provisioned.
	SelectedNodeAnnotation = "volume.kubernetes.io/selected-node"
)

// optionalKinds are the kinds of the lists that are not always read, by resource.
func optionalKinds() map[string]string {
	return map[string]string{
		ResourceQuotas: "ResourceQuota", ResourceLimitRanges: "LimitRange",
		ResourceVolumeClaims: "PersistentVolumeClaim", ResourceVolumes: "PersistentVolume", ResourceStorageClasses: "StorageClass",
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

// readOptional reads what the pods depend on that the question may be about. It
// needs the pods and the target.
func (c *collector) readOptional(ctx context.Context) error {
	s, clients := c.snapshot, c.clients
	admission, volumes := c.opts.Creates, c.opts.UsesVolumes
	for _, workload := range s.Workloads {
		if c.opts.Target != nil && workload.Daemon == nil {
			admission = true
			volumes = volumes || UsesVolumeClaims(&workload.Template.Spec)
		}
	}
	for _, pod := range s.Pods {
		if c.concerns(pod) {
			admission = admission || lacksClaims(pod)
			volumes = volumes || UsesVolumeClaims(&pod.Spec)
		}
	}
	var tasks []func(context.Context) error
	if admission {
		tasks = append(tasks,
			c.optionalList(ResourceQuotas, func(ctx context.Context, l *listing, namespace string) error {
				return fetch(ctx, l, quotaAPI(clients, namespace), &s.Quotas)
			}),
			c.optionalList(ResourceLimitRanges, func(ctx context.Context, l *listing, namespace string) error {
				return fetch(ctx, l, limitRangeAPI(clients, namespace), &s.LimitRanges)
			}))
	}
	if volumes {
		tasks = append(tasks,
			c.optionalList(ResourceVolumeClaims, func(ctx context.Context, l *listing, namespace string) error {
				return fetch(ctx, l, volumeClaimAPI(clients, namespace), &s.VolumeClaims)
			}),
			c.clusterList(ResourceVolumes, func(ctx context.Context, l *listing) error {
				return fetch(ctx, l, volumeAPI(clients), &s.Volumes)
			}),
			c.clusterList(ResourceStorageClasses, func(ctx context.Context, l *listing) error {
				return fetch(ctx, l, storageClassAPI(clients), &s.StorageClasses)
			}))
	}
	for _, task := range tasks {
		if task == nil {
			continue
		}
		if err := task(ctx); err != nil {
			return serverError(ctx, c.server, err)
		}
	}
	for resource := range optionalKinds() {
		inAdmission := resource == ResourceQuotas || resource == ResourceLimitRanges
		if c.wants(resource) && (inAdmission && admission || !inAdmission && volumes) && !slices.Contains(s.Listed, resource) {
			s.Listed = append(s.Listed, resource)
		}
	}
	slices.Sort(s.Listed)
	return nil
}

// optionalList is [collector.namespacedList] for the namespace that the question
// is about, if it is about one.
func (c *collector) optionalList(resource string, list func(context.Context, *listing, string) error) func(context.Context) error {
	if c.opts.Target == nil || !c.wants(resource) {
		return c.namespacedList(resource, list)
	}
	l := c.progress.list(resource)
	return func(ctx context.Context) error {
		err := list(ctx, l, c.namespace)
		if apierrors.IsForbidden(err) {
			l.finished()
			c.gap(Gap{Resource: resource, Reason: fmt.Sprintf("this user may not list %s in namespace %s", resource, c.namespace)})
			return nil
		}
		return c.concluded(l, "in namespace "+c.namespace, err)
	}
}

// concerns reports whether the question may be about a pod that is not placed.
func (c *collector) concerns(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && (len(pod.Spec.ResourceClaims) > 0 || usesExtendedResources(&pod.Spec)) &&
		(c.opts.Target == nil || pod.Namespace == c.namespace)
}

// lacksClaims reports whether a claim of the pod is yet to be created.
func lacksClaims(pod *corev1.Pod) bool {
	for _, entry := range pod.Spec.ResourceClaims {
		if entry.ResourceClaimTemplateName != nil && !slices.ContainsFunc(pod.Status.ResourceClaimStatuses,
			func(status corev1.PodResourceClaimStatus) bool { return status.Name == entry.Name }) {
			return true
		}
	}
	return usesExtendedResources(&pod.Spec)
}

// usesExtendedResources reports whether the pod may get a claim from the
// scheduler.
func usesExtendedResources(spec *corev1.PodSpec) bool {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for name := range containers[i].Resources.Requests {
				if strings.Contains(string(name), "/") {
					return true
				}
			}
		}
	}
	return false
}

// UsesVolumeClaims reports whether a pod has volumes whose PersistentVolumeClaims
// decide where it can run.
func UsesVolumeClaims(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

func quotaAPI(c Clients, namespace string) endpoint[*corev1.ResourceQuota] {
	return typedAPI(c, corev1.SchemeGroupVersion, "resourcequotas", namespace, &corev1.ResourceQuota{}, &corev1.ResourceQuotaList{}, as[*corev1.ResourceQuota])
}

func limitRangeAPI(c Clients, namespace string) endpoint[*corev1.LimitRange] {
	return typedAPI(c, corev1.SchemeGroupVersion, "limitranges", namespace, &corev1.LimitRange{}, &corev1.LimitRangeList{}, as[*corev1.LimitRange])
}

func volumeClaimAPI(c Clients, namespace string) endpoint[*corev1.PersistentVolumeClaim] {
	return typedAPI(c, corev1.SchemeGroupVersion, "persistentvolumeclaims", namespace, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{}, as[*corev1.PersistentVolumeClaim])
}

func volumeAPI(c Clients) endpoint[*corev1.PersistentVolume] {
	return typedAPI(c, corev1.SchemeGroupVersion, "persistentvolumes", "", &corev1.PersistentVolume{}, &corev1.PersistentVolumeList{}, as[*corev1.PersistentVolume])
}

func storageClassAPI(c Clients) endpoint[*storageapi.StorageClass] {
	return typedAPI(c, storageapi.SchemeGroupVersion, "storageclasses", "", &storageapi.StorageClass{}, &storageapi.StorageClassList{}, as[*storageapi.StorageClass])
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

// addListed notes the optional resources of which a dump has objects, or a typed
// list: all of them were dumped then.
func (s *Snapshot) addListed(listed []string) {
	counts := map[string]int{
		ResourceQuotas: len(s.Quotas), ResourceLimitRanges: len(s.LimitRanges),
		ResourceVolumeClaims: len(s.VolumeClaims), ResourceVolumes: len(s.Volumes), ResourceStorageClasses: len(s.StorageClasses),
	}
	for resource, kind := range optionalKinds() {
		if (counts[resource] > 0 || slices.Contains(listed, kind)) && !slices.Contains(s.Listed, resource) {
			s.Listed = append(s.Listed, resource)
		}
	}
	slices.Sort(s.Listed)
}

// stripVolumeObject removes what decides nothing about where a pod can run.
func stripVolumeObject(object metav1.Object) {
	switch object := object.(type) {
	case *corev1.PersistentVolumeClaim:
		object.Spec.DataSource, object.Spec.DataSourceRef = nil, nil
		object.Status.Conditions = nil
	case *corev1.PersistentVolume:
		var csi *corev1.CSIPersistentVolumeSource
		if object.Spec.CSI != nil {
			csi = &corev1.CSIPersistentVolumeSource{Driver: object.Spec.CSI.Driver}
		}
		object.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: csi}
		object.Spec.MountOptions = nil
	case *storageapi.StorageClass:
		object.Parameters, object.MountOptions = nil, nil
	}
}

func (s *Snapshot) sortOptional() {
	sortByName(s.Quotas)
	sortByName(s.LimitRanges)
	sortByName(s.VolumeClaims)
	sortByName(s.Volumes)
	sortByName(s.StorageClasses)
}
