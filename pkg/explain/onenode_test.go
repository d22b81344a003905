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
		cluster []any
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
			cluster: []any{tc.Pool("n1", tc.Devices(3)...), tc.Claim(waiting, tc.GPUs("gpu", 2))},
			verdict: api.Fits, funnel: "3=3", pools: []string{"n1 3 usable"}, devices: api.Fits,
			summary: "The allocator finds devices there.",
		},
		"each device has its own reason": {
			cluster: []any{
				tc.Pool("n1", tc.Device("small", "memory:=40Gi"), tc.Device("mid", "memory:=60Gi"), tc.Device("held", "memory:=80Gi"), tc.Device("ill", "memory:=80Gi").Tainted("xid", resourceapi.DeviceTaintEffectNoExecute), tc.Device("good", "memory:=80Gi")),
				tc.Serving("serve", "n1", "held"),
				tc.Claim(waiting, tc.GPUs("gpu", 2, `device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0`)),
			},
			verdict: api.DoesNotFit, funnel: "5=1+1*RequestSelectorFalse+1*RequestSelectorFalse+1*DeviceAllocated+1*DeviceTainted",
			reasons: []string{
				"small: selector memory is 40Gi, must be 80Gi or more", "mid: selector memory is 60Gi, must be 80Gi or more",
				"held: allocated to claim serving/serve", "ill: tainted xid:NoExecute, set by driver gpu.example.com",
			},
			pools: []string{"n1 5 usable"}, devices: api.DoesNotFit, conflict: true,
			summary: "1 available, 2 needed (2 not matching the selector, 1 allocated, 1 tainted).",
		},
		"only devices within reach count": {
			cluster: []any{
				tc.Pool("net", tc.Device("here").Change(func(d *resourceapi.Device) { d.NodeName = new("n1") }), tc.Device("there").Change(func(d *resourceapi.Device) { d.NodeName = new("n2") })).Change(func(s *resourceapi.ResourceSlice) {
					s.Spec.NodeName, s.Spec.PerDeviceNodeSelection = nil, new(true)
				}),
				tc.Claim(waiting, tc.GPUs("gpu", 2)),
			},
			verdict: api.DoesNotFit, funnel: "1=1", pools: []string{"net 1 usable"}, devices: api.DoesNotFit, conflict: true,
			summary: "1 available, 2 needed.",
		},
		"incomplete pool": {
			cluster: []any{tc.Pool("n1", tc.Devices(2)...).Of(2), tc.Claim(waiting, tc.GPUs("gpu", 1))},
			verdict: api.DoesNotFit, funnel: "2=0+2*PoolIncomplete",
			reasons: []string{"gpu-0 gpu-1: pool incomplete 1 of 2 slices of pool n1 published"},
			pools:   []string{"n1 2 PoolIncomplete 1 of 2 slices of pool n1 published"}, devices: api.DoesNotFit, conflict: true,
			summary: "1 of 2 slices of pool n1 published.",
		},
		"obsolete slice": {
			cluster: []any{
				tc.Pool("n1", tc.Device("old")),
				tc.Pool("n1", tc.Device("new")).Change(func(s *resourceapi.ResourceSlice) { s.Spec.Pool.Generation = 2 }),
				tc.Claim(waiting, tc.GPUs("gpu", 2)),
			},
			verdict: api.DoesNotFit, funnel: "2=1+1*PoolObsolete",
			reasons: []string{"old: obsolete older than generation 2 of pool n1"},
			pools:   []string{"n1 2 usable PoolObsolete older than generation 2 of pool n1"}, devices: api.DoesNotFit, conflict: true,
			summary: "1 of an older generation of the pool",
		},
		"everything that keeps the pod away": {
			cluster: []any{
				tc.Pool("n1", tc.Devices(2)...), tc.Claim(waiting, tc.GPUs("gpu", 1)),
				tc.ChangeNode("n1", func(n *corev1.Node) {
					n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
				}),
				tc.Pod("train-0", tc.Using(waiting), func(p *corev1.Pod) {
					p.Spec.NodeSelector = map[string]string{"zone": "a"}
					p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100")}
				}),
			},
			pod: "train-0", verdict: api.DoesNotFit, funnel: "2=2",
			misfits: []string{
				"no label zone=a, which spec.nodeSelector requires", "node taint team=a:NoSchedule",
				"not enough cpu: 100 required, 8 available of 8",
			},
			pools: []string{"n1 2 usable"}, devices: api.Fits, conflict: true,
			summary: "and 1 more; there are enough devices.",
		},
		"away and without devices": {
			cluster: []any{
				tc.Pool("n1", tc.Devices(1)...), tc.Serving("serve", "n1", "gpu-0"), tc.Claim(waiting, tc.GPUs("gpu", 1)),
				tc.ChangeNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }), tc.Pod("train-0", tc.Using(waiting)),
			},
			pod: "train-0", verdict: api.DoesNotFit, funnel: "1=0+1*DeviceAllocated", reasons: []string{"gpu-0: allocated to claim serving/serve"},
			misfits: []string{"cordoned"}, pools: []string{"n1 1 usable"}, devices: api.DoesNotFit, conflict: true,
			summary: "Cordoned; apart from that, 0 of 1 available (1 allocated).",
		},
		"pod is bound elsewhere": {
			cluster: []any{
				tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(1)...), tc.Serving("mine", "n2", "gpu-0"),
				func(s *snapshot.Snapshot) { s.Claims[0].Namespace = tc.Namespace },
				tc.Pod("train-0", tc.Using("mine"), func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n2", corev1.PodRunning }),
			},
			pod: "train-0", verdict: api.DoesNotFit,
			misfits: []string{"the pod is bound to node n2", "claim ml/mine is allocated on n2"},
			pools:   []string{"n1 1 usable"},
			summary: "The pod is bound to node n2; claim ml/mine is allocated on n2.",
		},
		"another claim of the pod is allocated elsewhere": {
			cluster: []any{
				tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(2)...), tc.Serving("mine", "n2", "gpu-0"), tc.Claim(waiting, tc.GPUs("gpu", 2)),
				func(s *snapshot.Snapshot) { s.Claims[0].Namespace = tc.Namespace }, tc.Pod("train-0", tc.Using("mine", waiting)),
			},
			pod: "train-0", verdict: api.DoesNotFit, conflict: true, funnel: "2=2",
			misfits: []string{"claim ml/mine is allocated on n2"},
			pools:   []string{"n1 2 usable"}, devices: api.DoesNotFit,
			summary: "apart from that, enough devices for each of request mine.gpu and request train.gpu alone, but not for all together.",
		},
		"another claim of the pod would fit, too": {
			cluster: []any{
				tc.Pool("n1", tc.Devices(3)...), tc.Pool("n2", tc.Devices(2)...), tc.Serving("mine", "n2", "gpu-0"), tc.Claim(waiting, tc.GPUs("gpu", 2)),
				func(s *snapshot.Snapshot) { s.Claims[0].Namespace = tc.Namespace }, tc.Pod("train-0", tc.Using("mine", waiting)),
			},
			pod: "train-0", verdict: api.DoesNotFit, conflict: true, funnel: "3=3",
			misfits: []string{"claim ml/mine is allocated on n2"},
			pools:   []string{"n1 3 usable"}, devices: api.Fits,
			summary: "is allocated on n2; there are enough devices.",
		},
		"another claim of the pod cannot be moved": {
			cluster: []any{
				tc.Pool("n1", tc.Devices(2)...), tc.Pool("n2", tc.Devices(2)...), tc.Serving("mine", "n2", "gpu-0"), tc.Claim(waiting, tc.GPUs("gpu", 2)),
				func(s *snapshot.Snapshot) {
					s.Claims[0].Namespace = tc.Namespace
					s.Claims[0].Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "other", UID: "other"}}
				}, tc.Pod("train-0", tc.Using("mine", waiting)),
			},
			pod: "train-0", verdict: api.DoesNotFit, conflict: true, funnel: "2=2",
			misfits: []string{"claim ml/mine is allocated on n2 and used by pod ml/other; this pod can only run there"},
			pools:   []string{"n1 2 usable"},
			summary: "Claim ml/mine is allocated on n2 and used by pod ml/other; this pod can only run there.",
		},
		"pod runs there": {
			cluster: []any{
				tc.Pool("n1", tc.Devices(1)...), tc.Serving("mine", "n1", "gpu-0"),
				func(s *snapshot.Snapshot) { s.Claims[0].Namespace = tc.Namespace },
				tc.Pod("train-0", tc.Using("mine"), func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning }),
			},
			pod: "train-0", verdict: api.Allocated, summary: "1 device allocated, usable on n1.",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append([]any{tc.Nodes("n1", "n2", "n3")}, test.cluster...)...)
			target := Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting), Node: "n1"}
			if test.pod != "" {
				target.Object = api.Ref(api.KindPod, tc.Namespace, test.pod)
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
	parts := []any{
		tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1)), tc.Pod("train-0", tc.Using(waiting)),
		tc.ChangeNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
	}
	target := Options{Object: api.Ref(api.KindPod, tc.Namespace, "train-0"), Node: "n1"}
	e, err := Explain(t.Context(), tc.Cluster(parts...), target)
	if err != nil || e.Stage != api.StageAllocation {
		t.Errorf("stage %s, want %s: %v", e.Stage, api.StageAllocation, err)
	}
	parts = append(parts, tc.ChangeNode("n2", func(n *corev1.Node) { n.Spec.Unschedulable = true }))
	e, err = Explain(t.Context(), tc.Cluster(parts...), target)
	if err != nil || e.Stage != api.StageNodeFit {
		t.Errorf("stage %s, want %s: %v", e.Stage, api.StageNodeFit, err)
	}
}

func TestUnknownNode(t *testing.T) {
	tests := map[string]struct {
		cluster []any
		hint    string
	}{
		"near":    {[]any{tc.Nodes("gpu-01", "gpu-02")}, "did you mean gpu-01?"},
		"far":     {[]any{tc.Nodes("a", "b")}, "existing nodes: a, b"},
		"hidden":  {[]any{tc.Gap(snapshot.ResourceNodes, "you may not list nodes")}, "it may exist all the same: you may not list nodes"},
		"made up": {[]any{tc.Pool("zebra", tc.Devices(1)...)}, "no Node exists, but ResourceSlices name: zebra"},
		"none":    {nil, "no Node exists"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append(test.cluster, tc.Claim(waiting, tc.GPUs("gpu", 1)))...)
			_, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting), Node: "gpu-1"})
			var target *TargetError
			if !errors.As(err, &target) || target.Hint != test.hint && (target.Hint != "" || !strings.HasSuffix(err.Error(), "; "+test.hint)) || target.Target.Kind != api.KindNode {
				t.Errorf("error %v, want the hint %q", err, test.hint)
			}
		})
	}
}

// TestNearestNode covers a cluster for each rule of the order of nodes: n1 is nearer than
// n2.
func TestNearestNode(t *testing.T) {
	small, large := "memory:=40Gi", "memory:=80Gi"
	big := `device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0`
	tests := map[string]struct {
		cluster []any
		// missing are the numbers of the two nodes.
		missing [2]int
	}{
		"fits before a conflict": {
			[]any{tc.Pool("n1", tc.Devices(2, "root=a")...), tc.Pool("n2", tc.Device("a", "root=a"), tc.Device("b", "root=b")), tc.Claim(waiting, tc.GPUs("gpu", 2)).Matching("gpu.example.com/root")},
			[2]int{0, 1},
		},
		"together before too few": {
			[]any{tc.Pool("n2", tc.Devices(1, "root=a")...), tc.Pool("n1", tc.Device("a", "root=a"), tc.Device("b", "root=b")), tc.Claim(waiting, tc.GPUs("gpu", 2)).Matching("gpu.example.com/root")},
			[2]int{1, 1},
		},
		"fewer missing": {
			[]any{tc.Pool("n1", tc.Devices(3)...), tc.Pool("n2", tc.Devices(4)...), tc.Serving("serve", "n2", "gpu-0"), tc.Serving("other", "n2", "gpu-1"), tc.Claim(waiting, tc.GPUs("gpu", 4))},
			[2]int{1, 2},
		},
		"held before not matching": {
			[]any{tc.Pool("n1", tc.Devices(1, large)...), tc.Serving("serve", "n1", "gpu-0"), tc.Pool("n2", tc.Devices(1, small)...), tc.Claim(waiting, tc.GPUs("gpu", 1, big))},
			[2]int{1, 1},
		},
		"held before not matching, beside one that is free": {
			[]any{tc.Pool("n1", tc.Devices(2, large)...), tc.Serving("serve", "n1", "gpu-0"), tc.Pool("n2", tc.Device("a", large), tc.Device("b", small)), tc.Claim(waiting, tc.GPUs("gpu", 2, big))},
			[2]int{1, 1},
		},
		"tainted before held": {
			[]any{tc.Pool("n1", tc.Copies(1, tc.Device("").Tainted("xid", resourceapi.DeviceTaintEffectNoSchedule))...), tc.Pool("n2", tc.Devices(1)...), tc.Serving("serve", "n2", "gpu-0"), tc.Claim(waiting, tc.GPUs("gpu", 1))},
			[2]int{1, 1},
		},
		"the request that lacks most counts": {
			[]any{
				tc.Pool("n1", tc.Device("a", large), tc.Device("b", small), tc.Device("c", small), tc.Device("d", small)), tc.Serving("serve", "n1", "a", "b"),
				tc.Pool("n2", tc.Device("a", large), tc.Device("b", small), tc.Device("c", small), tc.Device("d", small)), tc.Serving("other", "n2", "b", "c"),
				tc.Claim(waiting, tc.GPUs("large", 1, big), tc.GPUs("small", 3, `device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) < 0`)),
			},
			[2]int{1, 2},
		},
		"all: fewer in the way": {
			[]any{tc.Pool("n1", tc.Devices(4)...), tc.Serving("serve", "n1", "gpu-0"), tc.Pool("n2", tc.Devices(4)...), tc.Serving("other", "n2", "gpu-0", "gpu-1"), tc.Claim(waiting, tc.GPUs("gpu", 0).All())},
			[2]int{1, 2},
		},
		"more that agree": {
			[]any{
				tc.Pool("n1", tc.Device("a", "model=x"), tc.Device("b", "model=x"), tc.Device("c", "model=x"), tc.Device("d", "model=y")),
				tc.Pool("n2", tc.Device("a", "model=x"), tc.Device("b", "model=x"), tc.Device("c", "model=y"), tc.Device("d", "model=y")),
				tc.Claim(waiting, tc.GPUs("gpu", 4)).Matching("gpu.example.com/model"),
			},
			[2]int{1, 2},
		},
		"more values that differ": {
			[]any{
				tc.Pool("n1", tc.Device("a", "model=x"), tc.Device("b", "model=y"), tc.Device("c", "model=y")),
				tc.Pool("n2", tc.Devices(3, "model=x")...),
				tc.Claim(waiting, tc.GPUs("gpu", 3)).Distinct("gpu.example.com/model"),
			},
			[2]int{1, 2},
		},
		"a cordoned node with all devices before one with too few": {
			[]any{tc.Pool("n2", tc.Devices(4)...), tc.Pool("n1", tc.Devices(8)...), tc.Claim(waiting, tc.GPUs("gpu", 8)), tc.ChangeNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }), tc.Pod("train-0", tc.Using(waiting))},
			[2]int{0, 4},
		},
		"a node that the pod cannot use before one without devices": {
			[]any{tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1)), tc.ChangeNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }), tc.Pod("train-0", tc.Using(waiting))},
			[2]int{0, 1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append([]any{tc.Nodes("n1", "n2")}, test.cluster...)...)
			e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
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
