// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
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
		"not told":        {GPU{Missing: []Missing{{Value: "ecc"}, {Value: "xids"}}}, node.OK, "nothing was told about ECC, XIDs"},
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
