// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestOneNode asks about node n1 of clusters where n2 would do.
func TestOneNode(t *testing.T) {
	tests := map[string]struct {
		cluster []part
		pod     string
		verdict api.Verdict
		// funnel is written as in TestCodes, reasons as "devices: label message".
		funnel   string
		reasons  []string
		misfits  []string
		pools    []string
		devices  api.Verdict
		summary  string
		conflict bool
	}{
		"fits": {
			cluster: []part{pool("n1", devices(3)...), claim(waiting, exact("gpu", 2))},
			verdict: api.Fits, funnel: "3=3", pools: []string{"n1 3 usable"}, devices: api.Fits,
			summary: "The allocator finds devices there.",
		},
		"each device has its own reason": {
			cluster: []part{
				pool("n1", device("small", withMemory("40Gi")), device("mid", withMemory("60Gi")), device("held", withMemory("80Gi")), device("ill", withMemory("80Gi"), withTaint("xid", resourceapi.DeviceTaintEffectNoExecute)), device("good", withMemory("80Gi"))),
				holding("serve", "n1", "held"),
				claim(waiting, exact("gpu", 2, where(`device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0`))),
			},
			verdict: api.DoesNotFit, funnel: "5=1+1*RequestSelectorFalse+1*RequestSelectorFalse+1*DeviceAllocated+1*DeviceTainted",
			reasons: []string{
				"small: selector memory is 40Gi, must be 80Gi or more", "mid: selector memory is 60Gi, must be 80Gi or more",
				"held: allocated to claim serving/serve", "ill: tainted xid:NoExecute",
			},
			pools: []string{"n1 5 usable"}, devices: api.DoesNotFit, conflict: true,
			summary: "1 of 2 available (2 not matching the selector, 1 allocated, 1 tainted).",
		},
		"only devices within reach count": {
			cluster: []part{
				slice("net", func(s *resourceapi.ResourceSlice) {
					s.Spec.NodeName, s.Spec.PerDeviceNodeSelection = nil, new(true)
				}, device("here", func(d *resourceapi.Device) { d.NodeName = new("n1") }), device("there", func(d *resourceapi.Device) { d.NodeName = new("n2") })),
				claim(waiting, exact("gpu", 2)),
			},
			verdict: api.DoesNotFit, funnel: "1=1", pools: []string{"net 1 usable"}, devices: api.DoesNotFit, conflict: true,
			summary: "1 of 2 available.",
		},
		"incomplete pool": {
			cluster: []part{slice("n1", twoSlices, devices(2)...), claim(waiting, exact("gpu", 1))},
			verdict: api.DoesNotFit, funnel: "2=0+2*PoolIncomplete",
			reasons: []string{"gpu-0 gpu-1: pool incomplete 1 of 2 slices of pool n1 published"},
			pools:   []string{"n1 2 PoolIncomplete 1 of 2 slices of pool n1 published"}, devices: api.DoesNotFit, conflict: true,
			summary: "1 of 2 slices of pool n1 published.",
		},
		"obsolete slice": {
			cluster: []part{
				pool("n1", device("old")),
				slice("n1", func(s *resourceapi.ResourceSlice) { s.Spec.Pool.Generation = 2 }, device("new")),
				claim(waiting, exact("gpu", 2)),
			},
			verdict: api.DoesNotFit, funnel: "2=1+1*PoolObsolete",
			reasons: []string{"old: obsolete older than generation 2 of pool n1"},
			pools:   []string{"n1 2 usable PoolObsolete older than generation 2 of pool n1"}, devices: api.DoesNotFit, conflict: true,
			summary: "1 of an older generation of the pool",
		},
		"everything that keeps the pod away": {
			cluster: []part{
				pool("n1", devices(2)...), claim(waiting, exact("gpu", 1)),
				changeNode("n1", func(n *corev1.Node) {
					n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
				}),
				changedPod("train-0", func(p *corev1.Pod) {
					p.Spec.NodeSelector = map[string]string{"zone": "a"}
					p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100")}
				}, waiting),
			},
			pod: "train-0", verdict: api.DoesNotFit, funnel: "2=2",
			misfits: []string{
				"node taint team=a:NoSchedule", "no label zone=a, which spec.nodeSelector requires",
				"not enough cpu: 100 required, 8 available of 8",
			},
			pools: []string{"n1 2 usable"}, devices: api.Fits, conflict: true,
			summary: "and 1 more; there are enough devices.",
		},
		"away and without devices": {
			cluster: []part{
				pool("n1", devices(1)...), holding("serve", "n1", "gpu-0"), claim(waiting, exact("gpu", 1)),
				changeNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }), pod("train-0", waiting),
			},
			pod: "train-0", verdict: api.DoesNotFit, funnel: "1=0+1*DeviceAllocated", reasons: []string{"gpu-0: allocated to claim serving/serve"},
			misfits: []string{"cordoned"}, pools: []string{"n1 1 usable"}, devices: api.DoesNotFit, conflict: true,
			summary: "Cordoned; apart from that, 0 of 1 available (1 allocated).",
		},
		"pod is bound elsewhere": {
			cluster: []part{
				pool("n1", devices(1)...), pool("n2", devices(1)...), holding("mine", "n2", "gpu-0"),
				func(s *snapshot.Snapshot) { s.Claims[0].Namespace = namespace },
				changedPod("train-0", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n2", corev1.PodRunning }, "mine"),
			},
			pod: "train-0", verdict: api.DoesNotFit,
			misfits: []string{"the pod is bound to node n2", "claim ml/mine is allocated on n2"},
			pools:   []string{"n1 1 usable"},
			summary: "The pod is bound to node n2; claim ml/mine is allocated on n2.",
		},
		"another claim of the pod is allocated elsewhere": {
			cluster: []part{
				pool("n1", devices(2)...), pool("n2", devices(2)...), holding("mine", "n2", "gpu-0"), claim(waiting, exact("gpu", 2)),
				func(s *snapshot.Snapshot) { s.Claims[0].Namespace = namespace }, pod("train-0", "mine", waiting),
			},
			pod: "train-0", verdict: api.DoesNotFit, conflict: true, funnel: "2=2",
			misfits: []string{"claim ml/mine is allocated on n2"},
			pools:   []string{"n1 2 usable"}, devices: api.DoesNotFit,
			summary: "apart from that, enough devices for each of request mine.gpu and request train.gpu alone, but not for all together.",
		},
		"another claim of the pod would fit, too": {
			cluster: []part{
				pool("n1", devices(3)...), pool("n2", devices(2)...), holding("mine", "n2", "gpu-0"), claim(waiting, exact("gpu", 2)),
				func(s *snapshot.Snapshot) { s.Claims[0].Namespace = namespace }, pod("train-0", "mine", waiting),
			},
			pod: "train-0", verdict: api.DoesNotFit, conflict: true, funnel: "3=3",
			misfits: []string{"claim ml/mine is allocated on n2"},
			pools:   []string{"n1 3 usable"}, devices: api.Fits,
			summary: "is allocated on n2; there are enough devices.",
		},
		"another claim of the pod cannot be moved": {
			cluster: []part{
				pool("n1", devices(2)...), pool("n2", devices(2)...), holding("mine", "n2", "gpu-0"), claim(waiting, exact("gpu", 2)),
				func(s *snapshot.Snapshot) {
					s.Claims[0].Namespace = namespace
					s.Claims[0].Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "other", UID: "other"}}
				}, pod("train-0", "mine", waiting),
			},
			pod: "train-0", verdict: api.DoesNotFit, conflict: true, funnel: "2=2",
			misfits: []string{"claim ml/mine is allocated on n2 and used by pod ml/other; this pod can only run there"},
			pools:   []string{"n1 2 usable"},
			summary: "Claim ml/mine is allocated on n2 and used by pod ml/other; this pod can only run there.",
		},
		"pod runs there": {
			cluster: []part{
				pool("n1", devices(1)...), holding("mine", "n1", "gpu-0"),
				func(s *snapshot.Snapshot) { s.Claims[0].Namespace = namespace },
				changedPod("train-0", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning }, "mine"),
			},
			pod: "train-0", verdict: api.Allocated, summary: "1 device allocated, usable on n1.",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := snapshotOf(t, append([]part{nodes("n1", "n2", "n3")}, test.cluster...)...)
			target := Options{Kind: api.KindClaim, Namespace: namespace, Name: waiting, Node: "n1"}
			if test.pod != "" {
				target.Kind, target.Name = api.KindPod, test.pod
			}
			e, err := Explain(t.Context(), snap, target)
			if err != nil {
				t.Fatal(err)
			}
			checkSums(t, e)
			if e.Verdict != test.verdict || !strings.Contains(e.Summary, test.summary) {
				t.Errorf("verdict %s: %s", e.Verdict, e.Summary)
			}
			if e.Node.Name != "n1" || e.Node.AllocatorVerdict != test.devices {
				t.Errorf("node %s, devices %q", e.Node.Name, e.Node.AllocatorVerdict)
			}
			if (e.Conflict != nil) != test.conflict || e.Conflict != nil && e.Conflict.Node != "n1" {
				t.Errorf("conflict %v", e.Conflict)
			}
			var funnel string
			var reasons, misfits, pools []string
			for _, r := range e.Claims[len(e.Claims)-1].Requests {
				funnel = fmt.Sprintf("%d=%d", r.Considered, r.Eligible)
				for _, rejection := range r.Rejected {
					funnel += fmt.Sprintf("+%d*%s", rejection.Count, rejection.Code)
					var names []string
					for _, id := range rejection.Devices {
						names = append(names, id[strings.LastIndex(id, "/")+1:])
					}
					reasons = append(reasons, fmt.Sprintf("%s: %s %s", strings.Join(names, " "), rejection.Label, rejection.Message))
				}
			}
			for _, misfit := range e.Node.Misfits {
				misfits = append(misfits, misfit.Message)
			}
			for _, p := range e.Node.Pools {
				state := ""
				if p.Usable {
					state = " usable"
				}
				if p.Code != "" {
					state += fmt.Sprintf(" %s %s", p.Code, p.Message)
				}
				pools = append(pools, fmt.Sprintf("%s %d%s", p.Name, p.Devices, state))
			}
			if funnel != test.funnel {
				t.Errorf("funnel %s, want %s", funnel, test.funnel)
			}
			for what, both := range map[string][2][]string{"reasons": {test.reasons, reasons}, "misfits": {test.misfits, misfits}, "pools": {test.pools, pools}} {
				if diff := cmp.Diff(both[0], both[1]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

// TestStageOfOneNode asks about a node that the pod cannot use, while another
// one takes it: the pod does not wait for a node.
func TestStageOfOneNode(t *testing.T) {
	parts := []part{
		nodes("n1", "n2"), pool("n1", devices(1)...), claim(waiting, exact("gpu", 1)), pod("train-0", waiting),
		changeNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
	}
	target := Options{Kind: api.KindPod, Namespace: namespace, Name: "train-0", Node: "n1"}
	e, err := Explain(t.Context(), snapshotOf(t, parts...), target)
	if err != nil || e.Stage != api.StageAllocation {
		t.Errorf("stage %s, want %s: %v", e.Stage, api.StageAllocation, err)
	}
	parts = append(parts, changeNode("n2", func(n *corev1.Node) { n.Spec.Unschedulable = true }))
	e, err = Explain(t.Context(), snapshotOf(t, parts...), target)
	if err != nil || e.Stage != api.StageNodeFit {
		t.Errorf("stage %s, want %s: %v", e.Stage, api.StageNodeFit, err)
	}
}

func TestUnknownNode(t *testing.T) {
	tests := map[string]struct {
		cluster []part
		hint    string
	}{
		"near":    {[]part{nodes("gpu-01", "gpu-02")}, "did you mean gpu-01?"},
		"far":     {[]part{nodes("a", "b")}, "existing nodes: a, b"},
		"hidden":  {[]part{gap(snapshot.ResourceNodes, "you may not list nodes")}, "it may exist all the same: you may not list nodes"},
		"made up": {[]part{pool("zebra", devices(1)...)}, "no Node exists, but ResourceSlices name: zebra"},
		"none":    {nil, "no Node exists"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := snapshotOf(t, append(test.cluster, claim(waiting, exact("gpu", 1)))...)
			_, err := Explain(t.Context(), snap, Options{Kind: api.KindClaim, Namespace: namespace, Name: waiting, Node: "gpu-1"})
			var target *TargetError
			if !errors.As(err, &target) || target.Hint != test.hint || target.Target.Kind != api.KindNode {
				t.Errorf("error %v, want the hint %q", err, test.hint)
			}
		})
	}
}

// TestNearestNode has a cluster for each rule of the order of nodes: n1 is
// nearer than n2.
func TestNearestNode(t *testing.T) {
	small, large := withMemory("40Gi"), withMemory("80Gi")
	big := where(`device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0`)
	tests := map[string]struct {
		cluster []part
		// missing are the numbers of the two nodes.
		missing [2]int
	}{
		"fits before a conflict": {
			[]part{pool("n1", devices(2, tc.WithAttribute("root", "a"))...), pool("n2", device("a", tc.WithAttribute("root", "a")), device("b", tc.WithAttribute("root", "b"))), constrained(waiting, same("gpu.example.com/root"), exact("gpu", 2))},
			[2]int{0, 1},
		},
		"together before too few": {
			[]part{pool("n2", devices(1, tc.WithAttribute("root", "a"))...), pool("n1", device("a", tc.WithAttribute("root", "a")), device("b", tc.WithAttribute("root", "b"))), constrained(waiting, same("gpu.example.com/root"), exact("gpu", 2))},
			[2]int{1, 1},
		},
		"fewer missing": {
			[]part{pool("n1", devices(3)...), pool("n2", devices(4)...), holding("serve", "n2", "gpu-0"), holding("other", "n2", "gpu-1"), claim(waiting, exact("gpu", 4))},
			[2]int{1, 2},
		},
		"held before not matching": {
			[]part{pool("n1", devices(1, large)...), holding("serve", "n1", "gpu-0"), pool("n2", devices(1, small)...), claim(waiting, exact("gpu", 1, big))},
			[2]int{1, 1},
		},
		"held before not matching, beside one that is free": {
			[]part{pool("n1", devices(2, large)...), holding("serve", "n1", "gpu-0"), pool("n2", device("a", large), device("b", small)), claim(waiting, exact("gpu", 2, big))},
			[2]int{1, 1},
		},
		"tainted before held": {
			[]part{pool("n1", devices(1, withTaint("xid", resourceapi.DeviceTaintEffectNoSchedule))...), pool("n2", devices(1)...), holding("serve", "n2", "gpu-0"), claim(waiting, exact("gpu", 1))},
			[2]int{1, 1},
		},
		"the request that lacks most counts": {
			[]part{
				pool("n1", device("a", large), device("b", small), device("c", small), device("d", small)), holding("serve", "n1", "a", "b"),
				pool("n2", device("a", large), device("b", small), device("c", small), device("d", small)), holding("other", "n2", "b", "c"),
				claim(waiting, exact("large", 1, big), exact("small", 3, where(`device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) < 0`))),
			},
			[2]int{1, 2},
		},
		"all: fewer in the way": {
			[]part{pool("n1", devices(4)...), holding("serve", "n1", "gpu-0"), pool("n2", devices(4)...), holding("other", "n2", "gpu-0", "gpu-1"), claim(waiting, exact("gpu", 0, all))},
			[2]int{1, 2},
		},
		"more that agree": {
			[]part{
				pool("n1", device("a", withModel("x")), device("b", withModel("x")), device("c", withModel("x")), device("d", withModel("y"))),
				pool("n2", device("a", withModel("x")), device("b", withModel("x")), device("c", withModel("y")), device("d", withModel("y"))),
				constrained(waiting, same("gpu.example.com/model"), exact("gpu", 4)),
			},
			[2]int{1, 2},
		},
		"more values that differ": {
			[]part{
				pool("n1", device("a", withModel("x")), device("b", withModel("y")), device("c", withModel("y"))),
				pool("n2", devices(3, withModel("x"))...),
				constrained(waiting, distinct("gpu.example.com/model"), exact("gpu", 3)),
			},
			[2]int{1, 2},
		},
		"a cordoned node with all devices before one with too few": {
			[]part{pool("n2", devices(4)...), pool("n1", devices(8)...), claim(waiting, exact("gpu", 8)), changeNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }), pod("train-0", waiting)},
			[2]int{0, 4},
		},
		"a node that the pod cannot use before one without devices": {
			[]part{pool("n1", devices(1)...), claim(waiting, exact("gpu", 1)), changeNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }), pod("train-0", waiting)},
			[2]int{0, 1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := snapshotOf(t, append([]part{nodes("n1", "n2")}, test.cluster...)...)
			e, err := Explain(t.Context(), snap, Options{Kind: api.KindClaim, Namespace: namespace, Name: waiting})
			if err != nil {
				t.Fatal(err)
			}
			if len(e.Nodes) != 2 || e.Nodes[0].Names[0] != "n1" {
				t.Fatalf("order: %s", asJSON(e.Nodes))
			}
			if got := [2]int{e.Nodes[0].Missing, e.Nodes[1].Missing}; got != test.missing {
				t.Errorf("missing %v, want %v: %s", got, test.missing, asJSON(e.Nodes))
			}
		})
	}
}
