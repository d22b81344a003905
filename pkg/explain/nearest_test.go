// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// podOn puts a pod on a node that requests CPU there.
func podOn(node, name, cpu string, priority int32, owner string) any {
	return func(s *snapshot.Snapshot) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "serving", Name: name, UID: "uid-pod"},
			Spec: corev1.PodSpec{NodeName: node, Priority: &priority, Containers: []corev1.Container{{
				Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
			}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		if owner != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner, Controller: ptr.To(true)}}
		}
		s.Pods = append(s.Pods, pod)
	}
}

// TestNearestRemedy covers clusters in which one node has all 8 devices and one thing in
// the way, while another has half of them: the first one is what the answer is about.
func TestNearestRemedy(t *testing.T) {
	wanting := func(change func(*corev1.Pod)) []any {
		return []any{tc.Nodes("half", "whole"), tc.Pool("half", tc.Devices(4)...), tc.Claim(waiting, tc.GPUs("gpu", 8)), tc.Pod("train-0", tc.Using(waiting), change)}
	}
	nothing := func(*corev1.Pod) {}
	tests := map[string]struct {
		cluster []any
		// summary is a part of it.
		summary string
		remedy  string
		command string
	}{
		"cordoned": {
			cluster: append(wanting(nothing), tc.Pool("whole", tc.Devices(8)...), tc.ChangeNode("whole", func(n *corev1.Node) { n.Spec.Unschedulable = true })),
			summary: "Request gpu needs 8 devices. Node whole has 8 available, but is not suitable: cordoned.",
			remedy:  "Admin: uncordon node whole", command: "kubectl uncordon whole",
		},
		"a node taint": {
			cluster: append(wanting(nothing), tc.Pool("whole", tc.Devices(8)...), tc.ChangeNode("whole", func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "vision", Effect: corev1.TaintEffectNoSchedule}}
			})),
			summary: "Node whole has 8 available, but is not suitable: node taint team=vision:NoSchedule.",
			remedy:  "Admin: remove the taint team=vision:NoSchedule from node whole", command: "kubectl taint node whole team=vision:NoSchedule-",
		},
		"a taint rule": {
			cluster: append(wanting(nothing), tc.Pool("whole", tc.Devices(8)...), tc.Gate("DRADeviceTaintRules", true), func(s *snapshot.Snapshot) {
				s.TaintRules = append(s.TaintRules, ruleForPool("firmware", "whole"))
			}),
			summary: "Node whole has 0 of 8 available (8 tainted)",
			remedy:  "Admin: delete DeviceTaintRule firmware if it is no longer needed", command: "kubectl delete devicetaintrule firmware",
		},
		"held by a pod of lower priority": {
			cluster: append(wanting(func(p *corev1.Pod) { p.Spec.Priority = ptr.To(int32(100)) }), tc.Pool("whole", tc.Devices(8)...),
				tc.Serving("low", "whole", names(8)...), servingPod("low", "low", 1)),
			summary: "Node whole has 0 of 8 available (8 allocated).",
			remedy:  "Nobody: wait until claim serving/low (used by pod serving/low, priority 1) is released; devices are not preempted, whatever the priority",
		},
		"full of pods": {
			cluster: append(wanting(nothing), tc.Pool("whole", tc.Devices(8)...), podOn("whole", "web", "1", 0, ""),
				tc.ChangeNode("whole", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1") })),
			summary: "Node whole has 8 available, but is not suitable: no room for another pod (1 pods on the node, allocatable 1).",
			remedy:  "Admin: delete pod serving/web", command: "kubectl delete pod web -n serving",
		},
		"3 CPUs short": {
			cluster: append(wanting(func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7")}
			}), tc.Pool("whole", tc.Devices(8)...), podOn("whole", "web-1", "4", 0, "web")),
			summary: "Node whole has 8 available, but is not suitable: not enough cpu: 7 required, 4 available of 8.",
			remedy:  "User: request cpu 4 instead of 7 in container main",
		},
		"more CPU than any node has": {
			cluster: append(wanting(func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("9")}
			}), tc.Pool("whole", tc.Devices(8)...)),
			summary: "not enough cpu: 9 required, 8 available of 8 (no node is that large; the largest has 8).",
			remedy:  "User: request cpu 8 instead of 9 in container main",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(test.cluster...)
			e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindPod, tc.Namespace, "train-0")})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(e.Summary, test.summary) {
				t.Errorf("summary %q, want %q", e.Summary, test.summary)
			}
			if !slices.Contains(e.Nodes[0].Names, "whole") || e.Conflict == nil || e.Conflict.Node != "whole" {
				t.Errorf("the first node is %s, with the conflict %s", e.Nodes[0].Names[0], asJSON(e.Conflict))
			}
			if len(e.Remedies) == 0 {
				t.Fatal("no remedies")
			}
			if first := e.Remedies[0]; first.Actor+": "+first.Change != test.remedy || test.command != "" && !slices.Contains(first.Commands, test.command) {
				t.Errorf("the first remedy is %s, want %s by %q", asJSON(first), test.remedy, test.command)
			}
		})
	}
}

func names(n int) []string {
	list := make([]string, 0, n)
	for i := range n {
		list = append(list, fmt.Sprintf("gpu-%d", i))
	}
	return list
}

func ruleForPool(name, poolName string) *resourceapi.DeviceTaintRule {
	return &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &resourceapi.DeviceTaintSelector{Pool: &poolName},
			Taint:          resourceapi.DeviceTaint{Key: "firmware", Effect: resourceapi.DeviceTaintEffectNoSchedule},
		},
	}
}

// TestHeadline covers first sentences that the nearest node alone does not explain.
func TestHeadline(t *testing.T) {
	roots := func() []tc.DeviceWrapper {
		list := tc.Devices(8)
		for i := range list {
			list[i] = list[i].With(fmt.Sprintf("root=r%d", i/4))
		}
		return list
	}
	tests := map[string]struct {
		cluster []any
		summary string
	}{
		"a condition that stays when claims are released": {
			cluster: []any{
				tc.Nodes("n1", "n2"), tc.Pool("n1", roots()...), tc.Pool("n2", roots()...), tc.Serving("a", "n1", "gpu-0"), tc.Serving("b", "n2", "gpu-0"),
				tc.Claim(waiting, tc.GPUs("gpu", 8)).Matching("gpu.example.com/root"),
			},
			summary: "Request gpu needs 8 devices with the same gpu.example.com/root. Node n1 has 7 of 8 available (1 allocated); even after all other claims are released, it has 8 available, at most 4 with the same gpu.example.com/root.",
		},
		"claims of the conflict are not released": {
			cluster: []any{
				tc.Nodes("n1"),
				tc.Pool("n1", tc.Device("gpu-0", "root=r0"), tc.Device("gpu-1", "root=r0"), tc.Device("gpu-2", "root=r1"), tc.Device("gpu-3", "root=r1"), tc.Device("gpu-4", "root=r2")),
				tc.Serving("a", "n1", "gpu-0"), tc.Serving("b", "n1", "gpu-2"), tc.Serving("c", "n1", "gpu-4"),
				tc.Claim(waiting, tc.GPUs("gpu", 2)).Matching("gpu.example.com/root"),
			},
			summary: "Request gpu needs 2 devices with the same gpu.example.com/root. Node n1 has 2 available, at most 1 with the same gpu.example.com/root; even after all claims but serving/a and serving/b are released, it has 3 available, at most 1 with the same gpu.example.com/root.",
		},
		"no device of the class, and a tainted node": {
			cluster: []any{
				tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Device("eth")).Change(func(s *resourceapi.ResourceSlice) { s.Spec.Driver = "nic.example.com" }),
				tc.ChangeNode("n2", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}} }),
				tc.Claim(waiting, tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using(waiting)),
			},
			summary: "No node has devices of class gpu, which request gpu needs",
		},
		"devices of the class on a node that is gone, and others in use": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Serving("a", "n1", "gpu-0"), tc.ClassWhere("nic", `device.driver == "nic.example.com"`),
				tc.Pool("gone", tc.Device("eth")).Change(func(s *resourceapi.ResourceSlice) { s.Spec.Driver = "nic.example.com" }),
				tc.Claim(waiting, tc.GPUs("nic", 1).OfClass("nic")), tc.Pod("p", tc.Using(waiting), selecting("zone", "z")),
			},
			summary: "Request nic needs 1 device. Node n1 has no devices of class nic, and is not suitable: no label zone=z, which spec.nodeSelector requires (no node has it).",
		},
		"requests on different nodes": {
			cluster: []any{
				tc.Nodes("a1", "b1"), tc.ClassWhere("nic", `device.driver == "nic.example.com"`),
				tc.Pool("a1", tc.Device("eth")).Change(func(s *resourceapi.ResourceSlice) { s.Spec.Driver = "nic.example.com" }), tc.Pool("b1", tc.Devices(1)...),
				tc.Claim(waiting, tc.GPUs("gpu", 1), tc.GPUs("nic", 1).OfClass("nic")),
			},
			summary: "No node has the devices of all requests: gpu is available only on b1, nic is available only on a1.",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := Explain(t.Context(), tc.Cluster(test.cluster...), Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(e.Summary, test.summary) {
				t.Errorf("summary %q, want %q", e.Summary, test.summary)
			}
		})
	}
}

// TestHeadlineOfParts names the nodes that have as many devices as the nearest one, of nodes that
// differ in nothing but that number, and the attribute of a constraint as briefly as other headlines.
func TestHeadlineOfParts(t *testing.T) {
	devices := func(n int) []tc.DeviceWrapper {
		list := tc.Devices(n)
		for i := range list {
			list[i] = list[i].With(fmt.Sprintf("root=r%d", i))
		}
		return list
	}
	e, err := Explain(t.Context(), tc.Cluster(
		tc.Nodes("n1", "n2", "n3", "n4"), tc.Pool("n1", devices(2)...), tc.Pool("n2", devices(3)...), tc.Pool("n3", devices(1)...), tc.Pool("n4", devices(3)...),
		tc.Claim(waiting, tc.GPUs("gpu", 5)).Matching("gpu.example.com/root"),
	), Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
	if err != nil {
		t.Fatal(err)
	}
	if want := "Node n2 and 1 more node have 3 available; request gpu needs 5 devices with the same root."; e.Headline != want {
		t.Errorf("headline %q, want %q", e.Headline, want)
	}
	if want := "Request gpu needs 5 devices with the same gpu.example.com/root. Node n2 and 1 more node have 3 available."; !strings.HasPrefix(e.Summary, want) {
		t.Errorf("summary %q, want %q", e.Summary, want)
	}
}

// TestNominated asserts that a pod for which others are being preempted is told
// so, and gets no advice.
func TestNominated(t *testing.T) {
	e, err := Explain(t.Context(), tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1)), podOn("n1", "low", "6", -1, ""),
		tc.Pod("p", tc.Using(waiting), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
			p.Status.NominatedNodeName = "n1"
		})), Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(e.Summary, "Node n1 is nominated for the pod") || len(e.Remedies) > 0 || e.Conflict != nil {
		t.Errorf("summary %q with remedies %s", e.Summary, asJSON(e.Remedies))
	}
}

// TestSameCause asserts that nodes that differ only in how many devices they
// have are one group, and that it has them apart, too.
func TestSameCause(t *testing.T) {
	for name, test := range map[string]struct {
		each func(i int, node string) []any
		want string
	}{
		"some are allocated": {
			func(i int, node string) []any {
				return []any{tc.Pool(node, tc.Devices(4)...), tc.Serving("on-"+node, node, names(i+1)...)}
			},
			"1 to 3 available, 4 needed, the others allocated",
		},
		"there are no others": {
			func(i int, node string) []any { return []any{tc.Pool(node, tc.Devices(i+1)...)} },
			"1 to 3 available, 4 needed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			parts := []any{tc.Nodes("n1", "n2", "n3"), tc.Claim(waiting, tc.GPUs("gpu", 4))}
			for i, node := range []string{"n1", "n2", "n3"} {
				parts = append(parts, test.each(i, node)...)
			}
			e, err := Explain(t.Context(), tc.Cluster(parts...), Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
			if err != nil {
				t.Fatal(err)
			}
			if len(e.Nodes) != 1 || e.Nodes[0].Count != 3 || len(e.Nodes[0].Parts) != 3 || e.Nodes[0].Message != test.want {
				t.Errorf("nodes %s", asJSON(e.Nodes))
			}
		})
	}
}

// TestMissingClassIsNotAll says what keeps a pod from fitting besides a class that does not exist, as no
// remedy is proved then.
func TestMissingClassIsNotAll(t *testing.T) {
	steps := func(class string, count int64) []api.NextStep {
		e, err := Explain(t.Context(), tc.Cluster(
			tc.Nodes("n1"), tc.Pool("n1", tc.Devices(3)...), tc.ClassWhere("gpu.example.com", `device.driver == "gpu.example.com"`),
			tc.Claim(waiting, tc.Request("one", class, 1), tc.GPUs("big", count)), tc.Pod("p", tc.Using(waiting)),
		), Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")})
		if err != nil || e.Code != api.ClassNotFound {
			t.Fatalf("%v, %+v", err, e)
		}
		return e.NextSteps
	}
	want := "request class gpu.example.com instead of gpu.exmaple.com in request one; then, too, it does not fit. Request big needs 9 devices. Node n1 has request big: 3 available."
	if got := steps("gpu.exmaple.com", 9); len(got) != 1 || got[0].Text != want || got[0].Actor != api.ActorUser {
		t.Errorf("got %+v", got)
	}
	if got := steps("gpu.exmaple.com", 1); len(got) != 0 {
		t.Errorf("the class alone: %+v", got)
	}
	if got := steps("nonesuch", 9); len(got) != 1 || strings.Contains(got[0].Text, "then, too") {
		t.Errorf("no class was meant: %+v", got)
	}
}
