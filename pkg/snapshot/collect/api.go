// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	corev1 "k8s.io/api/core/v1"
	policyapi "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	storageapi "k8s.io/api/storage/v1"
	convertv1beta1 "k8s.io/dynamic-resource-allocation/api/v1beta1"
	convertv1beta2 "k8s.io/dynamic-resource-allocation/api/v1beta2"
)

func nodeAPI(c Clients) endpoint[*corev1.Node] {
	return typedAPI(c, corev1.SchemeGroupVersion, "nodes", "", &corev1.Node{}, &corev1.NodeList{}, as[*corev1.Node])
}

func namespaceAPI(c Clients) endpoint[*corev1.Namespace] {
	return typedAPI(c, corev1.SchemeGroupVersion, "namespaces", "", &corev1.Namespace{}, &corev1.NamespaceList{}, as[*corev1.Namespace])
}

func podAPI(c Clients, namespace string) endpoint[*corev1.Pod] {
	return typedAPI(c, corev1.SchemeGroupVersion, "pods", namespace, &corev1.Pod{}, &corev1.PodList{}, as[*corev1.Pod])
}

func eventAPI(c Clients, namespace string) endpoint[*corev1.Event] {
	return typedAPI(c, corev1.SchemeGroupVersion, "events", namespace, &corev1.Event{}, &corev1.EventList{}, as[*corev1.Event])
}

func sliceAPI(c Clients, version string) endpoint[*resourceapi.ResourceSlice] {
	const resource = "resourceslices"
	switch version {
	case "v1beta1":
		return typedAPI(c, resourcev1beta1.SchemeGroupVersion, resource, "", &resourcev1beta1.ResourceSlice{}, &resourcev1beta1.ResourceSliceList{},
			from(convertv1beta1.Convert_v1beta1_ResourceSlice_To_v1_ResourceSlice))
	case "v1beta2":
		return typedAPI(c, resourcev1beta2.SchemeGroupVersion, resource, "", &resourcev1beta2.ResourceSlice{}, &resourcev1beta2.ResourceSliceList{},
			from(convertv1beta2.Convert_v1beta2_ResourceSlice_To_v1_ResourceSlice))
	default:
		return typedAPI(c, resourceapi.SchemeGroupVersion, resource, "", &resourceapi.ResourceSlice{}, &resourceapi.ResourceSliceList{}, as[*resourceapi.ResourceSlice])
	}
}

func classAPI(c Clients, version string) endpoint[*resourceapi.DeviceClass] {
	const resource = "deviceclasses"
	switch version {
	case "v1beta1":
		return typedAPI(c, resourcev1beta1.SchemeGroupVersion, resource, "", &resourcev1beta1.DeviceClass{}, &resourcev1beta1.DeviceClassList{},
			from(convertv1beta1.Convert_v1beta1_DeviceClass_To_v1_DeviceClass))
	case "v1beta2":
		return typedAPI(c, resourcev1beta2.SchemeGroupVersion, resource, "", &resourcev1beta2.DeviceClass{}, &resourcev1beta2.DeviceClassList{},
			from(convertv1beta2.Convert_v1beta2_DeviceClass_To_v1_DeviceClass))
	default:
		return typedAPI(c, resourceapi.SchemeGroupVersion, resource, "", &resourceapi.DeviceClass{}, &resourceapi.DeviceClassList{}, as[*resourceapi.DeviceClass])
	}
}

func claimAPI(c Clients, version, namespace string) endpoint[*resourceapi.ResourceClaim] {
	const resource = "resourceclaims"
	switch version {
	case "v1beta1":
		return typedAPI(c, resourcev1beta1.SchemeGroupVersion, resource, namespace, &resourcev1beta1.ResourceClaim{}, &resourcev1beta1.ResourceClaimList{},
			from(convertv1beta1.Convert_v1beta1_ResourceClaim_To_v1_ResourceClaim))
	case "v1beta2":
		return typedAPI(c, resourcev1beta2.SchemeGroupVersion, resource, namespace, &resourcev1beta2.ResourceClaim{}, &resourcev1beta2.ResourceClaimList{},
			from(convertv1beta2.Convert_v1beta2_ResourceClaim_To_v1_ResourceClaim))
	default:
		return typedAPI(c, resourceapi.SchemeGroupVersion, resource, namespace, &resourceapi.ResourceClaim{}, &resourceapi.ResourceClaimList{}, as[*resourceapi.ResourceClaim])
	}
}

func templateAPI(c Clients, version, namespace string) endpoint[*resourceapi.ResourceClaimTemplate] {
	const resource = "resourceclaimtemplates"
	switch version {
	case "v1beta1":
		return typedAPI(c, resourcev1beta1.SchemeGroupVersion, resource, namespace, &resourcev1beta1.ResourceClaimTemplate{}, &resourcev1beta1.ResourceClaimTemplateList{},
			from(convertv1beta1.Convert_v1beta1_ResourceClaimTemplate_To_v1_ResourceClaimTemplate))
	case "v1beta2":
		return typedAPI(c, resourcev1beta2.SchemeGroupVersion, resource, namespace, &resourcev1beta2.ResourceClaimTemplate{}, &resourcev1beta2.ResourceClaimTemplateList{},
			from(convertv1beta2.Convert_v1beta2_ResourceClaimTemplate_To_v1_ResourceClaimTemplate))
	default:
		return typedAPI(c, resourceapi.SchemeGroupVersion, resource, namespace, &resourceapi.ResourceClaimTemplate{}, &resourceapi.ResourceClaimTemplateList{}, as[*resourceapi.ResourceClaimTemplate])
	}
}

func taintRuleAPI(c Clients, version string) endpoint[*resourceapi.DeviceTaintRule] {
	const resource = "devicetaintrules"
	switch version {
	case oldTaintRules:
		return untypedAPI(c.oldTaintRuleAPI(), asOldTaintRule)
	case "v1beta2":
		return typedAPI(c, resourcev1beta2.SchemeGroupVersion, resource, "", &resourcev1beta2.DeviceTaintRule{}, &resourcev1beta2.DeviceTaintRuleList{},
			from(convertv1beta2.Convert_v1beta2_DeviceTaintRule_To_v1_DeviceTaintRule))
	default:
		return typedAPI(c, resourceapi.SchemeGroupVersion, resource, "", &resourceapi.DeviceTaintRule{}, &resourceapi.DeviceTaintRuleList{}, as[*resourceapi.DeviceTaintRule])
	}
}

func podGroupAPI(c Clients, version, namespace string) endpoint[*schedulingapi.PodGroup] {
	if version != schedulingapi.SchemeGroupVersion.Version {
		return untypedAPI(c.oldPodGroupAPI(version, namespace), asOldPodGroup(version))
	}
	return typedAPI(c, schedulingapi.SchemeGroupVersion, "podgroups", namespace, &schedulingapi.PodGroup{}, &schedulingapi.PodGroupList{}, as[*schedulingapi.PodGroup])
}

func compositePodGroupAPI(c Clients, namespace string) endpoint[*schedulingv1alpha3.CompositePodGroup] {
	return typedAPI(c, schedulingv1alpha3.SchemeGroupVersion, "compositepodgroups", namespace, &schedulingv1alpha3.CompositePodGroup{}, &schedulingv1alpha3.CompositePodGroupList{}, as[*schedulingv1alpha3.CompositePodGroup])
}

func quotaAPI(c Clients, namespace string) endpoint[*corev1.ResourceQuota] {
	return typedAPI(c, corev1.SchemeGroupVersion, "resourcequotas", namespace, &corev1.ResourceQuota{}, &corev1.ResourceQuotaList{}, as[*corev1.ResourceQuota])
}

func limitRangeAPI(c Clients, namespace string) endpoint[*corev1.LimitRange] {
	return typedAPI(c, corev1.SchemeGroupVersion, "limitranges", namespace, &corev1.LimitRange{}, &corev1.LimitRangeList{}, as[*corev1.LimitRange])
}

func budgetAPI(c Clients, namespace string) endpoint[*policyapi.PodDisruptionBudget] {
	return typedAPI(c, policyapi.SchemeGroupVersion, "poddisruptionbudgets", namespace, &policyapi.PodDisruptionBudget{}, &policyapi.PodDisruptionBudgetList{}, as[*policyapi.PodDisruptionBudget])
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
