// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	storageapi "k8s.io/api/storage/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// compareOthers adds the changes of objects that decide about pods besides devices. Most of them are
// read only where a pod depends on them.
func (c *comparison) compareOthers() {
	both := func(resource string) bool {
		return slices.Contains(c.old.Listed, resource) == slices.Contains(c.new.Listed, resource)
	}
	compareList(c, snapshot.ResourcePodGroups, api.KindPodGroup, api.KindPodGroup, c.old.PodGroups, c.new.PodGroups, func(o *schedulingapi.PodGroup) relevant { return relevant{Spec: o.Spec} })
	if both(snapshot.ResourceCompositePodGroups) {
		compareList(c, snapshot.ResourceCompositePodGroups, api.KindCompositePodGroup, api.KindCompositePodGroup, c.old.CompositePodGroups, c.new.CompositePodGroups, func(o *schedulingv1alpha3.CompositePodGroup) relevant {
			return relevant{Spec: o.Spec}
		})
	}
	if both(snapshot.ResourceQuotas) {
		compareList(c, snapshot.ResourceQuotas, "ResourceQuota", "ResourceQuota", c.old.Quotas, c.new.Quotas, func(o *corev1.ResourceQuota) relevant { return relevant{Spec: o.Spec, Status: o.Status} })
	}
	if both(snapshot.ResourceLimitRanges) {
		compareList(c, snapshot.ResourceLimitRanges, "LimitRange", "LimitRange", c.old.LimitRanges, c.new.LimitRanges, func(o *corev1.LimitRange) relevant { return relevant{Spec: o.Spec} })
	}
	if both(snapshot.ResourceVolumeClaims) {
		compareList(c, snapshot.ResourceVolumeClaims, "PersistentVolumeClaim", "PersistentVolumeClaim", c.old.VolumeClaims, c.new.VolumeClaims, func(o *corev1.PersistentVolumeClaim) relevant {
			return relevant{Spec: o.Spec, Status: o.Status.Phase}
		})
	}
	if both(snapshot.ResourceVolumes) {
		compareList(c, snapshot.ResourceVolumes, "PersistentVolume", "PersistentVolume", c.old.Volumes, c.new.Volumes, func(o *corev1.PersistentVolume) relevant { return relevant{Spec: o.Spec, Status: o.Status.Phase} })
	}
	if both(snapshot.ResourceStorageClasses) {
		compareList(c, snapshot.ResourceStorageClasses, "StorageClass", "StorageClass", c.old.StorageClasses, c.new.StorageClasses, func(o *storageapi.StorageClass) relevant {
			return relevant{Spec: []any{o.Provisioner, o.VolumeBindingMode, o.AllowedTopologies}}
		})
	}
}
