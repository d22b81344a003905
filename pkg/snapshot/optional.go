// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

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

// UsesVolumeClaims reports whether a pod has volumes whose PersistentVolumeClaims
// decide where it can run.
func UsesVolumeClaims(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}
