// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package nodeprobe_test

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
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
