// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// ofDaemonSet returns a pod as the DaemonSet controller creates it for a node.
func ofDaemonSet(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent", Controller: ptr.To(true)}}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
			}}},
		}}}
	}
}

// TestPodsOfDaemonSets asks about a pod of a DaemonSet, for a node that does not have what
// others have: the pod can go nowhere else, whatever is changed in the DaemonSet.
func TestPodsOfDaemonSets(t *testing.T) {
	for name, test := range map[string]struct {
		parts   []any
		summary string
		remedy  string
	}{
		"no devices there": {
			summary: "Request gpu needs 1 device. Node n2, for which the DaemonSet has created the pod, has no devices of class gpu; driver gpu.example.com publishes devices only on n1, and nothing on the nodes that the pod can use: n2.",
		},
		"they are in use": {
			parts:   []any{tc.Pool("n2", tc.Devices(1)...), tc.Serving("other", "n2", "gpu-0")},
			summary: "Request gpu needs 1 device. Node n2 has 0 of 1 available (1 allocated).",
			remedy:  "wait until claim serving/other is released",
		},
	} {
		t.Run(name, func(t *testing.T) {
			parts := append([]any{
				tc.Nodes("n1", "n2", "n3"), tc.Pool("n1", tc.Devices(2)...),
				tc.Claim("waiting", tc.GPUs("gpu", 1)), tc.Pod("agent-x", tc.Using("waiting"), ofDaemonSet("n2")),
			}, test.parts...)
			e := explainEach(t, tc.Cluster(parts...), "Pod/agent-x")["Pod/agent-x"]
			if e.Verdict != api.DoesNotFit || e.Summary != test.summary {
				t.Errorf("%s: %s", e.Verdict, e.Summary)
			}
			if e.Nodes[0].Names[0] != "n2" {
				t.Errorf("the first node is %s", e.Nodes[0].Names[0])
			}
			const elsewhere = "the pod is only for node n2"
			if e.Nodes[1].Message != elsewhere || e.Nodes[1].Count != 2 {
				t.Errorf("other nodes: %+v", e.Nodes[1])
			}
			var remedies []string
			for i := range e.Remedies {
				remedies = append(remedies, e.Remedies[i].Change)
			}
			if got := strings.Join(remedies, "; "); !strings.Contains(got, test.remedy) || strings.Contains(got, "affinity") || test.remedy == "" && got != "" {
				t.Errorf("remedies %s, want %s", got, test.remedy)
			}
		})
	}
}
