// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// mover is a pod that could run on another node: it has devices of its node only, of claims
// that nobody else uses, and is not bound to the node.
type mover struct {
	pod    *corev1.Pod
	claims []*resourceapi.ResourceClaim
	// class is the class of its first request, devices how many it has.
	class   string
	devices int
}

// moversIn returns the pods of a snapshot that could run elsewhere.
func moversIn(snap *snapshot.Snapshot) []*mover {
	local := map[snapshot.PoolID]bool{}
	for _, slice := range snap.Slices {
		id := snapshot.PoolOf(slice)
		_, known := local[id]
		local[id] = ptr.Deref(slice.Spec.NodeName, "") != "" && (!known || local[id])
	}
	var movers []*mover
	at, kept := map[*corev1.Pod]*mover{}, map[*corev1.Pod]bool{}
	for _, claim := range snap.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.ReservedFor {
			consumer := &claim.Status.ReservedFor[i]
			pod := snap.Pod(claim.Namespace, consumer.Name)
			if pod == nil || pod.UID != consumer.UID || cluster.ConsumerKind(consumer) != "pod" {
				continue
			}
			if at[pod] == nil {
				at[pod] = &mover{pod: pod}
				movers = append(movers, at[pod])
			}
			if len(claim.Status.ReservedFor) > 1 || !at[pod].add(claim, local) {
				kept[pod] = true
			}
		}
	}
	return slices.DeleteFunc(movers, func(m *mover) bool { return kept[m.pod] || !mayLeave(m.pod) })
}

// add counts the devices of a claim, and reports whether all of them belong to a node.
func (m *mover) add(claim *resourceapi.ResourceClaim, local map[snapshot.PoolID]bool) bool {
	m.claims = append(m.claims, claim)
	if len(claim.Spec.Devices.Requests) > 0 && m.class == "" {
		if exactly := claim.Spec.Devices.Requests[0].Exactly; exactly != nil {
			m.class = exactly.DeviceClassName
		}
	}
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		if !local[snapshot.PoolID{Driver: results[i].Driver, Name: results[i].Pool}] {
			return false
		}
	}
	m.devices += len(results)
	return true
}

// user is a mover that has devices of those that serve a shape, or some that are in its way,
// as partitions are.
type user struct {
	*mover
	// weight is how many of them serve the shape, at least one.
	weight int
	// first is one of them, so that pods can be put in the order of their devices.
	first string
}

// mayLeave reports whether a pod would get a node from the scheduler again.
func mayLeave(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOfNoCopy(pod)
	if a := pod.Spec.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) || len(pod.Spec.TopologySpreadConstraints) > 0 {
		// Where it may go depends on other pods.
		return false
	}
	return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && !snapshot.Finished(pod) && !mirror && (owner == nil || owner.Kind != snapshot.KindDaemonSet)
}

// resultID returns the device that a claim has.
func resultID(r *resourceapi.DeviceRequestAllocationResult) cluster.DeviceID {
	return cluster.DeviceID{Driver: r.Driver, Pool: r.Pool, Device: r.Device}
}

// ownTaint reports whether Kubernetes itself gives nodes a taint of this key.
func ownTaint(key string) bool { return strings.HasPrefix(key, "node.kubernetes.io/") }

// closed reports whether a node is closed to all pods that tolerate nothing but what
// Kubernetes adds to them.
func closed(node *corev1.Node) bool {
	return node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !ownTaint(t.Key)
	})
}

// opens reports whether a toleration can let a pod on nodes that are closed.
func opens(t corev1.Toleration) bool {
	return !ownTaint(t.Key) || t.Key == corev1.TaintNodeUnschedulable
}
