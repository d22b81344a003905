// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/cdi"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

func nodeReport() *nodeprobe.Report {
	boot := node.Bad("host/boot", "", "the boot ID is another one")
	boot.Found, boot.Required = "boot-1", "boot-2"
	var specs []node.Check
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		specs = append(specs, node.Good("cdi/specs", "/etc/cdi/"+name+".json", "1 device"))
	}
	return &nodeprobe.Report{
		Node:    "node-17",
		Paths:   nodeprobe.Paths{Root: "/host", Kubelet: "/var/lib/kubelet", CDI: node.DefaultCDI()},
		Host:    []node.Check{node.Good("host/root", "/", "the root of the node is at /host"), boot},
		Plugins: &driver.Findings{Checks: []node.Check{node.NotKnown("plugins/registry", "/var/lib/kubelet/plugins_registry", "no permission\x1b[2J to look")}},
		CDI:     &cdi.Findings{Checks: specs},
		Health:  &driver.Health{},
	}
}

func TestNodeReport(t *testing.T) {
	const want = `Node node-17: 1 problem, 1 unknown, 6 OK
  root /host, kubelet /var/lib/kubelet, CDI /etc/cdi and /var/run/cdi

host     ✓  the root of the node is at /host
         ✗  the boot ID is another one
            found     boot-1
            required  boot-2
plugins  ?  /var/lib/kubelet/plugins_registry: no permission\x1b[2J to look
cdi      ✓  /etc/cdi/a.json: 1 device
         ✓  /etc/cdi/b.json: 1 device
         ✓  /etc/cdi/c.json: 1 device
         ✓  and 2 more of this kind
health   -  nothing to check
`
	var out bytes.Buffer
	if err := writeReport(&out, nodeReport(), render.Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := writeReport(&out, nodeReport(), render.Options{Wide: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "/etc/cdi/e.json") {
		t.Errorf("wide does not show all:\n%s", out.String())
	}
}
