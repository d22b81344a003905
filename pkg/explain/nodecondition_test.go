// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
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
			headline: "cordoned and disk pressure (for 20m): kubelet has disk pressure",
			conflict: "cordoned; disk pressure (for 20m): kubelet has disk pressure",
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

// TestServedByPlugin: where a device plugin serves an extended resource that a class maps, too,
// the headline says which of them has how much, and nothing else.
func TestServedByPlugin(t *testing.T) {
	class := tc.Class(tc.ClassA, tc.DriverA)
	class.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
	asking := func(changes ...func(*corev1.Pod)) *corev1.Pod {
		return tc.Pod("train-0", append(changes, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = tc.ResourceList("example.com/gpu=3")
		})...)
	}
	plugin := tc.NodeOffering(tc.Node1, "pods=10", "example.com/gpu=2")
	plugin.Labels["served"] = "plugin"
	const said = "The pod needs 3 of example.com/gpu on one node. A device plugin serves it on node-1, with at most 2 of 2 available; " +
		"the scheduler does not use DeviceClass class-a where a device plugin serves the resource"
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"on the only node": {asking(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"served": "plugin"} }), said + "."},
		"beside a class":   {asking(), said + ". That class has at most 1 available, on node node-2."},
	} {
		t.Run(name, func(t *testing.T) {
			e := explainPod(t, tc.Snapshot(class, tc.Gate("DRAExtendedResource", true), plugin, tc.NodeOffering(tc.Node2, "pods=10"), tc.Slice("s1", tc.DriverA, tc.Node1, tc.Devices(4)...).OnNode(tc.Node1), tc.Slice("s2", tc.DriverA, tc.Node2, tc.Devices(1)...).OnNode(tc.Node2), test.pod))
			if e.Summary != test.want {
				t.Errorf("got %q\nwant %q", e.Summary, test.want)
			}
			if e.Conflict != nil && name == "on the only node" {
				t.Errorf("got a conflict on a node that the pod does not select: %+v", e.Conflict)
			}
			for _, hint := range e.Hints {
				if strings.Contains(hint.Text, "device plugin") {
					t.Errorf("the hint repeats the headline: %s", hint.Text)
				}
			}
		})
	}
}

// TestImplicitExtendedResource: what a pod asks for has the name that the pod gives it.
func TestImplicitExtendedResource(t *testing.T) {
	class := tc.Class(tc.ClassA, tc.DriverA)
	class.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
	const implicit = "deviceclass.resource.kubernetes.io/" + tc.ClassA
	e := explainPod(t, tc.Snapshot(class, tc.Gate("DRAExtendedResource", true), tc.NodeOffering(tc.Node1, "pods=10"), tc.Slice("s1", tc.DriverA, tc.Node1, tc.Devices(4)...).OnNode(tc.Node1),
		tc.Pod("train-0", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = tc.ResourceList(implicit + "=2") })))
	if got := e.Claims[0].Requests[0].ExtendedResource; e.Verdict != api.Fits || got != implicit {
		t.Errorf("got %s for %s", e.Verdict, got)
	}
}

// TestTolerationWithoutEffect: the scheduler heeds a toleration without effect, and the controller
// that evicts does not.
func TestTolerationWithoutEffect(t *testing.T) {
	const said = "is tolerated without effect: the eviction controller heeds only tolerations with the effect NoExecute"
	tolerating := func(effect resourceapi.DeviceTaintEffect) func(*resourceapi.ExactDeviceRequest) {
		return func(r *resourceapi.ExactDeviceRequest) {
			r.Tolerations = []resourceapi.DeviceToleration{{Key: "xid", Operator: resourceapi.DeviceTolerationOpExists, Effect: effect}}
		}
	}
	broken := tc.Device("gpu-0").TaintedSince("xid", resourceapi.DeviceTaintEffectNoExecute, tc.Taken().Add(-time.Minute))
	waiting := func(effect resourceapi.DeviceTaintEffect) *api.Explanation {
		return explainPod(t, tc.Cluster(tc.Nodes(tc.Node1), tc.Pool(tc.Node1, broken), tc.Claim("c", tc.GPUs("gpu", 1).Change(tolerating(effect))), tc.Pod("train-0", tc.Using("c"))))
	}
	if e := waiting(""); e.Verdict != api.Fits || !strings.Contains(e.Summary, said) {
		t.Errorf("got %s: %s", e.Verdict, e.Summary)
	}
	if e := waiting(resourceapi.DeviceTaintEffectNoExecute); e.Verdict != api.Fits || strings.Contains(e.Summary, "warning") {
		t.Errorf("got %s: %s", e.Verdict, e.Summary)
	}
	running := explainPod(t, tc.Cluster(tc.Nodes(tc.Node1), tc.Pool(tc.Node1, broken),
		tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-0", func(r *resourceapi.DeviceRequestAllocationResult) {
			r.Tolerations = []resourceapi.DeviceToleration{{Key: "xid", Operator: resourceapi.DeviceTolerationOpExists}}
		}).ReservedFor("train-0", string(tc.UID("train-0"))), tc.Pod("train-0", tc.Using("c"), tc.RunningOn(tc.Node1))))
	if !strings.Contains(running.Summary, said) {
		t.Errorf("got %s", running.Summary)
	}
}

// TestGateStays: the answer about a gated pod has its gates, whatever the verdict.
func TestGateStays(t *testing.T) {
	for name, count := range map[string]int64{"fits": 1, "does not fit": 9} {
		e := explainPod(t, tc.Cluster(tc.Nodes(tc.Node1), tc.Pool(tc.Node1, tc.Devices(2)...), tc.Claim("c", tc.GPUs("gpu", count)),
			tc.Pod("train-0", tc.Using("c"), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/hold"}} })))
		if len(e.SchedulingGates) != 1 || e.SchedulingGates[0] != "example.com/hold" {
			t.Errorf("%s: got %v", name, e.SchedulingGates)
		}
	}
}

func explainPod(t *testing.T, snap *snapshot.Snapshot) *api.Explanation {
	t.Helper()
	got, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindPod, tc.Namespace, "train-0")})
	if err != nil {
		t.Fatal(err)
	}
	return got
}
