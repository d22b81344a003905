// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func redactPod(r *redactor, pod *corev1.Pod) {
	r.meta(&pod.ObjectMeta, "Pod")
	redactPodSpec(r, &pod.Spec)
	redactPodStatus(r, &pod.Status)
}

func redactWorkload(r *redactor, workload *snapshot.Workload) {
	r.meta(&workload.ObjectMeta, workload.Kind)
	r.labelSelector(workload.Selector)
	r.meta(&workload.Template.ObjectMeta, "Pod")
	redactPodSpec(r, &workload.Template.Spec)
	r.conditions(workload.Conditions)
}

func redactPodSpec(r *redactor, spec *corev1.PodSpec) {
	spec.NodeName = r.swap(tableNode, spec.NodeName)
	spec.ServiceAccountName = r.swap("ServiceAccount", spec.ServiceAccountName)
	spec.DeprecatedServiceAccount = r.swap("ServiceAccount", spec.DeprecatedServiceAccount)
	spec.Hostname, spec.Subdomain, spec.HostnameOverride = "", "", nil
	spec.EvictionResponders = nil
	spec.PriorityClassName = r.priorityClass(spec.PriorityClassName)
	r.pointer("RuntimeClass", spec.RuntimeClassName)
	if spec.SchedulerName != corev1.DefaultSchedulerName {
		spec.SchedulerName = r.swap("Scheduler", spec.SchedulerName)
	}
	if spec.SchedulingGroup != nil {
		r.pointer(tablePodGroup, spec.SchedulingGroup.PodGroupName)
	}
	r.labels(spec.NodeSelector)
	for i := range spec.Tolerations {
		spec.Tolerations[i].Value = r.taintValue(spec.Tolerations[i].Value)
	}
	for i := range spec.TopologySpreadConstraints {
		r.labelSelector(spec.TopologySpreadConstraints[i].LabelSelector)
	}
	if spec.Affinity != nil {
		redactAffinity(r, spec.Affinity)
	}
	for i := range spec.ResourceClaims {
		claim := &spec.ResourceClaims[i]
		claim.Name = r.swap(tablePodClaim, claim.Name)
		r.pointer("ResourceClaim", claim.ResourceClaimName)
		r.pointer("ResourceClaimTemplate", claim.ResourceClaimTemplateName)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			container := &containers[i]
			container.Name = r.swap(tableContainer, container.Name)
			container.Image = r.swap(tableImage, container.Image)
			for j := range container.Ports {
				container.Ports[j].Name = ""
				container.Ports[j].HostIP = ""
			}
			for j := range container.Resources.Claims {
				container.Resources.Claims[j].Name = r.swap(tablePodClaim, container.Resources.Claims[j].Name)
			}
		}
	}
	for i := range spec.SchedulingGates {
		spec.SchedulingGates[i].Name = r.qualified(spec.SchedulingGates[i].Name)
	}
	for i := range spec.ReadinessGates {
		spec.ReadinessGates[i].ConditionType = corev1.PodConditionType(r.qualified(string(spec.ReadinessGates[i].ConditionType)))
	}
	if spec.Resources != nil {
		for i := range spec.Resources.Claims {
			spec.Resources.Claims[i].Name = r.swap(tablePodClaim, spec.Resources.Claims[i].Name)
		}
	}
	for i := range spec.Volumes {
		redactVolume(r, &spec.Volumes[i])
	}
}

func redactVolume(r *redactor, volume *corev1.Volume) {
	volume.Name = r.swap(tableVolume, volume.Name)
	if volume.PersistentVolumeClaim != nil {
		volume.PersistentVolumeClaim.ClaimName = r.swap("PersistentVolumeClaim", volume.PersistentVolumeClaim.ClaimName)
	}
	if volume.ConfigMap != nil {
		volume.ConfigMap.Name = r.swap("ConfigMap", volume.ConfigMap.Name)
	}
	if volume.Secret != nil {
		volume.Secret.SecretName = r.swap("Secret", volume.Secret.SecretName)
	}
	if volume.Ephemeral != nil {
		volume.Ephemeral = &corev1.EphemeralVolumeSource{}
	}
}

func redactAffinity(r *redactor, affinity *corev1.Affinity) {
	if node := affinity.NodeAffinity; node != nil {
		r.nodeSelector(node.RequiredDuringSchedulingIgnoredDuringExecution)
		for i := range node.PreferredDuringSchedulingIgnoredDuringExecution {
			r.nodeTerm(&node.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
		}
	}
	if pod := affinity.PodAffinity; pod != nil {
		redactPodTerms(r, pod.RequiredDuringSchedulingIgnoredDuringExecution, pod.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if pod := affinity.PodAntiAffinity; pod != nil {
		redactPodTerms(r, pod.RequiredDuringSchedulingIgnoredDuringExecution, pod.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func redactPodTerms(r *redactor, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	for i := range required {
		redactPodTerm(r, &required[i])
	}
	for i := range preferred {
		redactPodTerm(r, &preferred[i].PodAffinityTerm)
	}
}

func redactPodTerm(r *redactor, term *corev1.PodAffinityTerm) {
	r.labelSelector(term.LabelSelector)
	r.labelSelector(term.NamespaceSelector)
	for i := range term.Namespaces {
		term.Namespaces[i] = r.swap(tableNamespace, term.Namespaces[i])
	}
}

func redactPodStatus(r *redactor, status *corev1.PodStatus) {
	status.Message = r.text(status.Message)
	status.NominatedNodeName = r.swap(tableNode, status.NominatedNodeName)
	status.VolumeHealth = nil
	status.HostIP = r.swap(tableIP, status.HostIP)
	status.PodIP = r.swap(tableIP, status.PodIP)
	for i := range status.HostIPs {
		status.HostIPs[i].IP = r.swap(tableIP, status.HostIPs[i].IP)
	}
	for i := range status.PodIPs {
		status.PodIPs[i].IP = r.swap(tableIP, status.PodIPs[i].IP)
	}
	for i := range status.Conditions {
		status.Conditions[i].Type = corev1.PodConditionType(r.qualified(string(status.Conditions[i].Type)))
		status.Conditions[i].Message = r.text(status.Conditions[i].Message)
	}
	if status.Resources != nil {
		for i := range status.Resources.Claims {
			status.Resources.Claims[i].Name = r.swap(tablePodClaim, status.Resources.Claims[i].Name)
		}
	}
	for i := range status.ResourceClaimStatuses {
		claim := &status.ResourceClaimStatuses[i]
		claim.Name = r.swap(tablePodClaim, claim.Name)
		r.pointer("ResourceClaim", claim.ResourceClaimName)
	}
	if extended := status.ExtendedResourceClaimStatus; extended != nil {
		extended.ResourceClaimName = r.swap("ResourceClaim", extended.ResourceClaimName)
		for i := range extended.RequestMappings {
			extended.RequestMappings[i].ContainerName = r.swap(tableContainer, extended.RequestMappings[i].ContainerName)
		}
	}
	for i := range status.NodeAllocatableResourceClaimStatuses {
		claim := &status.NodeAllocatableResourceClaimStatuses[i]
		claim.ResourceClaimName = r.swap("ResourceClaim", claim.ResourceClaimName)
		for j := range claim.Containers {
			claim.Containers[j] = r.swap(tableContainer, claim.Containers[j])
		}
	}
	statuses := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses)
	for i := range statuses {
		redactContainerStatus(r, &statuses[i])
	}
	copy(status.InitContainerStatuses, statuses)
	copy(status.ContainerStatuses, statuses[len(status.InitContainerStatuses):])
}

func redactContainerStatus(r *redactor, status *corev1.ContainerStatus) {
	status.Name = r.swap(tableContainer, status.Name)
	status.Image = r.swap(tableImage, status.Image)
	for _, state := range []*corev1.ContainerState{&status.State, &status.LastTerminationState} {
		if state.Waiting != nil {
			state.Waiting.Message = r.text(state.Waiting.Message)
		}
		if state.Terminated != nil {
			state.Terminated.Message = r.text(state.Terminated.Message)
			state.Terminated.ContainerID = ""
		}
	}
	if status.Resources != nil {
		for i := range status.Resources.Claims {
			status.Resources.Claims[i].Name = r.swap(tablePodClaim, status.Resources.Claims[i].Name)
		}
	}
	for i := range status.AllocatedResourcesStatus {
		resource := &status.AllocatedResourcesStatus[i]
		resource.Name = resourceName(r, resource.Name)
		for j := range resource.Resources {
			health := &resource.Resources[j]
			health.ResourceID = resourceID(r, health.ResourceID)
			if health.Message != nil {
				*health.Message = r.text(*health.Message)
			}
		}
	}
}

// resourceName redacts "claim:POD_CLAIM/REQUEST".
func resourceName(r *redactor, name corev1.ResourceName) corev1.ResourceName {
	claim, ok := strings.CutPrefix(string(name), "claim:")
	if !ok {
		return name
	}
	claim, request, hasRequest := strings.Cut(claim, "/")
	claim = "claim:" + r.swap(tablePodClaim, claim)
	if hasRequest {
		claim += "/" + request
	}
	return corev1.ResourceName(claim)
}

// resourceID redacts "DRIVER/POOL/DEVICE".
func resourceID(r *redactor, id corev1.ResourceID) corev1.ResourceID {
	parts := strings.Split(string(id), "/")
	if len(parts) != 3 {
		return corev1.ResourceID(r.text(string(id)))
	}
	return corev1.ResourceID(parts[0] + "/" + r.swap(tableNode, parts[1]) + "/" + r.device(parts[2]))
}
