// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"strings"
	"testing"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
)

// TestNamesOfPlannedClaims asks about pods whose claims are yet to be created from templates:
// nothing in the answer is a name for such a claim, since nobody would find it.
func TestNamesOfPlannedClaims(t *testing.T) {
	gpu, nic := tc.GPUs("gpu", 1), tc.Request("nic", "nic", 1)
	for name, test := range map[string]struct {
		one, two tc.RequestWrapper
		target   string
		want     []string
	}{
		"picked": {
			one: gpu, two: tc.GPUs("more", 1), target: "Pod/zed",
			want: []string{`"placement":{"node":"n1","claims":[{"namespace":"ml","name":"","podClaim":"ent",`},
		},
		"apart": {
			one: gpu, two: nic, target: "Pod/zed",
			want: []string{"No node has the devices of all requests: ent.gpu is available only on n1, net.nic is available only on n2."},
		},
		"competing": {
			one: gpu, two: tc.GPUs("more", 2), target: "Pod/zed",
			want: []string{
				"Node n1 has enough devices for each of request ent.gpu and request net.more alone, but not for all together.",
				"request 1 device instead of 2 in request net.more",
				`"name":"second"},"path":"spec.spec.devices.requests[0].exactly.count"`,
			},
		},
		"too many": {
			one: tc.GPUs("gpu", 33), two: gpu, target: "Pod/zed",
			want: []string{`"summary":"Request gpu: a claim can have at most 32 devices, this request asks for 33.`},
		},
		"selector that fails": {
			one: tc.GPUs("gpu", 1, `device.attributes["gpu.example.com"].nope == "x"`), two: gpu, target: "Pod/zed",
			want: []string{`"name":"first"},"path":"spec.spec.devices.requests[0].exactly.selectors[0].cel.expression"`},
		},
		"template": {
			one: tc.GPUs("gpu", 1, `device.attributes["gpu.example.com"].nope == "x"`), two: gpu, target: "ResourceClaimTemplate/first",
			want: []string{`"name":"first"},"path":"spec.spec.devices.requests[0].exactly.selectors[0].cel.expression"`},
		},
		"template of too many": {
			one: tc.GPUs("gpu", 33), two: gpu, target: "ResourceClaimTemplate/first",
			want: []string{`"summary":"Request gpu: a claim can have at most 32 devices, this request asks for 33.`},
		},
		"template that fits": {
			one: gpu, two: gpu, target: "ResourceClaimTemplate/first",
			want: []string{`"placement":{"node":"n1","claims":[{"namespace":"ml","name":"","devices":[`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := explainEach(t, tc.Cluster(
				tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(2)...), tc.Slice("n2-nic", "nic.example.com", "n2", tc.Device("nic-0")).OnNode("n2"),
				tc.Class("nic", "nic.example.com"), tc.Template("first", test.one), tc.Template("second", test.two),
				tc.Pod("zed", tc.OnlyTemplate, tc.UsingTemplate("ent", "first"), tc.UsingTemplate("net", "second")),
			), test.target)[test.target]
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			for _, invented := range []string{"zed-ent", "zed-net", "first-", "second-"} {
				if at := strings.Index(string(text), invented); at >= 0 {
					t.Errorf("a name that no claim has: %s", text[max(0, at-80):min(len(text), at+40)])
				}
			}
			for _, want := range test.want {
				if !strings.Contains(string(text), want) {
					t.Errorf("%s is not in %s", want, text)
				}
			}
		})
	}
}
