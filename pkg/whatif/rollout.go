// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Paths of the update strategies of a Deployment (strategyPath) and of a DaemonSet
// (updateStrategyPath).
const (
	strategyPath       = "/spec/strategy"
	updateStrategyPath = "/spec/updateStrategy"
)

// OldPods lists the pods of earlier revisions of the Deployment that a pod belongs to, or
// of the DaemonSet on the same node, the oldest first: the pods that a rolling update
// replaces. There are none for other pods.
func OldPods(snap *snapshot.Snapshot, pod *corev1.Pod) (m Workload, old []*corev1.Pod) {
	m, made := WorkloadOf(snap, pod)
	if !made || m.APIGroup != appsv1.GroupName {
		return m, nil
	}
	revision, node := "", ""
	switch m.Kind {
	case snapshot.KindDeployment:
		revision = appsv1.DefaultDeploymentUniqueLabelKey
	case snapshot.KindDaemonSet:
		revision, node = appsv1.DefaultDaemonSetUniqueLabelKey, snapshot.DaemonNode(pod)
	default:
		return m, nil
	}
	for _, other := range snap.Pods {
		if m.Kind == snapshot.KindDaemonSet && (node == "" || other.Spec.NodeName != node) {
			continue
		}
		if of, made := WorkloadOf(snap, other); made && other.Namespace == pod.Namespace && of.Kind == m.Kind && of.Name == m.Name &&
			other.Labels[revision] != pod.Labels[revision] && other.CreationTimestamp.Before(&pod.CreationTimestamp) &&
			!snapshot.Finished(other) {
			old = append(old, other)
		}
	}
	slices.SortStableFunc(old, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return m, old
}

// Replacing returns the edit with which a Deployment or a DaemonSet deletes so many pods
// before it creates others in their place.
func Replacing(m Workload, count int) api.Edit {
	path := strategyPath
	if m.Kind == snapshot.KindDaemonSet {
		path = updateStrategyPath
	}
	return NewEdit(m.ObjectRef, "replace", path, appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: new(intstr.FromInt32(0)), MaxUnavailable: new(intstr.FromInt32(int32(count))),
		},
	})
}

// ReplacesPods reports whether an edit is from [Replacing].
func ReplacesPods(e api.Edit) bool { return e.Path == strategyPath || e.Path == updateStrategyPath }

// Strategy returns the update strategy of a workload in the snapshot, nil if it has no such
// object.
func (m Workload) Strategy() *snapshot.Update {
	switch {
	case m.stored == nil:
		return nil
	case m.stored.Update == nil:
		return &snapshot.Update{}
	default:
		return m.stored.Update
	}
}

// WithoutPods returns the snapshot after pods were deleted, and their claims released that
// no other pod uses.
func WithoutPods(snap *snapshot.Snapshot, pods []*corev1.Pod) *snapshot.Snapshot {
	return Leave(snap, func(pod *corev1.Pod) bool { return slices.Contains(pods, pod) },
		func(claim *resourceapi.ResourceClaim, _ *resourceapi.DeviceRequestAllocationResult) bool {
			users := claim.Status.ReservedFor
			return len(users) > 0 && !slices.ContainsFunc(users, func(user resourceapi.ResourceClaimConsumerReference) bool {
				return !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.UID == user.UID && pod.Namespace == claim.Namespace })
			})
		})
}

// replace changes the snapshot to the state after a workload has deleted as many old pods
// as such an edit allows.
func replace(snap *snapshot.Snapshot, object api.ObjectRef, e api.Edit) error {
	var strategy appsv1.DeploymentStrategy
	if err := json.Unmarshal(e.Value, &strategy); err != nil {
		return fmt.Errorf("read the value of %s: %w", e.Path, err)
	}
	for _, pod := range snap.Pods {
		m, old := OldPods(snap, pod)
		if len(old) == 0 || m.ObjectRef != object || pod.Spec.NodeName != "" {
			continue
		}
		count := len(old)
		if limits := strategy.RollingUpdate; limits != nil && limits.MaxUnavailable != nil {
			count = min(count, limits.MaxUnavailable.IntValue())
		}
		*snap = *WithoutPods(snap, old[:count])
		return nil
	}
	return nil
}
