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

func TestGPUChecks(t *testing.T) {
	many := uint64(3)
	for name, test := range map[string]struct {
		gpu   GPU
		state node.State
		want  string
	}{
		"in order":        {GPU{}, node.OK, "nothing wrong found"},
		"not supported":   {GPU{Missing: []Missing{{Value: "ecc", NVML: 3, Unsupported: true}, {Value: "xids", Unsupported: true}}}, node.OK, "nothing is known about ECC, XIDs"},
		"no kernel log":   {GPU{Missing: []Missing{{Value: "ecc", Unsupported: true}, {Value: "xids", Reason: "no permission"}}}, node.Unknown, "its errors in the kernel log are not known: no permission"},
		"no NUMA node":    {GPU{Missing: []Missing{{Value: "numaNode", Reason: "there is none"}}}, node.OK, "nothing wrong"},
		"half lost":       {GPU{UUID: "GPU-1", Missing: []Missing{{Value: "pciBusID", NVML: 15, Reason: "GPU is lost"}, {Value: "ecc", NVML: 15, Reason: "GPU is lost"}}}, node.Problem, "NVML does not tell ecc, pciBusID: GPU is lost"},
		"not permitted":   {GPU{Missing: []Missing{{Value: "ecc.corrected", NVML: 4, Reason: "Insufficient Permissions"}}}, node.Unknown, "NVML does not tell ecc.corrected: Insufficient Permissions"},
		"an old driver":   {GPU{Missing: []Missing{{Value: "fabric", NVML: 13, Reason: "Function Not Found"}}}, node.Unknown, "NVML does not tell fabric"},
		"unknown brand":   {GPU{Missing: []Missing{{Value: "brand", Reason: "error interpreting device brand"}}}, node.Problem, "NVML does not tell brand"},
		"a profile":       {GPU{MIGProfiles: []MIGProfile{{Name: "1g.10gb", Missing: []Missing{{Value: "placements", NVML: 999, Reason: "Unknown Error"}}}}}, node.Problem, "NVML does not tell placements of MIG profile 1g.10gb: Unknown Error"},
		"a MIG device":    {GPU{MIGDevices: []MIGDevice{{UUID: "MIG-1", Missing: []Missing{{Value: "profileID", NVML: 15, Reason: "GPU is lost"}}}}}, node.Problem, "NVML does not tell profileID of MIG device MIG-1: GPU is lost"},
		"an NVLink":       {GPU{NVLinks: []NVLink{{Link: 2, Active: true, Missing: []Missing{{Value: "remote", NVML: 15, Reason: "GPU is lost"}}}}}, node.Problem, "NVML does not tell remote of NVLink 2: GPU is lost"},
		"no handle":       {GPU{Missing: []Missing{{Value: "uuid", NVML: 4, Reason: "Insufficient Permissions"}}}, node.Unknown, "NVML does not answer for it: Insufficient Permissions"},
		"lost":            {GPU{Missing: []Missing{{Value: "uuid", Reason: "GPU is lost"}}}, node.Problem, "GPU is lost"},
		"memory errors":   {GPU{ECC: &ECC{Current: true, Pending: true, Uncorrected: &many}}, node.Problem, "3 memory errors that ECC could not correct"},
		"rows":            {GPU{Rows: &RemappedRows{Failed: true}}, node.Problem, "could not be replaced"},
		"XID":             {GPU{XIDs: []XID{{13, "x"}, {79, "fallen off"}}}, node.Problem, "1 error in the kernel log, the last one 79: fallen off"},
		"a program":       {GPU{XIDs: []XID{{31, "a page fault"}}}, node.OK, "nothing wrong found"},
		"fabric":          {GPU{Fabric: &Fabric{State: fabricInProgress}}, node.Problem, "has not joined the NVLink fabric yet"},
		"fabric failed":   {GPU{Fabric: &Fabric{State: fabricCompleted, Status: "Timeout"}}, node.Problem, "failed: Timeout"},
		"no fabric":       {GPU{Fabric: &Fabric{State: fabricNotSupported}}, node.OK, "nothing wrong"},
		"a link down":     {GPU{NVLinks: []NVLink{{Active: true}, {}}}, node.Problem, "1 of 2 NVLinks are down"},
		"links not used":  {GPU{NVLinks: []NVLink{{}, {}}}, node.OK, "nothing wrong"},
		"MIG after reset": {GPU{MIG: &MIG{Pending: true}}, node.Problem, "MIG is off, and will be on after a reset"},
		"MIG unused":      {GPU{MIG: &MIG{Current: true, Pending: true}}, node.Unknown, "there is no MIG device"},
	} {
		checks := gpuChecks(&test.gpu)
		if len(checks) != 1 || checks[0].State != test.state || !strings.Contains(checks[0].Message, test.want) {
			t.Errorf("%s: %+v, want %s with %q", name, checks, test.state, test.want)
		}
	}
}

func TestCompareWithPCI(t *testing.T) {
	pci := []PCIDevice{{BusID: "0000:3b:00.0", Driver: "nvidia"}, {BusID: "0000:5e:00.0", Driver: "vfio-pci"}, {BusID: "0000:86:00.0", Driver: "nvidia"}, {BusID: "0000:af:00.0"}}
	checks := compareWithPCI([]GPU{{PCIBusID: "0000:3b:00.0"}}, pci)
	var got []string
	for _, c := range checks {
		got = append(got, string(c.State)+" "+c.Message)
	}
	want := []string{
		"OK GPU 0000:5e:00.0 is bound to vfio-pci, so NVML does not know it",
		"Problem GPU 0000:86:00.0 is bound to the NVIDIA driver, and NVML does not know it",
		"Problem GPU 0000:af:00.0 is bound to no kernel driver",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
}

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
