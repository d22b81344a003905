// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestOutlook(t *testing.T) {
	two := tc.Slice("s1", tc.DriverA, tc.Node1, tc.Device("dev-0"), tc.Device("dev-1")).OnNode(tc.Node1)
	node := node(tc.Node1)
	for name, test := range map[string]struct {
		objects []any
		count   int64
		asks    func(*corev1.Pod)
		want    api.Condition
		// says has parts of the message, more the message about one more node like the
		// first one; lower is the verdict without pods of lower priority.
		says  []string
		more  api.Verdict
		lower api.Verdict
	}{
		"in use": {
			objects: []any{node, two, user("peer", 0), held("peer", "dev-0"), held("peer", "dev-1")},
			count:   2, want: api.ClaimsReleased, more: api.Fits, lower: api.DoesNotFit,
			says: []string{"It fits on node-1 when claims of other pods are released, or on one more node like node-1."},
		},
		"in use by lower priority": {
			objects: []any{node, two, user("low", -1), user("peer", 0), held("low", "dev-0"), held("peer", "dev-1")},
			count:   1, want: api.LowerPrioritiesGone, more: api.Fits, lower: api.Fits,
			says: []string{"the claims of pods of lower priority are released", "does not preempt pods for devices"},
		},
		"lower priority is not enough": {
			objects: []any{node, two, user("low", -1), user("peer", 0), held("low", "dev-0"), held("peer", "dev-1")},
			count:   2, want: api.ClaimsReleased, more: api.Fits, lower: api.DoesNotFit,
		},
		"a consumer that is not known": {
			objects: []any{node, two, held("unknown", "dev-0"), held("unknown", "dev-1")},
			count:   1, want: api.ClaimsReleased, more: api.Fits, lower: api.Undetermined,
		},
		"more than there is": {
			objects: []any{node, two, user("peer", 0), held("peer", "dev-0")},
			count:   3, want: api.Never, more: api.DoesNotFit, lower: api.DoesNotFit,
			says: []string{"Never on the only node, even with all claims released", "without other pods. 2 available, 3 needed"},
		},
		"cordoned, and in use": {
			objects: []any{cordoned(node), two, user("peer", 0), held("peer", "dev-0")},
			count:   2, want: api.HardwareAlone, more: api.Fits, lower: api.DoesNotFit,
			says: []string{"Not by waiting for claims to be released. Node node-1 has the devices, but: cordoned.", "It fits on one more node like node-1."},
		},
		"device taint": {
			objects: []any{node, tc.Slice("s1", tc.DriverA, tc.Node1, tc.Device("dev-0").Tainted("broken", resourceapi.DeviceTaintEffectNoSchedule)).OnNode(tc.Node1)},
			count:   1, want: api.HardwareAlone, more: api.DoesNotFit, lower: api.DoesNotFit,
			says: []string{"but: device taint broken"},
		},
		"cordoned, and for that node by its hostname": {
			objects: []any{cordoned(node), two, user("peer", 0), held("peer", "dev-0")},
			asks:    func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: tc.Node1} },
			count:   2, want: api.HardwareAlone, more: api.DoesNotFit, lower: api.DoesNotFit,
			says: []string{"Node node-1 has the devices, but: cordoned.$"},
		},
		"in use, and for that node by its name": {
			objects: []any{node, two, user("peer", 0), held("peer", "dev-0")},
			asks: selecting(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{tc.Node1},
			}}}),
			count: 2, want: api.ClaimsReleased, more: api.DoesNotFit, lower: api.DoesNotFit,
			says: []string{"It fits on node-1 when claims of other pods are released.$"},
		},
		"in use, and not for another node": {
			objects: []any{node, two, user("peer", 0), held("peer", "dev-0")},
			asks: selecting(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"node-9"},
			}}}),
			count: 2, want: api.ClaimsReleased, more: api.Fits, lower: api.DoesNotFit,
			says: []string{"or on one more node like node-1."},
		},
		"cpu of a pod without devices": {
			objects: []any{node, two, tc.Pod("batch", tc.OnNode(tc.Node1), tc.Requesting("cpu=3"))},
			count:   1, asks: tc.Requesting("cpu=2"), want: api.HardwareAlone, more: api.Fits, lower: api.DoesNotFit,
			says: []string{"but: not enough cpu"},
		},
		"cpu of a pod with devices": {
			objects: []any{node, two, changed(user("peer", 0), tc.Requesting("cpu=3")), held("peer", "dev-0")},
			count:   1, asks: tc.Requesting("cpu=2"), want: api.ClaimsReleased, more: api.Fits, lower: api.DoesNotFit,
		},
		"more cpu than a node has": {
			objects: []any{node, two, user("peer", 0), held("peer", "dev-0")},
			count:   1, asks: tc.Requesting("cpu=5"), want: api.Never, more: api.DoesNotFit, lower: api.DoesNotFit,
			says: []string{"Not enough cpu: 5 required, the node has 4"},
		},
		"shared by all nodes": {
			objects: []any{node, tc.Slice("s1", tc.DriverA, tc.Node1, tc.Device("dev-0")).OnAllNodes(), user("peer", 0), held("peer", "dev-0")},
			count:   1, want: api.ClaimsReleased, more: api.DoesNotFit, lower: api.DoesNotFit,
			says: []string{"It fits on node-1 when claims of other pods are released."},
		},
		"a pool that is incomplete": {
			objects: []any{node, two.Of(2)},
			count:   3, want: api.ConditionUnknown, more: api.DoesNotFit, lower: api.DoesNotFit,
			says: []string{"Not by waiting for claims to be released.", "the allocator does not use pool a.example.com/node-1: the pool is incomplete: 1 of 2 slices"},
		},
		"the node of another pod": {
			objects: []any{node, two, tc.Pod("other", tc.OnNode(tc.Node1), labeled)},
			count:   1, asks: apart, want: api.OneMoreNode, more: api.Fits, lower: api.DoesNotFit,
			says: []string{"It fits on one more node like node-1.", "it depends on where other pods are"},
		},
		"dedicated to others": {
			objects: []any{tainted(node), two},
			count:   1, want: api.HardwareAlone, more: api.DoesNotFit, lower: api.DoesNotFit,
			says: []string{"but: node taint dedicated=vision:NoSchedule."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			changes := []func(*corev1.Pod){tc.UsingClaim("gpu", "mine")}
			if test.asks != nil {
				changes = append(changes, test.asks)
			}
			snap := tc.Snapshot(append(test.objects,
				tc.Class(tc.ClassA, tc.DriverA), tc.Gates{"DRADeviceTaints"}, tc.Pod("asks", changes...),
				tc.Claim("mine", tc.Request("gpus", tc.ClassA, test.count)))...)
			tc.Unchanged(t, snap)
			e := ask(t, snap)
			if e.Verdict != api.DoesNotFit || e.Outlook == nil {
				t.Fatalf("got %s and outlook %v: %s", e.Verdict, e.Outlook, e.Summary)
			}
			o := e.Outlook
			if o.Fits != test.want {
				t.Errorf("got %s, want %s: %s", o.Fits, test.want, o.Message)
			}
			for _, part := range test.says {
				if !strings.Contains(o.Message+"$", part) {
					t.Errorf("the message does not say %q: %s", part, o.Message)
				}
			}
			if len(o.OneMoreNode) != 1 || o.OneMoreNode[0].Verdict != test.more {
				t.Errorf("one more node: got %+v, want %s", o.OneMoreNode, test.more)
			}
			if o.LowerPrioritiesGone.Verdict != test.lower {
				t.Errorf("lower priorities gone: got %+v, want %s", o.LowerPrioritiesGone, test.lower)
			}
		})
	}
}

// TestNearestNodeOfOutlook covers a node with almost enough devices beside one whose
// devices are in a pool that is incomplete.
func TestNearestNodeOfOutlook(t *testing.T) {
	devices := []tc.DeviceWrapper{tc.Device("dev-0"), tc.Device("dev-1")}
	snap := tc.Snapshot(node("node-2"), tc.Slice("s2", tc.DriverA, "node-2", devices...).OnNode("node-2"),
		node("node-1"), tc.Slice("s1", tc.DriverA, "node-1", devices...).OnNode("node-1").Of(2),
		tc.Class(tc.ClassA, tc.DriverA), tc.Pod("asks", tc.UsingClaim("gpu", "mine")), tc.Claim("mine", tc.Request("gpus", tc.ClassA, 3)))
	e := ask(t, snap)
	if e.Outlook == nil || !strings.Contains(e.Outlook.Message, "Node node-2, the nearest: 2 available, 3 needed") {
		t.Errorf("got %+v", e.Outlook)
	}
}

// TestOutlookIsOfPodsThatWait asks about those to which the question does not apply.
func TestOutlookIsOfPodsThatWait(t *testing.T) {
	fits := tc.Snapshot(node(tc.Node1), tc.Slice("s1", tc.DriverA, tc.Node1, tc.Device("dev-0")).OnNode(tc.Node1),
		tc.Class(tc.ClassA, tc.DriverA), tc.Pod("asks", tc.UsingClaim("gpu", "mine")), tc.Claim("mine", tc.Request("gpus", tc.ClassA, 1)))
	if e := ask(t, fits); e.Verdict != api.Fits || e.Outlook != nil {
		t.Errorf("a pod that fits: got %s and outlook %+v", e.Verdict, e.Outlook)
	}
	bound := tc.Snapshot(node(tc.Node1), tc.Slice("s1", tc.DriverA, tc.Node1, tc.Device("dev-0")).OnNode(tc.Node1),
		tc.Class(tc.ClassA, tc.DriverA), tc.Pod("asks", tc.UsingClaim("gpu", "mine"), tc.OnNode(tc.Node1)), tc.Claim("mine", tc.Request("gpus", tc.ClassA, 2)))
	if e := ask(t, bound); e.Outlook != nil {
		t.Errorf("a pod that is bound: got %s and outlook %+v", e.Verdict, e.Outlook)
	}
}

func ask(t *testing.T, snap *snapshot.Snapshot) *api.Explanation {
	t.Helper()
	e, err := explain.Explain(t.Context(), snap, explain.Options{Object: api.Ref(api.KindPod, tc.Namespace, "asks")})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func node(name string) *corev1.Node {
	n := tc.Node(name, corev1.LabelHostname+"="+name)
	n.Status.Allocatable = tc.ResourceList("cpu=4", "pods=10")
	return n
}

// selecting returns a pod with a required node affinity.
func selecting(term corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
		}}
	}
}

func cordoned(node *corev1.Node) *corev1.Node {
	node = node.DeepCopy()
	node.Spec.Unschedulable = true
	return node
}

func tainted(node *corev1.Node) *corev1.Node {
	node = node.DeepCopy()
	node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "vision", Effect: corev1.TaintEffectNoSchedule}}
	return node
}

// user returns a pod on the first node.
func user(name string, priority int32) *corev1.Pod {
	return tc.Pod(name, tc.OnNode(tc.Node1), func(p *corev1.Pod) { p.Spec.Priority = &priority })
}

func changed(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(pod)
	return pod
}

// held returns a claim of a pod with a device of the first node.
func held(pod, device string) tc.ClaimWrapper {
	return tc.Claim(pod+"-"+device).Holding(tc.DriverA+"/"+tc.Node1+"/"+device).ReservedFor(pod, string(tc.UID(pod)))
}

func labeled(p *corev1.Pod) { p.Labels = map[string]string{"app": "train"} }

// apart requires a node without pods that are labeled.
func apart(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}, TopologyKey: corev1.LabelHostname,
	}}}}
}
