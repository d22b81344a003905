// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
)

// TestConditionsOfNodes checks that a node is rejected for its condition, with time and
// message, and not for the taints that Kubernetes sets for it.
func TestConditionsOfNodes(t *testing.T) {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(tc.Taken().Add(-12 * time.Minute))}
	}
	ready := condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	tests := map[string]struct {
		conditions []corev1.NodeCondition
		taints     []string
		cordoned   bool
		// want are the texts of the misfits.
		want []string
	}{
		"kubelet stopped": {
			conditions: []corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")},
			taints:     []string{"unreachable:NoSchedule", "unreachable:NoExecute"},
			want:       []string{"the kubelet stopped posting status 12m ago"},
		},
		"kubelet never started": {
			conditions: []corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusNeverUpdated", "Kubelet never posted node status.")},
			taints:     []string{"unreachable:NoSchedule"},
			want:       []string{"the kubelet has never posted status"},
		},
		"not ready": {
			conditions: []corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady", "cni plugin not initialized")},
			taints:     []string{"not-ready:NoSchedule"},
			want:       []string{"not ready (for 12m): cni plugin not initialized"},
		},
		"two conditions": {
			conditions: []corev1.NodeCondition{ready, condition(corev1.NodeDiskPressure, corev1.ConditionTrue, "KubeletHasDiskPressure", "kubelet has disk pressure")},
			taints:     []string{"unschedulable:NoSchedule", "disk-pressure:NoSchedule"}, cordoned: true,
			want: []string{"cordoned 12m ago", "disk pressure (for 12m): kubelet has disk pressure"},
		},
		"network": {
			conditions: []corev1.NodeCondition{ready, condition(corev1.NodeNetworkUnavailable, corev1.ConditionTrue, "NoRouteCreated", "RouteController failed to create a route")},
			taints:     []string{"network-unavailable:NoSchedule"},
			want:       []string{"network unavailable (for 12m): RouteController failed to create a route"},
		},
		"the condition is gone": {
			conditions: []corev1.NodeCondition{ready, condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "", "")},
			taints:     []string{"memory-pressure:NoSchedule"},
			want:       []string{"node taint node.kubernetes.io/memory-pressure:NoSchedule"},
		},
		"without taint": {
			conditions: []corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady", "")},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			node := tc.Node(tc.Node1)
			node.Status.Allocatable = tc.ResourceList("pods=1")
			node.Status.Conditions, node.Spec.Unschedulable = tt.conditions, tt.cordoned
			for _, taint := range tt.taints {
				key, effect, _ := strings.Cut(taint, ":")
				added := metav1.NewTime(tc.Taken().Add(-12 * time.Minute))
				node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "node.kubernetes.io/" + key, Effect: corev1.TaintEffect(effect), TimeAdded: &added})
			}
			snap := tc.Snapshot(node)
			snap.TakenAt = tc.Taken()
			var got []string
			for _, misfit := range newCluster(t, snap).Nodes.Fit(tc.Pod("p"), node) {
				got = append(got, misfit.Text(snap))
			}
			if strings.Join(got, "; ") != strings.Join(tt.want, "; ") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
