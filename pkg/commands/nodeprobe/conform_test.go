// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package nodeprobe_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

func TestNodeProbeConform(t *testing.T) {
	n := newProbedNode(t, nil)
	// Without a restart and other claims, not all is known.
	out, said, code := n.probe("conform", "train", "-n", "ml", "--settle", "10s", "--restart-command", "echo stubborn; exit 7")
	if code != cli.ExitUndetermined || said != "" {
		t.Errorf("exit code %d: %s", code, said)
	}
	has(t, "output", out, "Driver gpu.example.com: ", "✓  prepare-twice", "?  restart", "--restart-command ends with exit code 7: stubborn", "?  several-claims")
	if strings.Contains(out, "✗") || n.driver.Prepared(n.claim.UID) != 0 {
		t.Errorf("prepared %d times:\n%s", n.driver.Prepared(n.claim.UID), out)
	}
	out, _, _ = n.probe("conform", "train", "-n", "ml", "-o", "wide")
	has(t, "wide", out, "required by KEP-4381")

	var found driver.Conformance
	out, _, _ = n.probe("conform", "train", "-n", "ml", "-o", "json")
	if err := json.Unmarshal([]byte(out), &found); err != nil || found.Kind != "DriverConformance" || len(found.Results) != 19 {
		t.Errorf("%v: %s", err, out)
	}
	for _, r := range found.Results {
		if r.Source == "" || r.Message == "" || !strings.HasPrefix(r.Name, "conform/") || r.State == node.Problem {
			t.Errorf("%+v", r)
		}
	}
	var suites struct {
		Suite struct {
			Tests int `xml:"tests,attr"`
		} `xml:"testsuite"`
	}
	out, _, _ = n.probe("conform", "train", "-n", "ml", "-o", "junit")
	if err := xml.Unmarshal([]byte(out), &suites); err != nil || suites.Suite.Tests != 19 {
		t.Errorf("%v: %s", err, out)
	}
	if out, said, code := n.probe("conform", "train", "-n", "ml", "-o", "jsonpath={.kind}"); out != "DriverConformance" {
		t.Errorf("exit code %d, %s: %s", code, said, out)
	}
	out, said, code = n.probe("conform", "train", "-n", "ml", "-o", "markdown")
	if code != cli.ExitUndetermined || said != "" || strings.Contains(out, n.dir) {
		t.Errorf("exit code %d, %s: %s", code, said, out)
	}
	has(t, "Markdown", out, "# Conformance of DRA driver `gpu.example.com`", "| kubectl-dra | ", "| `conform/prepare-twice` | met | ", "`--unallocated`", "| `v1.DRAPlugin/NodePrepareResources` | `ml/train`")
}

// TestNodeProbeConformFindsImage finds the pod of a driver by the process that serves its
// endpoint.
func TestNodeProbeConformFindsImage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says which process serves a socket")
	}
	n := newProbedNode(t, nil)
	const uid = "0b5e9a2c-3c55-4b9f-9d3b-5f0b8d7c1a11"
	pod := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: driver-x, namespace: kube-system, uid: " + uid + "}\n" +
		"spec: {nodeName: node-1, containers: [{name: plugin, image: registry.example.com/gpu:v7}, {name: health, image: registry.example.com/gpu:v7}]}\n"
	cluster, err := os.ReadFile(n.cluster)
	if err != nil {
		t.Fatal(err)
	}
	process := filepath.Join(n.dir, "proc", strconv.Itoa(os.Getpid()))
	if err := errors.Join(
		os.WriteFile(n.cluster, append(cluster, pod...), 0o600),
		os.MkdirAll(process, 0o750),
		os.WriteFile(filepath.Join(process, "cgroup"), []byte("0::/kubepods.slice/kubepods-pod"+strings.ReplaceAll(uid, "-", "_")+".slice/cri-containerd-abc.scope\n"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	var found driver.Conformance
	out, _, _ := n.probe("conform", "train", "-n", "ml", "-o", "json")
	if err := json.Unmarshal([]byte(out), &found); err != nil || !slices.Equal(found.Software.Images, []string{"registry.example.com/gpu:v7"}) {
		t.Errorf("%v: images %q", err, found.Software.Images)
	}
}

func TestNodeProbeConformRefuses(t *testing.T) {
	n := newProbedNode(t, func(claim *resourceapi.ResourceClaim) {
		claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "train-0", UID: "pod-1"}}
	})
	for text, args := range map[string][]string{
		"reserved for pods/train-0":  {"conform", "train", "-n", "ml"},
		"there is none in":           {"conform", "other", "-n", "ml"},
		"is given twice":             {"conform", "train", "train", "-n", "ml"},
		"is not a valid timeout":     {"conform", "train", "--settle", "0s"},
		"is not a valid value":       {"conform", "train", "-o", "sarif"},
		"requirements have no name":  {"conform", "train", "-o", "name"},
		"at least 1 arg":             {"conform"},
		"has no device of driver no": {"conform", "train", "-n", "ml", "--driver", "no.example.com"},
	} {
		out, said, code := n.probe(args...)
		if code != cli.ExitUsage || out != "" || !strings.Contains(said, text) {
			t.Errorf("%v: exit code %d, %s%s", args, code, out, said)
		}
	}
	if n.driver.Prepared(n.claim.UID) != 0 {
		t.Error("it was prepared")
	}
}

// TestNodeProbeConformLeavesKubeletsClaims: the cluster may not say yet, or not any more,
// that a claim is in use, and the kubelet has it.
func TestNodeProbeConformLeavesKubeletsClaims(t *testing.T) {
	n := newProbedNode(t, func(claim *resourceapi.ResourceClaim) { claim.UID = "dab5ab50-d59a-42a6-af16-cfd4628c0f7a" })
	state, err := os.ReadFile("../../../test/testdata/nodeprobe/host/var/lib/kubelet/dra_manager_state")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(n.dir, "kubelet"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.dir, "kubelet", "dra_manager_state"), state, 0o600); err != nil {
		t.Fatal(err)
	}
	out, said, code := n.probe("conform", "train", "-n", "ml")
	if code != cli.ExitUsage || out != "" || !strings.Contains(said, "claim ml/train: the kubelet has it") {
		t.Errorf("exit code %d, %s%s", code, out, said)
	}
	if n.driver.Prepared(n.claim.UID) != 0 {
		t.Error("it was prepared")
	}
}
