// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestConditionOfNode: headline, groups, outlook, conflict and remedy name the condition of the
// node that has the devices, and two of them where there are two.
func TestConditionOfNode(t *testing.T) {
	node := func(cordoned bool, condition corev1.NodeCondition, taints ...corev1.Taint) *corev1.Node {
		n := tc.NodeOffering(tc.Node1, "pods=10")
		condition.LastTransitionTime = metav1.NewTime(tc.Taken().Add(-20 * time.Minute))
		n.Spec.Unschedulable, n.Spec.Taints, n.Status.Conditions = cordoned, taints, []corev1.NodeCondition{condition}
		return n
	}
	tests := map[string]struct {
		node                                *corev1.Node
		group, headline, conflict, remedies string
	}{
		"kubelet stopped": {
			node: node(false, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Message: "Kubelet stopped posting node status."},
				corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}),
			group:    "the kubelet stopped posting status",
			headline: "the kubelet stopped posting status 20m ago",
			conflict: "the kubelet stopped posting status 20m ago",
			remedies: "Admin: start the kubelet on node node-1, or the machine",
		},
		"cordoned and disk pressure": {
			node: node(true, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Message: "kubelet has disk pressure"},
				corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule}),
			group:    "cordoned and disk pressure",
			headline: "cordoned and disk pressure for 20m: kubelet has disk pressure",
			conflict: "cordoned; disk pressure for 20m: kubelet has disk pressure",
			remedies: "Admin: uncordon node node-1; and free disk space on node node-1",
		},
		"two taints": {
			node: node(false, corev1.NodeCondition{}, corev1.Taint{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule},
				corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}),
			group:    "node taint team=a:NoSchedule and node taint maintenance:NoSchedule",
			headline: "node taint team=a:NoSchedule and node taint maintenance:NoSchedule",
			conflict: "node taint team=a:NoSchedule; node taint maintenance:NoSchedule",
			remedies: "Admin: remove the taint team=a:NoSchedule from node node-1; and remove the taint maintenance:NoSchedule from node node-1; " +
				"User: tolerate the node taint team=a:NoSchedule if the pod may run there; and tolerate the node taint maintenance:NoSchedule if the pod may run there",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := explainPod(t, tc.Cluster(tt.node, tc.Pool(tc.Node1, tc.Devices(2)...), tc.Claim("c", tc.GPUs("gpu", 1)), tc.Pod("train-0", tc.Using("c"))))
			if len(e.Nodes) != 1 || e.Nodes[0].Message != tt.group {
				t.Errorf("got groups %+v, want %q", e.Nodes, tt.group)
			}
			if !strings.Contains(e.Summary, tt.headline) || !strings.Contains(e.Outlook.Message, tt.headline) {
				t.Errorf("want %q in:\n%s\n%s", tt.headline, e.Summary, e.Outlook.Message)
			}
			if e.Conflict == nil {
				t.Fatal("no conflict")
			}
			var facts, remedies []string
			for _, fact := range append(e.Conflict.Facts, e.Conflict.Besides...) {
				facts = append(facts, fact.Text)
			}
			for _, remedy := range e.Remedies {
				remedies = append(remedies, remedy.Actor+": "+remedy.Change)
			}
			if got := strings.Join(facts, "; "); got != tt.conflict {
				t.Errorf("got conflict %q, want %q", got, tt.conflict)
			}
			if got := strings.Join(remedies, "; "); got != tt.remedies {
				t.Errorf("got remedies:\n%s\nwant:\n%s", got, tt.remedies)
			}
			if e.Claims[0].Requests[0].Rejected[0].Code != api.NodeUnsuitable || !strings.Contains(e.Claims[0].Requests[0].Rejected[0].Message, tt.group) {
				t.Errorf("want %q in the funnel: %+v", tt.group, e.Claims[0].Requests[0].Rejected)
			}
		})
	}
}
