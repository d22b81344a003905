// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"bytes"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// TestConformanceMarkdown draws each kind of result and of reply, some of a driver that
// writes Markdown and HTML.
func TestConformanceMarkdown(t *testing.T) {
	one := driver.Claim{Namespace: "drivers", Name: "one", UID: "3b0e7a51-5b0f-4f1e-9d8e-2f8c54a0c6d1"}
	const prepare, evil = "NodePrepareResources", "a|b\n`c` <script>*x* [y](z) \x1b[2J"
	c := &driver.Conformance{
		Driver: "gpu.example.com",
		Software: &driver.Software{
			Images: []string{"registry.example.com/gpu:v7", "a|`b"}, Services: []string{"v1.DRAPlugin"},
			Kubernetes: "v1.37.1", Kubelet: "v1.37.1", ContainerRuntime: "containerd://2.2.0", OperatingSystem: "linux/amd64", Program: "v0.2.0",
		},
		Claims: []driver.Claim{one},
		Results: []driver.Conformity{
			{Name: "conform/slices", State: node.OK, Message: "1 pool with 2 devices", Source: "KEP-4381"},
			{
				Name: "conform/prepare", State: node.OK, Message: "the reply has the 1 device that the claim has", Source: "KEP-4381",
				Exchanges: []driver.Exchange{{Service: "v1.DRAPlugin", Method: prepare, Claims: []driver.ClaimReply{{Claim: one, Replied: true, Devices: []driver.PreparedDevice{
					{Pool: "node-1", Device: "gpu-0", Requests: []string{"gpu"}, CDI: []driver.CDIDevice{{ID: "example.com/gpu=gpu-0"}}},
					{Pool: "node-1", Device: "gpu-1", ShareID: "a1"},
				}}}}},
			},
			{Name: "conform/prepare-replaced", State: node.Problem, Message: evil, Source: "k8s.io/x_y", Exchanges: []driver.Exchange{
				{Service: "v1.DRAPlugin", Method: prepare, Error: evil, Claims: []driver.ClaimReply{{Claim: one}}},
				{Service: "v1.DRAPlugin", Method: "NodeUnprepareResources", Claims: []driver.ClaimReply{{Claim: one, Replied: true}}},
				{Service: "v1.DRAPlugin", Method: prepare, Claims: []driver.ClaimReply{{Claim: one}, {Claim: one, Replied: true, Error: "no"}}},
			}},
			{Name: "conform/health", State: node.Unknown, Message: "which a driver may choose", Source: "KEP-4680"},
			{Name: "conform/restart", State: node.Unknown, Message: "not tried: nobody said how", Source: "KEP-4381", Needs: driver.NeedRestart},
		},
	}
	golden.Assert(t, drawNode(t, func(b *bytes.Buffer) error { return writeConformanceMarkdown(b, c) }), "node-conform.golden")
	// Little is known, and nothing was left out.
	c = &driver.Conformance{Driver: "gpu.example.com", Results: c.Results[:1]}
	golden.Assert(t, drawNode(t, func(b *bytes.Buffer) error { return writeConformanceMarkdown(b, c) }), "node-conform-short.golden")
}

// TestEachNeedSaysHow finds a need without a way to give it.
func TestEachNeedSaysHow(t *testing.T) {
	for _, need := range []driver.Need{
		driver.NeedDriver, driver.NeedPrepared, driver.NeedUnprepared, driver.NeedSecond, driver.NeedUnallocated, driver.NeedForeign, driver.NeedRestart, driver.NeedStop, driver.NeedCluster,
	} {
		if toTry(need) == "" {
			t.Errorf("nothing says how to give %s", need)
		}
	}
}
