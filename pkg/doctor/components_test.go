// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// component adds the pod of a component whose arguments turn gates off.
func component(name, version string, off ...string) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		pod := tc.Pod(name)
		gates := map[string]bool{}
		for _, gate := range off {
			gates[gate] = false
		}
		snapshot.NoteComponent(pod, &snapshot.Component{Name: name, Version: version, Gates: gates})
		s.Pods = append(s.Pods, pod)
	}
}

// inMetrics returns a gate as the API server tells it.
func inMetrics(name string, enabled bool) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		s.Gates[name] = snapshot.Gate{Enabled: enabled, Source: snapshot.GateFromMetrics}
	}
}

// TestGatesOfComponents compares gates as far as they are known.
func TestGatesOfComponents(t *testing.T) {
	const gate = "DRADerivedAttributes"
	for name, test := range map[string]struct {
		server    any
		component func(*snapshot.Snapshot)
		says      string
	}{
		"the same":                {inMetrics(gate, false), component("kube-scheduler", "v1.37.1", gate), ""},
		"the default":             {inMetrics(gate, false), component("kube-scheduler", "v1.37.1"), ""},
		"off by default":          {inMetrics(gate, true), component("kube-scheduler", "v1.37.1"), "is on in the API server and off in kube-scheduler"},
		"not in the release":      {inMetrics(gate, true), component("kube-scheduler", "v1.36.2"), "is on in the API server and off in kube-scheduler"},
		"on by default":           {inMetrics("DRAPartitionableDevices", false), component("kube-scheduler", "v1.37.1"), "is off in the API server and on in kube-scheduler"},
		"an unknown release":      {inMetrics(gate, true), component("kube-scheduler", ""), ""},
		"a stage":                 {inMetrics(gate, true), component("kube-scheduler", "v1.37.1", "AllAlpha"), ""},
		"the metrics not read":    {snapshot.Gap{Resource: snapshot.ResourceMetrics, Reason: "no right"}, component("kube-scheduler", "v1.37.1", gate), "not checked: no right"},
		"nothing that it reads":   {inMetrics(gate, true), component("kube-controller-manager", "v1.37.1"), ""},
		"something that it reads": {inMetrics("DRAResourcePoolStatus", true), component("kube-controller-manager", "v1.37.1"), "does not support ResourcePoolStatusRequests"},
	} {
		found := diagnose(t, tc.Cluster(tc.Nodes("n1"), test.server, test.component), Options{Choice: checks.Choice{Only: []string{"DRA1008"}}})
		if test.says == "" && len(found.Findings) > 0 || test.says != "" && (len(found.Findings) != 1 || !strings.Contains(found.Findings[0].Message, test.says)) {
			t.Errorf("%s: %+v", name, found.Findings)
		}
	}
}

// TestComponentSkew covers the control plane within the policy, and outside of it.
func TestComponentSkew(t *testing.T) {
	for version, says := range map[string]string{
		"v1.37.1": "", "v1.36.4": "", "v1.35.9": "more than one minor release older", "v1.38.0": "newer than the API server", "": "",
	} {
		found := diagnose(t, tc.Cluster(tc.Nodes("n1"), running("v1.37.2"), component("kube-controller-manager", version)), Options{Choice: checks.Choice{Only: []string{"DRA1009"}}})
		if says == "" && len(found.Findings) > 0 || says != "" && (len(found.Findings) != 1 || !strings.Contains(found.Findings[0].Message, says)) {
			t.Errorf("%s: %+v", version, found.Findings)
		}
	}
}

// TestKubelets compares the gates of kubelets, and says which could not be asked.
func TestKubelets(t *testing.T) {
	cluster := tc.Cluster(append(healthy(), inMetrics("DRAExtendedResource", true), inMetrics("DRAWorkloadResourceClaims", true), inMetrics("DRAAdminAccess", true))...)
	nodes := KubeletNodes(cluster)
	if !slices.Equal(nodes, []string{"n1", "n2"}) {
		t.Fatalf("asks %v", nodes)
	}
	same := map[string]bool{"DRAExtendedResource": true, "DRAWorkloadResourceClaims": true}
	ask := func(kubelets ...Kubelet) []api.Finding {
		return diagnose(t, cluster, Options{Choice: checks.Choice{Only: []string{CodeGates}}, Kubelets: kubelets}).Findings
	}
	if found := ask(Kubelet{Node: "n1", Gates: same}, Kubelet{Node: "n2", Gates: same}); len(found) > 0 {
		t.Errorf("the same gates: %+v", found)
	}
	off := map[string]bool{"DRAExtendedResource": false}
	found := ask(Kubelet{Node: "n1", Gates: off}, Kubelet{Node: "n2", Gates: same}, Kubelet{Node: "n3", Unknown: "this user may not get nodes/proxy"})
	if len(found) != 3 {
		t.Fatalf("found %+v", found)
	}
	for i, says := range []string{
		"DRAExtendedResource is on in the API server and off in the kubelet of 1 node, which does not support extended resources",
		"DRAWorkloadResourceClaims is on in the API server and off in the kubelet of 1 node",
		"not checked for the kubelet of 1 node: this user may not get nodes/proxy",
	} {
		if !strings.Contains(found[i].Message, says) {
			t.Errorf("%q does not say %q", found[i].Message, says)
		}
	}
	if !slices.Equal(found[0].Objects, []api.ObjectRef{api.Ref(api.KindNode, "", "n1")}) || found[2].Severity != api.SeverityUnknown {
		t.Errorf("found %+v", found)
	}
}

// controller adds a pod of dra-controller.
func controller(name string, ready bool, changes ...func(*corev1.Pod)) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		pod := tc.Pod(name)
		pod.Namespace = "kubectl-dra"
		pod.Labels = map[string]string{"app.kubernetes.io/name": "dra-controller", "app.kubernetes.io/part-of": "kubectl-dra"}
		if ready {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		} else {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "controller", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		}
		for _, change := range changes {
			change(pod)
		}
		s.Pods = append(s.Pods, pod)
	}
}

// TestControllerThatRuns expects no finding where one replica is ready, where the controller
// does not run at all, and about pods of others.
func TestControllerThatRuns(t *testing.T) {
	for name, pods := range map[string][]any{
		"none":        nil,
		"one":         {controller("a", true), controller("b", false)},
		"an old one":  {controller("a", false, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })},
		"of others":   {controller("a", false, func(p *corev1.Pod) { p.Labels["app.kubernetes.io/part-of"] = "driver" })},
		"not labeled": {controller("a", false, func(p *corev1.Pod) { p.Labels = nil })},
	} {
		found := diagnose(t, tc.Cluster(append(pods, tc.Nodes("n1"))...), Options{Choice: checks.Choice{Only: []string{"DRA1010"}}})
		if len(found.Findings) > 0 {
			t.Errorf("%s: %+v", name, found.Findings)
		}
	}
}
