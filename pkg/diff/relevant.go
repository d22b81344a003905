// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// relevant is a part of an object that decides about devices: without versions, ages and
// heartbeats.
type relevant struct {
	Metadata relevantMeta `json:"metadata"`
	Spec     any          `json:"spec,omitempty"`
	Status   any          `json:"status,omitempty"`
}

type relevantMeta struct {
	Labels   map[string]string `json:"labels,omitempty"`
	UID      string            `json:"uid,omitempty"`
	Deleting bool              `json:"deletionTimestamp,omitempty"`
}

func relevantNode(n *corev1.Node) relevant {
	spec := corev1.NodeSpec{Unschedulable: n.Spec.Unschedulable}
	for _, taint := range n.Spec.Taints {
		spec.Taints = append(spec.Taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
	}
	status := corev1.NodeStatus{Allocatable: n.Status.Allocatable, NodeInfo: corev1.NodeSystemInfo{KubeletVersion: n.Status.NodeInfo.KubeletVersion}}
	for i := range n.Status.Conditions {
		status.Conditions = append(status.Conditions, corev1.NodeCondition{Type: n.Status.Conditions[i].Type, Status: n.Status.Conditions[i].Status})
	}
	slices.SortFunc(status.Conditions, func(a, b corev1.NodeCondition) int { return strings.Compare(string(a.Type), string(b.Type)) })
	return relevant{relevantMeta{Labels: n.Labels, Deleting: n.DeletionTimestamp != nil}, spec, status}
}

func relevantPod(p *corev1.Pod) relevant {
	status := corev1.PodStatus{NominatedNodeName: p.Status.NominatedNodeName, ResourceClaimStatuses: p.Status.ResourceClaimStatuses, ExtendedResourceClaimStatus: p.Status.ExtendedResourceClaimStatus}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		status.Phase = p.Status.Phase
	}
	return relevant{relevantMeta{p.Labels, string(p.UID), p.DeletionTimestamp != nil}, p.Spec, status}
}

func relevantClaim(c *resourceapi.ResourceClaim) relevant {
	status := resourceapi.ResourceClaimStatus{}
	if a := c.Status.Allocation; a != nil {
		status.Allocation = &resourceapi.AllocationResult{Devices: a.Devices, NodeSelector: a.NodeSelector}
	}
	for _, consumer := range c.Status.ReservedFor {
		status.ReservedFor = append(status.ReservedFor, resourceapi.ResourceClaimConsumerReference{APIGroup: consumer.APIGroup, Resource: consumer.Resource, Name: consumer.Name})
	}
	return relevant{relevantMeta{UID: string(c.UID), Deleting: c.DeletionTimestamp != nil}, c.Spec, status}
}

// relevantSlice returns the spec of a slice, with the generation of its pool counted back from the
// newest one: a driver that publishes the same devices again changes nothing.
func relevantSlice(s *resourceapi.ResourceSlice, newest map[snapshot.PoolID]int64) relevant {
	spec := s.Spec
	spec.Pool.Generation -= newest[snapshot.PoolOf(s)]
	spec.Devices = slices.Clone(spec.Devices)
	for i := range spec.Devices {
		spec.Devices[i] = timeless(&spec.Devices[i])
	}
	return relevant{Spec: spec}
}

// timeless returns a device without the times of its taints.
func timeless(d *resourceapi.Device) resourceapi.Device {
	out := *d
	out.Taints = slices.Clone(d.Taints)
	for i := range out.Taints {
		out.Taints[i].TimeAdded = nil
	}
	return out
}

func relevantRule(r *resourceapi.DeviceTaintRule) relevant {
	spec := r.Spec
	spec.Taint.TimeAdded = nil
	return relevant{Spec: spec}
}

func relevantWorkload(w *snapshot.Workload) relevant {
	return relevant{Spec: map[string]any{"replicas": w.Replicas, "template": w.Template.Spec}}
}

func relevantNamespace(n *corev1.Namespace) relevant {
	return relevant{Metadata: relevantMeta{Labels: n.Labels, Deleting: n.DeletionTimestamp != nil}}
}

// newestGenerations returns the newest generation of each pool.
func newestGenerations(list []*resourceapi.ResourceSlice) map[snapshot.PoolID]int64 {
	newest := map[snapshot.PoolID]int64{}
	for _, s := range list {
		newest[snapshot.PoolOf(s)] = max(newest[snapshot.PoolOf(s)], s.Spec.Pool.Generation)
	}
	return newest
}
