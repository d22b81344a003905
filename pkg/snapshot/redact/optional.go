// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyapi "k8s.io/api/policy/v1"
	storageapi "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is read only where pods depend on it. The names of resources that are
// counted stay: they are those of classes.

func redactQuota(r *redactor, quota *corev1.ResourceQuota) {
	r.meta(&quota.ObjectMeta, "ResourceQuota")
	redactQuotaResources(r, quota.Spec.Hard)
	redactQuotaResources(r, quota.Status.Hard)
	redactQuotaResources(r, quota.Status.Used)
	if quota.Spec.ScopeSelector == nil {
		return
	}
	for i := range quota.Spec.ScopeSelector.MatchExpressions {
		expression := &quota.Spec.ScopeSelector.MatchExpressions[i]
		for j := range expression.Values {
			expression.Values[j] = r.priorityClass(expression.Values[j])
		}
	}
}

func redactLimitRange(r *redactor, limits *corev1.LimitRange) {
	r.meta(&limits.ObjectMeta, "LimitRange")
}

func redactBudget(r *redactor, budget *policyapi.PodDisruptionBudget) {
	r.meta(&budget.ObjectMeta, "PodDisruptionBudget")
	r.labelSelector(budget.Spec.Selector)
	// How many it allows is in its status.
	budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = nil, nil
	budget.Status.DisruptedPods = nil
	r.conditions(budget.Status.Conditions)
}

func redactStorageClass(r *redactor, class *storageapi.StorageClass) {
	r.meta(&class.ObjectMeta, tableStorageClass)
	r.keep(class.Provisioner)
	for i := range class.AllowedTopologies {
		for j := range class.AllowedTopologies[i].MatchLabelExpressions {
			expression := &class.AllowedTopologies[i].MatchLabelExpressions[j]
			for k := range expression.Values {
				expression.Values[k] = r.labelValue(expression.Key, expression.Values[k])
			}
		}
	}
}

// redactQuotaResources replaces the StorageClasses in names of resources.
func redactQuotaResources(r *redactor, list corev1.ResourceList) {
	const suffix = ".storageclass.storage.k8s.io/"
	for name, quantity := range maps.Clone(list) {
		class, resource, found := strings.Cut(string(name), suffix)
		if !found {
			continue
		}
		pseudonym := r.swap(tableStorageClass, class)
		if r.stage == rewrite {
			delete(list, name)
			list[corev1.ResourceName(pseudonym+suffix+resource)] = quantity
		}
	}
}

func redactVolumeClaim(r *redactor, claim *corev1.PersistentVolumeClaim) {
	name, owner := claim.Name, metav1.GetControllerOfNoCopy(claim)
	if owner != nil && owner.Kind == "Pod" && strings.HasPrefix(name, owner.Name+"-") {
		// The claim of an ephemeral volume is found by the names of both.
		name = r.swap("Pod", owner.Name) + "-" + r.swap(tableVolume, strings.TrimPrefix(name, owner.Name+"-"))
		r.meta(&claim.ObjectMeta, tableVolumeClaim)
		claim.Name = name
	} else {
		r.meta(&claim.ObjectMeta, tableVolumeClaim)
	}
	claim.Status.HealthStatus = nil
	claim.Spec.VolumeName = r.swap(tablePersistentVolume, claim.Spec.VolumeName)
	r.pointer(tableStorageClass, claim.Spec.StorageClassName)
	claim.Spec.VolumeAttributesClassName, claim.Status.CurrentVolumeAttributesClassName, claim.Status.ModifyVolumeStatus = nil, nil, nil
	r.labelSelector(claim.Spec.Selector)
}

func redactPersistentVolume(r *redactor, volume *corev1.PersistentVolume) {
	r.meta(&volume.ObjectMeta, tablePersistentVolume)
	if volume.Spec.ClaimRef != nil {
		r.reference(volume.Spec.ClaimRef)
	}
	volume.Spec.StorageClassName = r.swap(tableStorageClass, volume.Spec.StorageClassName)
	volume.Spec.VolumeAttributesClassName = nil
	if volume.Spec.NodeAffinity != nil {
		r.nodeSelector(volume.Spec.NodeAffinity.Required)
	}
	volume.Status.Message = r.text(volume.Status.Message)
	if volume.Spec.CSI != nil {
		r.keep(volume.Spec.CSI.Driver)
	}
}
