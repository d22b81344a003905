// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

func selecting(label, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{label: value} }
}

func affineTo(label string, values ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: tc.NodeSelector(label, values...)}}
	}
}

func cordon(n *corev1.Node) { n.Spec.Unschedulable = true }

// TestPodsForOneNode asks about pods that select a single node: the reason is the problem
// with that node, whatever there is on others.
func TestPodsForOneNode(t *testing.T) {
	const label = corev1.LabelHostname
	nodes := []any{
		tc.Nodes("n1", "n2", "n3", "cpu", "off"),
		tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(2)...), tc.Pool("n3", tc.Devices(2)...),
		tc.ChangeNode("n1", cordon), tc.ChangeNode("off", cordon),
	}
	for name, test := range map[string]struct {
		pod     func(*corev1.Pod)
		parts   []any
		summary string
		first   string
	}{
		"cordoned, by nodeSelector": {
			pod:     selecting(label, "n1"),
			summary: "Request gpu needs 1 device. Node n1 has 1 available, but is not suitable: cordoned.",
			first:   "cordoned",
		},
		"cordoned, by affinity": {
			pod:     affineTo(label, "n1"),
			summary: "Request gpu needs 1 device. Node n1 has 1 available, but is not suitable: cordoned.",
			first:   "cordoned",
		},
		"cordoned and in use": {
			pod: selecting(label, "n1"), parts: []any{tc.Serving("other", "n1", "gpu-0")},
			summary: "Request gpu needs 1 device. Node n1 has 0 of 1 available (1 allocated), and is not suitable: cordoned.",
			first:   "cordoned",
		},
		"no devices": {
			pod: selecting(label, "cpu"),
			summary: "Request gpu needs 1 device. Node cpu, the only one that the pod selects, has no devices of class gpu; " +
				"driver gpu.example.com publishes devices only on n1, n2, n3, and nothing on the nodes that the pod can use: cpu.",
			first: "no devices of class gpu",
		},
		"no devices and cordoned": {
			pod:     affineTo(label, "off"),
			summary: "Request gpu needs 1 device. Node off, the only one that the pod selects, has no devices of class gpu, and is not suitable: cordoned.",
			first:   "cordoned",
		},
	} {
		t.Run(name, func(t *testing.T) {
			parts := append([]any{tc.Claim("waiting", tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using("waiting"), test.pod)}, nodes...)
			e := explainEach(t, tc.Cluster(append(parts, test.parts...)...), "Pod/p")["Pod/p"]
			if e.Verdict != api.DoesNotFit || e.Summary != test.summary {
				t.Errorf("%s: %s", e.Verdict, e.Summary)
			}
			if first := e.Nodes[0]; first.Message != test.first || first.Count != 1 {
				t.Errorf("the first node: %+v", first)
			}
		})
	}
}

// TestLabelThatNoNodeHas asks about a pod that selects nodes by a label that none has:
// comparing it with the nearest node is useless.
func TestLabelThatNoNodeHas(t *testing.T) {
	e := explainEach(t, tc.Cluster(tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(1)...),
		tc.Claim("waiting", tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using("waiting"), selecting(corev1.LabelHostname, "n9"))), "Pod/p")["Pod/p"]
	const want = "Request gpu needs 1 device. Node n1 has 1 available, but is not suitable: no label kubernetes.io/hostname=n9, which spec.nodeSelector requires (no node has it)."
	if e.Summary != want {
		t.Errorf("%s", e.Summary)
	}
}

// TestWhatAnUnsuitableNodeHas asks about pods that the nearest node keeps out, and that ask for
// more than it has: its devices are counted all the same.
func TestWhatAnUnsuitableNodeHas(t *testing.T) {
	nics := tc.Pool("n1", tc.Device("eth-0"), tc.Device("eth-1")).Change(func(s *resourceapi.ResourceSlice) { s.Name, s.Spec.Driver = "n1-nic", "nic.example.com" })
	sick := tc.Devices(4)
	sick[3].Taints = []resourceapi.DeviceTaint{{Key: "sick", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	vision := tc.ChangeNode("n1", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "vision", Effect: corev1.TaintEffectNoSchedule}}
	})
	for name, test := range map[string]struct {
		parts   []any
		summary string
	}{
		"some of them tainted": {
			[]any{tc.Pool("n1", sick...), tc.Claim("waiting", tc.GPUs("gpu", 6)), tc.Pod("p", tc.Using("waiting"), selecting("zone", "z"))},
			"Request gpu needs 6 devices. Node n1 has 3 available, at most 4 match (1 tainted), and is not suitable: no label zone=z, which spec.nodeSelector requires (no node has it).",
		},
		"another request": {
			[]any{tc.Pool("n1", tc.Devices(4)...), nics, vision, tc.ClassWhere("nic", `device.driver == "nic.example.com"`), tc.Claim("waiting", tc.GPUs("gpu", 4), tc.GPUs("nic", 3).OfClass("nic")), tc.Pod("p", tc.Using("waiting"))},
			"Request nic needs 3 devices. Node n1 has request nic: 2 available, and is not suitable: node taint team=vision:NoSchedule.",
		},
		"all devices": {
			[]any{tc.Pool("n1", tc.Devices(4)...), nics, vision, tc.ClassWhere("nic", `device.driver == "nic.example.com"`), tc.Claim("waiting", tc.GPUs("gpu", 1).All(), tc.GPUs("nic", 3).OfClass("nic")), tc.Pod("p", tc.Using("waiting"))},
			"Request nic needs 3 devices. Node n1 has request nic: 2 available, and is not suitable: node taint team=vision:NoSchedule.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := explainEach(t, tc.Cluster(append([]any{tc.Nodes("n1")}, test.parts...)...), "Pod/p")["Pod/p"]
			if e.Summary != test.summary {
				t.Errorf("got  %s\nwant %s", e.Summary, test.summary)
			}
		})
	}
}
