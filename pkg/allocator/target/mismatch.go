// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// GroupMismatch is a pod of a PodGroup that differs from the group at the top, or from
// another pod below it, in what has to be the same for all of them.
type GroupMismatch struct {
	Pod *corev1.Pod
	// Other is the pod that it differs from, nil for the group.
	Other *corev1.Pod
	// Path is the field, in pod and group, and Found and Required what stands there.
	Path            string
	Found, Required string
}

// MismatchOf returns why the scheduler places no pod of a PodGroup, or of a
// CompositePodGroup, whatever is available: it does not try groups whose pods have another
// priority than the group at the top, or different preemption policies or schedulers
// (validatePodGroup in pkg/scheduler/schedule_one_podgroup.go of Kubernetes v1.37.1). It is
// nil if there is no such pod, or if that is not known. The pods are all of the groups that
// have not ended.
func MismatchOf(facts *cluster.Cluster, tree *GroupTree, pods []*corev1.Pod) *GroupMismatch {
	if facts.Behaves(cluster.GroupsNotCompared) {
		return nil
	}
	first := firstWaiting(pods)
	if first == nil {
		return nil
	}
	priority, preemption := tree.required(facts.Snapshot)
	for _, pod := range pods {
		differs := func(path, found, required string) *GroupMismatch {
			return &GroupMismatch{Pod: pod, Other: first, Path: path, Found: found, Required: required}
		}
		switch scheduler := schedulerOf(pod); {
		case scheduler == schedulerOf(first):
		case pod.Spec.NodeName == "":
			// The other scheduler decides about it.
			continue
		default:
			return differs("spec.schedulerName", scheduler, schedulerOf(first))
		}
		if found, ok := priorityOf(facts.Snapshot, pod.Spec.Priority, pod.Spec.PriorityClassName, Hypothetical(pod)); priority != nil && ok && found != *priority {
			return &GroupMismatch{Pod: pod, Path: "spec.priority", Found: fmt.Sprint(found), Required: fmt.Sprint(*priority)}
		}
		found := preemptionOf(pod)
		if preemption != nil && string(*preemption) != string(found) {
			return &GroupMismatch{Pod: pod, Path: "spec.preemptionPolicy", Found: string(found), Required: string(*preemption)}
		}
		if policy := preemptionOf(first); found != policy {
			return differs("spec.preemptionPolicy", string(found), string(policy))
		}
	}
	return nil
}

// firstWaiting returns a waiting pod, which others are compared with.
func firstWaiting(pods []*corev1.Pod) *corev1.Pod {
	for _, pod := range pods {
		if snapshot.Waits(pod) {
			return pod
		}
	}
	return nil
}

func schedulerOf(pod *corev1.Pod) string {
	return cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
}

func preemptionOf(pod *corev1.Pod) corev1.PreemptionPolicy {
	return ptr.Deref(pod.Spec.PreemptionPolicy, corev1.PreemptLowerPriority)
}
