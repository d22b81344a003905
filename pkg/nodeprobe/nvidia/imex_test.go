// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

func TestComputeDomainOfNode(t *testing.T) {
	const channels = "Character devices:\n195 nvidia\n234 nvidia-caps-imex-channels\n"
	in := func(clusterUUID string, clique uint32) GPU {
		return GPU{Fabric: &Fabric{State: fabricCompleted, Status: fabricSuccess, ClusterUUID: clusterUUID, CliqueID: clique}}
	}
	for name, test := range map[string]struct {
		gpus    []GPU
		devices string
		state   node.State
		text    string
	}{
		"no fabric":          {[]GPU{{}}, "", "", ""},
		"a fabric of a node": {[]GPU{in("", 0)}, "", "", ""},
		"not joined":         {[]GPU{{Fabric: &Fabric{State: fabricInProgress, ClusterUUID: "a"}}}, channels, "", ""},
		"one clique":         {[]GPU{in("a", 3), in("a", 3)}, channels, node.OK, "clique a.3"},
		"two cliques":        {[]GPU{in("a", 3), in("a", 4)}, channels, node.Problem, "2 cliques"},
		"two clusters":       {[]GPU{in("a", 3), in("b", 3)}, channels, node.Problem, "a.3, b.3"},
		"no channels":        {[]GPU{in("a", 3)}, "195 nvidia\n", node.Problem, "no nvidia-caps-imex-channels"},
		"no /proc/devices":   {[]GPU{in("a", 3)}, "", node.Unknown, "is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, dir := range []string{"proc", "dev/nvidia-caps-imex-channels/channel0", "dev/nvidia-caps-imex-channels/channel1"} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if test.devices != "" {
				if err := os.WriteFile(filepath.Join(root, "proc/devices"), []byte(test.devices), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f := &Findings{GPUs: test.gpus, IMEX: lookAtIMEX(node.NewHost(root, "", nil))}
			if f.IMEX.Channels != 2 {
				t.Errorf("%d channels", f.IMEX.Channels)
			}
			checks := domainChecks(f)
			if test.state == "" {
				if len(checks) > 0 {
					t.Errorf("%+v", checks)
				}
				return
			}
			if len(checks) != 1 || checks[0].State != test.state || !strings.Contains(checks[0].Message, test.text) {
				t.Errorf("%+v", checks)
			}
		})
	}
}
