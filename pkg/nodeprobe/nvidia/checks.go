// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

const (
	// nvidiaModule is the kernel driver through which NVML sees a GPU.
	nvidiaModule = "nvidia"
	// virtualGPU is a GPU that a hypervisor has made up for this machine.
	virtualGPU = "VGPU"

	fabricNotSupported = "NotSupported"
	fabricNotStarted   = "NotStarted"
	fabricInProgress   = "InProgress"
	fabricCompleted    = "Completed"
	fabricSuccess      = "Success"
)

// compareWithPCI finds GPUs that are on the bus and that NVML does not know: one
// that has failed, or one that another driver has, as for virtual machines.
func compareWithPCI(gpus []GPU, pci []PCIDevice) []node.Check {
	var checks []node.Check
	for _, device := range pci {
		if slices.ContainsFunc(gpus, func(g GPU) bool { return g.PCIBusID == device.BusID }) {
			continue
		}
		path := pciDevices + "/" + device.BusID
		switch device.Driver {
		case nvidiaModule:
			checks = append(checks, node.Bad("gpus/pci", path, "GPU %s is bound to the NVIDIA driver, and NVML does not know it", device.BusID))
		case "":
			checks = append(checks, node.Bad("gpus/pci", path, "GPU %s is bound to no kernel driver", device.BusID))
		default:
			checks = append(checks, node.Good("gpus/pci", path, "GPU %s is bound to %s, so NVML does not know it", device.BusID, device.Driver))
		}
	}
	if len(checks) == 0 {
		checks = append(checks, node.Good("gpus/pci", pciDevices, "NVML knows each of %s on the bus", node.Counted(len(pci), "GPU")))
	}
	return checks
}

// gpuChecks judges one GPU.
func gpuChecks(g *GPU) []node.Check {
	var checks []node.Check
	name := func(what string) string { return fmt.Sprintf("gpus/%d/%s", g.Index, what) }
	bad := func(what, format string, args ...any) {
		checks = append(checks, node.Bad(name(what), "", "GPU %d: %s", g.Index, fmt.Sprintf(format, args...)))
	}
	if gone := missing(g.Missing, "uuid"); gone != nil {
		bad("nvml", "NVML does not answer for it: %s", gone.Reason)
		return checks
	}
	if g.ECC != nil && g.ECC.Uncorrected != nil && *g.ECC.Uncorrected > 0 {
		bad("ecc", "%s that ECC could not correct since the driver was loaded", node.Counted(int(*g.ECC.Uncorrected), "memory error"))
	}
	if g.ECC != nil && g.ECC.Current != g.ECC.Pending {
		bad("ecc", "ECC is %s, and will be %s after a reset", onOff(g.ECC.Current), onOff(g.ECC.Pending))
	}
	if g.Rows != nil && g.Rows.Failed {
		bad("rows", "a broken row of memory could not be replaced")
	}
	if g.Rows != nil && g.Rows.Pending {
		bad("rows", "a broken row of memory is replaced only after a reset")
	}
	if errors := slices.DeleteFunc(slices.Clone(g.XIDs), XID.ofApplication); len(errors) > 0 {
		last := errors[len(errors)-1]
		bad("xid", "%s in the kernel log, the last one %d: %s", node.Counted(len(errors), "error"), last.Code, last.Message)
	}
	if f := g.Fabric; f != nil {
		switch {
		case f.State == fabricCompleted && f.Status != fabricSuccess:
			bad("fabric", "joining the NVLink fabric failed: %s", f.Status)
		case f.State == fabricNotStarted, f.State == fabricInProgress:
			bad("fabric", "it has not joined the NVLink fabric yet: %s", f.State)
		}
	}
	if down := slices.DeleteFunc(slices.Clone(g.NVLinks), func(l NVLink) bool { return l.Active }); len(down) > 0 && len(down) < len(g.NVLinks) {
		bad("nvlink", "%d of %s are down", len(down), node.Counted(len(g.NVLinks), "NVLink"))
	}
	if g.MIG != nil && g.MIG.Current != g.MIG.Pending {
		bad("mig", "MIG is %s, and will be %s after a reset", onOff(g.MIG.Current), onOff(g.MIG.Pending))
	}
	if g.MIG != nil && g.MIG.Current && len(g.MIGDevices) == 0 && missing(g.Missing, "migDevices") == nil {
		checks = append(checks, node.Unseen(name("mig"), "", "GPU %d: MIG is on and there is no MIG device; that is right only if the driver makes them (its feature gate DynamicMIG)", g.Index))
	}
	if len(checks) == 0 {
		checks = append(checks, node.Good(fmt.Sprintf("gpus/%d", g.Index), "", "GPU %d: %s", g.Index, nothingWrong(g)))
	}
	return checks
}

// nothingWrong says how much was looked at.
func nothingWrong(g *GPU) string {
	var unseen []string
	for _, each := range []struct{ value, name string }{{"ecc", "ECC"}, {"remappedRows", "memory rows"}, {"xids", "XIDs"}, {"fabric", "fabric"}, {"nvlinks", "NVLink"}} {
		if missing(g.Missing, each.value) != nil {
			unseen = append(unseen, each.name)
		}
	}
	if len(unseen) == 0 {
		return "nothing wrong found"
	}
	return "nothing wrong found, but nothing was told about " + strings.Join(unseen, ", ")
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
