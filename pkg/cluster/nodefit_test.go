// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestNodeFit(t *testing.T) {
	withTaint := func(key, value string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
		}
	}
	cordoned := func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		withTaint(corev1.TaintNodeUnschedulable, "", corev1.TaintEffectNoSchedule)(n)
	}
	tolerating := func(key string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
	}
	selecting := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
	}
	affine := func(selector *corev1.NodeSelector) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
		}
	}
	port := func(ip string, number int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: number, HostPort: number, HostIP: ip}}
		}
	}
	hostNetwork := func(number int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.HostNetwork = true
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: number}}
		}
	}
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Phase = phase }
	}
	gpu := tc.Class(tc.ClassA, tc.DriverA)
	gpu.Spec.ExtendedResourceName = ptr.To("example.com/gpu")

	tests := map[string]struct {
		objects []any
		node    []func(*corev1.Node)
		pod     *corev1.Pod
		want    []Misfit
	}{
		"fits": {pod: tc.Pod("p", tc.Requesting("cpu=4", "memory=8Gi", "ephemeral-storage=1Gi"))},
		"another node by name": {
			pod:  tc.Pod("p", tc.OnNode(tc.Node2)),
			want: []Misfit{{Filter: FilterNodeName, Reason: "the pod requires another node by name", Path: "metadata.name", Found: tc.Node1, Wanted: tc.Node2}},
		},
		"cordoned": {
			node: []func(*corev1.Node){cordoned},
			pod:  tc.Pod("p"),
			want: []Misfit{{Filter: FilterUnschedulable, Reason: "cordoned", Condition: &NodeCondition{Reason: "cordoned", Ended: true}, Path: "spec.unschedulable", Found: "true", Wanted: "false"}},
		},
		"cordoned, tolerated": {
			node: []func(*corev1.Node){cordoned},
			pod:  tc.Pod("p", tolerating(corev1.TaintNodeUnschedulable)),
		},
		"taint": {
			node: []func(*corev1.Node){withTaint("soft", "", corev1.TaintEffectPreferNoSchedule), withTaint("dedicated", "infra", corev1.TaintEffectNoSchedule)},
			pod:  tc.Pod("p"),
			want: []Misfit{{
				Filter: FilterTaint, Taint: corev1.Taint{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}, Reason: "node taint dedicated=infra:NoSchedule", Path: "spec.taints[1]",
				Found: "dedicated=infra:NoSchedule", Wanted: "a toleration in the pod",
			}},
		},
		"tolerated taint": {
			node: []func(*corev1.Node){withTaint("dedicated", "infra", corev1.TaintEffectNoExecute)},
			pod:  tc.Pod("p", tolerating("dedicated")),
		},
		"node selector": {
			pod: tc.Pod("p", selecting("zone", "b")),
			want: []Misfit{{
				Filter: FilterNodeSelector, Label: "zone", Reason: "no label zone=b, which spec.nodeSelector requires", Path: "metadata.labels['zone']", Found: "a", Wanted: "b",
			}},
		},
		"node selector that matches": {pod: tc.Pod("p", selecting("zone", "a"))},
		"affinity": {
			pod: tc.Pod("p", affine(tc.NodeSelector("zone", "b", "c"))),
			want: []Misfit{{
				Filter: FilterNodeAffinity, Reason: "the pod's required node affinity does not match", Path: "metadata.labels", Found: "zone=a", Wanted: "zone In (b, c)",
			}},
		},
		"affinity that matches": {pod: tc.Pod("p", affine(tc.NodeSelector("zone", "a", "b")))},
		"affinity that cannot be parsed": {
			pod: tc.Pod("p", affine(tc.NodeSelector("not a label", "b"))),
			want: []Misfit{{
				Filter: FilterNodeAffinity, Reason: "the pod's required node affinity does not match", Path: "metadata.labels", Wanted: "not a label In (b)",
			}},
		},
		"affinity to a node": {
			pod: tc.Pod("p", affine(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{tc.Node2}}}},
				{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "gpu", Operator: corev1.NodeSelectorOpExists}, {Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
				}},
			}})),
			want: []Misfit{{
				Filter: FilterNodeAffinity, Reason: "the pod's required node affinity does not match", Path: "metadata.labels",
				Found: "metadata.name=node-1, zone=a", Wanted: "metadata.name In (node-2), or gpu Exists and zone In (a)",
			}},
		},
		"too little left": {
			objects: []any{
				tc.Pod("other", tc.OnNode(tc.Node1), tc.Requesting("cpu=6500m", "memory=12Gi")),
				tc.Pod("elsewhere", tc.OnNode(tc.Node2), tc.Requesting("cpu=8")),
				tc.Pod("waiting", tc.Requesting("cpu=8")),
				tc.Pod("done", tc.OnNode(tc.Node1), phase(corev1.PodSucceeded), tc.Requesting("cpu=8")),
			},
			pod: tc.Pod("p", tc.Requesting("cpu=2", "memory=4Gi")),
			want: []Misfit{{
				Filter: FilterResources, Resource: "cpu", Reason: "not enough cpu", Path: "status.allocatable['cpu']", Found: "1500m available of 8", Wanted: "2",
				Required: resource.MustParse("2"), Available: resource.MustParse("1500m"), Allocatable: resource.MustParse("8"),
			}},
		},
		"only a limit": {
			pod: tc.Pod("p", func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Limits = tc.ResourceList("memory=17Gi")
			}),
			want: []Misfit{{
				Filter: FilterResources, Resource: "memory", Reason: "not enough memory", Path: "status.allocatable['memory']", Found: "16Gi available of 16Gi", Wanted: "17Gi",
				Required: resource.MustParse("17Gi"), Available: resource.MustParse("16Gi"), Allocatable: resource.MustParse("16Gi"),
			}},
		},
		"the pod itself does not count": {
			objects: []any{tc.Pod("p", tc.OnNode(tc.Node1), tc.Requesting("cpu=8", "example.com/fpga=1"), port("", 80))},
			pod:     tc.Pod("p", tc.OnNode(tc.Node1), tc.Requesting("cpu=8", "example.com/fpga=1"), port("", 80)),
		},
		"extended resource": {
			objects: []any{tc.Pod("other", tc.OnNode(tc.Node1), tc.Requesting("example.com/fpga=1"))},
			pod:     tc.Pod("p", tc.Requesting("example.com/fpga=1")),
			want: []Misfit{{
				Filter: FilterResources, Resource: "example.com/fpga", Reason: "not enough example.com/fpga", Path: "status.allocatable['example.com/fpga']", Found: "0 available of 1", Wanted: "1",
				Required: resource.MustParse("1"), Available: resource.MustParse("0"), Allocatable: resource.MustParse("1"),
			}},
		},
		"extended resource that a class stands for": {
			objects: []any{tc.Gates{GateExtendedResource}, gpu},
			pod:     tc.Pod("p", tc.Requesting("example.com/gpu=1")),
		},
		"extended resource that a class stands for while that is off": {
			objects: []any{gpu},
			pod:     tc.Pod("p", tc.Requesting("example.com/gpu=1")),
			want: []Misfit{{
				Filter: FilterResources, Resource: "example.com/gpu", Reason: "not enough example.com/gpu", Path: "status.allocatable['example.com/gpu']", Found: "0 available of 0", Wanted: "1",
				Required: resource.MustParse("1"), Available: resource.MustParse("0"), Allocatable: resource.MustParse("0"),
			}},
		},
		"too many pods": {
			objects: []any{tc.Pod("a", tc.OnNode(tc.Node1)), tc.Pod("b", tc.OnNode(tc.Node1))},
			pod:     tc.Pod("p"),
			want: []Misfit{{
				Filter: FilterPods, Reason: "no room for another pod", Path: "status.allocatable.pods", Found: "2 pods on the node, allocatable 2", Wanted: "room for 1 more pod",
				Resource: corev1.ResourcePods, Required: resource.MustParse("1"), Available: resource.MustParse("0"), Allocatable: resource.MustParse("2"),
			}},
		},
		"host port": {
			objects: []any{tc.Pod("other", tc.OnNode(tc.Node1), hostNetwork(80), port("10.0.0.1", 80))},
			pod:     tc.Pod("p", port("", 80)),
			want:    []Misfit{{Filter: FilterPorts, User: "ml/other", Reason: "host port 80/TCP is in use", Found: "used by pod ml/other", Wanted: "a free host port 0.0.0.0:80/TCP"}},
		},
		"host network": {
			objects: []any{tc.Pod("other", tc.OnNode(tc.Node1), port("", 80))},
			pod:     tc.Pod("p", hostNetwork(80)),
			want:    []Misfit{{Filter: FilterPorts, User: "ml/other", Reason: "host port 80/TCP is in use", Found: "used by pod ml/other", Wanted: "a free host port 0.0.0.0:80/TCP"}},
		},
		"host port on another address": {
			objects: []any{tc.Pod("other", tc.OnNode(tc.Node1), port("10.0.0.1", 80))},
			pod:     tc.Pod("p", port("10.0.0.2", 80)),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := tc.Node(tc.Node1, "zone=a")
			n.Status.Allocatable = tc.ResourceList("cpu=8", "memory=16Gi", "ephemeral-storage=100Gi", "pods=2", "example.com/fpga=1")
			for _, change := range tt.node {
				change(n)
			}
			before := tt.pod.DeepCopy()
			got := newCluster(t, tc.Snapshot(append(tt.objects, n)...)).Nodes.Fit(tt.pod, n)
			if diff := gocmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := gocmp.Diff(before, tt.pod); diff != "" {
				t.Errorf("the pod was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestMadeUpNodes(t *testing.T) {
	a := newCluster(t, tc.Snapshot(tc.IncubatingGates(), tc.Slice("b", tc.DriverA, "p1").OnNode(tc.Node2), tc.Slice("c", tc.DriverA, "p2").OnAllNodes(),
		tc.Slice("a", tc.DriverA, "p3", tc.Device("d").OnNode(tc.Node1)).PerDevice(), tc.Class(tc.ClassA, tc.DriverA)))
	nodes, known := a.Nodes.All()
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	if diff := gocmp.Diff([]string{tc.Node1, tc.Node2}, names); known || diff != "" {
		t.Errorf("known %t (-want +got):\n%s", known, diff)
	}
	if got := a.Nodes.Fit(tc.Pod("p", tc.Requesting("cpu=1")), nodes[0]); got != nil {
		t.Errorf("a made-up node is judged: %v", got)
	}
	if got := a.Nodes.Fit(tc.Pod("p", tc.OnNode(tc.Node2)), nodes[0]); len(got) != 1 {
		t.Errorf("the name of a made-up node is not judged: %v", got)
	}

	if nodes, known := newCluster(t, tc.Snapshot(tc.Node(tc.Node1))).Nodes.All(); !known || len(nodes) != 1 {
		t.Errorf("got %d nodes, known %t", len(nodes), known)
	}
}

// TestMissingNode compares a node that only a preview knows with a made-up node and a node
// of the cluster.
func TestMissingNode(t *testing.T) {
	snap := tc.Snapshot(tc.IncubatingGates(), tc.Node(tc.Node1), tc.Slice("a", tc.DriverA, "p1", tc.Device("d")).OnNode(tc.Node1), tc.Class(tc.ClassA, tc.DriverA))
	laid := tc.Snapshot(tc.Slice("b", tc.DriverA, "p2", tc.Device("d"), tc.Device("e")).OnNode(tc.Node2))
	a := newCluster(t, snapshot.WithPreview(snap, laid))
	nodes, known := a.Nodes.All()
	if !known || len(nodes) != 2 {
		t.Fatalf("known %t, %d nodes", known, len(nodes))
	}
	if got := a.Nodes.Fit(tc.Pod("p", tc.Requesting("cpu=1")), nodes[0]); len(got) == 0 {
		t.Error("node-1 has no CPU, but takes the pod")
	}
	if got := a.Nodes.Fit(tc.Pod("p", tc.Requesting("cpu=1")), nodes[1]); got != nil {
		t.Errorf("a node of which nothing is known is judged: %v", got)
	}
}

func TestNotModelled(t *testing.T) {
	p := tc.Pod("p", tc.InGroup("g"), func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{
			PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{}}},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{}}},
		}
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.DoNotSchedule}}
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}
		p.Spec.SchedulerName = "volcano"
	})
	a := newCluster(t, tc.Snapshot(snapshot.Gap{Resource: snapshot.ResourcePods, Namespace: tc.Namespace}))
	want := []string{
		"the rules of scheduler volcano", "what pods that could not be read use", "the nodes' labels, taints and resources, which could not be read",
	}
	if diff := gocmp.Diff(want, a.Nodes.NotModelled(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	simple := tc.Pod("p", func(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName })
	if got := newCluster(t, tc.Snapshot(tc.Node(tc.Node1))).Nodes.NotModelled(simple); got != nil {
		t.Errorf("got %v, want nothing", got)
	}
}
