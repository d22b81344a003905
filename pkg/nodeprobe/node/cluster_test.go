// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func clusterNode(name, bootID, machineID string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.NodeInfo.BootID, n.Status.NodeInfo.MachineID = bootID, machineID
	return n
}

// identify gives the host its IDs.
func identify(t *testing.T, host *Host, bootID, machineID, hostname string) {
	t.Helper()
	for path, id := range map[string]string{bootIDPath: bootID, machineIDPath: machineID, hostnamePath: hostname} {
		here := filepath.Join(host.Root, path)
		if err := os.MkdirAll(filepath.Dir(here), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(here, []byte(id+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNodeName(t *testing.T) {
	nodes := []*corev1.Node{clusterNode("a", "boot-1", "machine-a"), clusterNode("b", "boot-1", "machine-b"), clusterNode("c", "boot-2", "machine-c")}
	for name, test := range map[string]struct {
		given, boot, machine, hostname string
		want, unknown                  string
	}{
		"by the boot ID":                         {"", "boot-2", "machine-x", "x", "c", ""},
		"two nodes on one kernel, as with kind":  {"", "boot-1", "machine-b", "x", "b", ""},
		"by the host name, in any case":          {"", "boot-9", "machine-x", "C", "c", ""},
		"not at all":                             {"", "boot-9", "machine-x", "x", "", "no single node"},
		"as somebody said":                       {"a", "boot-2", "machine-c", "c", "a", ""},
		"as somebody said, but there is no such": {"z", "boot-2", "machine-c", "c", "", "has no node z"},
	} {
		t.Run(name, func(t *testing.T) {
			host := tree(t, "etc/")
			host.Name = test.given
			identify(t, host, test.boot, test.machine, test.hostname)
			c := host.In(&snapshot.Snapshot{Source: "the test", Nodes: nodes})
			if c.Node != test.want || !strings.Contains(c.Unknown, test.unknown) {
				t.Errorf("node %q (%s), want %q (%s)", c.Node, c.Unknown, test.want, test.unknown)
			}
		})
	}
	host := tree(t, "etc/")
	if c := host.In(&snapshot.Snapshot{Gaps: []snapshot.Gap{{Resource: snapshot.ResourceNodes, Reason: "forbidden"}}}); c.Node != "" || !strings.Contains(c.Unknown, "forbidden") {
		t.Errorf("without the right to read nodes: %q (%s)", c.Node, c.Unknown)
	}
	if host.In(nil) != nil {
		t.Error("without a cluster there is none")
	}
}

// TestBound finds what a node has to do with.
func TestBound(t *testing.T) {
	pod := func(name, on string, phase corev1.PodPhase) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name)}}
		p.Spec.NodeName, p.Status.Phase = on, phase
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &p.Name}}
		return p
	}
	claim := func(name string) *resourceapi.ResourceClaim {
		return &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name},
			Status:     resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{}},
		}
	}
	host := tree(t, "etc/")
	host.Name = "a"
	c := host.In(&snapshot.Snapshot{
		Nodes:  []*corev1.Node{clusterNode("a", "", ""), clusterNode("b", "", "")},
		Pods:   []*corev1.Pod{pod("done", "a", corev1.PodSucceeded), pod("here", "a", corev1.PodRunning), pod("there", "b", corev1.PodRunning)},
		Claims: []*resourceapi.ResourceClaim{claim("done"), claim("here"), claim("there")},
	})
	if len(c.Pods) != 1 || c.Pods[0].Name != "here" || len(c.Claims) != 1 || c.Claims[0].Name != "here" {
		t.Errorf("pods %v, claims %v, want here", c.Pods, c.Claims)
	}
	if !c.Needed(c.Claims[0]) {
		t.Error("the claim of a running pod is needed")
	}
	now := metav1.Now()
	c.Pods[0].DeletionTimestamp = &now
	if c.Needed(c.Claims[0]) {
		t.Error("a pod that is being deleted needs nothing for sure")
	}
}

func TestUnknowns(t *testing.T) {
	var d Unknowns
	for _, who := range []string{"a", "b", "c", "d", "e"} {
		d.Add(who, "dark")
	}
	d.Add("f", "far")
	checks := d.Checks("x")
	if len(checks) != 2 || checks[0].Message != "a, b, c and 2 more: dark" || checks[1].Message != "f: far" || checks[0].State != Unknown {
		t.Errorf("%+v", checks)
	}
}
