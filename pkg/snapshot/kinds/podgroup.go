// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podGroupV1alpha2 has the fields of scheduling.k8s.io/v1alpha2 (Kubernetes
// 1.36) that differ from later versions.
type podGroupV1alpha2 struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		PodGroupTemplateRef *struct {
			Workload *struct {
				WorkloadName         string `json:"workloadName"`
				PodGroupTemplateName string `json:"podGroupTemplateName"`
			} `json:"workload"`
		} `json:"podGroupTemplateRef"`
		SchedulingPolicy      schedulingapi.PodGroupSchedulingPolicy       `json:"schedulingPolicy"`
		SchedulingConstraints *schedulingapi.PodGroupSchedulingConstraints `json:"schedulingConstraints"`
		ResourceClaims        []schedulingapi.PodGroupResourceClaim        `json:"resourceClaims"`
		DisruptionMode        *string                                      `json:"disruptionMode"`
		PriorityClassName     string                                       `json:"priorityClassName"`
		Priority              *int32                                       `json:"priority"`
	} `json:"spec"`
	Status schedulingapi.PodGroupStatus `json:"status"`
}

// DecodePodGroup decodes a PodGroup. v1alpha3 and v1beta1 have the same fields.
func DecodePodGroup(data []byte, version string) (*schedulingapi.PodGroup, error) {
	if version != "v1alpha2" {
		return DecodeAs[schedulingapi.PodGroup](data)
	}
	old, err := DecodeAs[podGroupV1alpha2](data)
	if err != nil {
		return nil, err
	}
	group := &schedulingapi.PodGroup{ObjectMeta: old.ObjectMeta, Status: old.Status}
	group.Spec = schedulingapi.PodGroupSpec{
		SchedulingPolicy:      old.Spec.SchedulingPolicy,
		SchedulingConstraints: old.Spec.SchedulingConstraints,
		ResourceClaims:        old.Spec.ResourceClaims,
		PriorityClassName:     old.Spec.PriorityClassName,
		Priority:              old.Spec.Priority,
	}
	if ref := old.Spec.PodGroupTemplateRef; ref != nil && ref.Workload != nil {
		group.Spec.WorkloadRef = &schedulingapi.WorkloadReference{
			WorkloadName: ref.Workload.WorkloadName,
			TemplateName: ref.Workload.PodGroupTemplateName,
		}
	}
	if mode := old.Spec.DisruptionMode; mode != nil {
		group.Spec.DisruptionMode = &schedulingapi.DisruptionMode{}
		if *mode == "PodGroup" {
			group.Spec.DisruptionMode.All = &schedulingapi.AllDisruptionMode{}
		} else {
			group.Spec.DisruptionMode.Single = &schedulingapi.SingleDisruptionMode{}
		}
	}
	return group, nil
}

func redactedGroups() []Redaction {
	return []Redaction{
		redacted[schedulingapi.PodGroup](`metadata  meta PodGroup`),
		redacted[schedulingapi.PodGroupSpec](`
			parentCompositePodGroupName  name CompositePodGroup
			priorityClassName            priorityClass`),
		redacted[schedulingapi.WorkloadReference](`
			workloadName  name Workload
			templateName  name PodGroupTemplate`),
		redacted[schedulingapi.PodGroupResourceClaim](`
			name                       name PodClaim
			resourceClaimName          name ResourceClaim
			resourceClaimTemplateName  name ResourceClaimTemplate`),
		redacted[schedulingapi.PodGroupResourceClaimStatus](`
			name               name PodClaim
			resourceClaimName  name ResourceClaim`),
		redacted[schedulingv1alpha3.CompositePodGroup](`metadata  meta CompositePodGroup`),
		redacted[schedulingv1alpha3.CompositePodGroupSpec](`
			parentCompositePodGroupName  name CompositePodGroup
			priorityClassName            priorityClass`),
		redacted[schedulingv1alpha3.WorkloadReference](`
			workloadName  name Workload
			templateName  name PodGroupTemplate`),
	}
}
