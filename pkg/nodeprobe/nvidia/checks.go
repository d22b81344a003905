// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// compareWithPCI finds GPUs on the PCI bus that NVML does not know: failed ones, or GPUs
// that another driver has, as for virtual machines.
func compareWithPCI(gpus []GPU, pci []PCIDevice) []node.Check {
	var checks []node.Check
	for _, device := range pci {
		if slices.ContainsFunc(gpus, func(g GPU) bool { return g.PCIBusID == device.BusID }) {
			continue
		}
		path := pciDevices + "/" + device.BusID
		switch device.Driver {
		case nvidiaModule:
			if i := slices.IndexFunc(gpus, func(g GPU) bool { return g.PCIBusID == "" }); i >= 0 {
				checks = append(checks, node.NotKnown("gpus/pci", path, "whether NVML knows GPU %s is not known: it does not tell the bus ID of GPU %d", device.BusID, gpus[i].Index))
				continue
			}
			checks = append(checks, node.Bad("gpus/pci", path, "GPU %s is bound to the NVIDIA driver, and NVML does not know it", device.BusID))
		case "":
			checks = append(checks, node.Bad("gpus/pci", path, "GPU %s is bound to no kernel driver", device.BusID))
		default:
			checks = append(checks, node.Good("gpus/pci", path, "GPU %s is bound to %s, so NVML does not know it", device.BusID, device.Driver))
		}
	}
	if len(checks) == 0 {
		checks = append(checks, node.Good("gpus/pci", pciDevices, "NVML knows each of %s on the bus", english.Count(len(pci), "GPU")))
	}
	return checks
}

// gpuChecks checks one GPU.
func gpuChecks(g *GPU) []node.Check {
	var checks []node.Check
	name := func(what string) string { return fmt.Sprintf("gpus/%d/%s", g.Index, what) }
	bad := func(what, format string, args ...any) {
		checks = append(checks, node.Bad(name(what), "", "GPU %d: %s", g.Index, fmt.Sprintf(format, args...)))
	}
	if gone := missing(g.Missing, "uuid"); gone != nil {
		return append(checks, node.Check{Name: name("nvml"), State: gone.state(), Message: fmt.Sprintf("GPU %d: NVML does not answer for it: %s", g.Index, gone.Reason)})
	}
	checks = append(checks, untold(name("nvml"), fmt.Sprintf("GPU %d: NVML", g.Index), g.failures())...)
	if gone := missing(g.Missing, "xids"); gone != nil && !gone.Unsupported {
		checks = append(checks, node.NotKnown(name("xid"), "", "GPU %d: its errors in the kernel log are not known: %s", g.Index, gone.Reason))
	}
	if g.ECC != nil && g.ECC.Uncorrected != nil && *g.ECC.Uncorrected > 0 {
		bad("ecc", "%s that ECC could not correct since the driver was loaded", english.Count(int(*g.ECC.Uncorrected), "memory error"))
	}
	if g.ECC != nil && g.ECC.Current != g.ECC.Pending {
		bad("ecc", "ECC is %s, and will be %s after a reset", onOff(g.ECC.Current), onOff(g.ECC.Pending))
	}
	if g.ECC != nil && g.ECC.SRAM != nil && g.ECC.SRAM.ThresholdExceeded {
		bad("ecc", "the errors of its SRAM have passed the threshold: it is to be replaced")
	}
	if g.Rows != nil && g.Rows.Failed {
		bad("rows", "a broken row of memory could not be replaced")
	}
	if g.Rows != nil && g.Rows.Pending {
		bad("rows", "a broken row of memory is replaced only after a reset")
	}
	if errors := slices.DeleteFunc(slices.Clone(g.XIDs), XID.ofApplication); len(errors) > 0 {
		last := errors[len(errors)-1]
		bad("xid", "%s in the kernel log, the last one %d: %s", english.Count(len(errors), "error"), last.Code, last.Message)
	}
	if f := g.Fabric; f != nil {
		switch {
		case f.State == fabricCompleted && f.Status != fabricSuccess:
			bad("fabric", "joining the NVLink fabric failed: %s", f.Status)
		case f.State == fabricNotStarted, f.State == fabricInProgress:
			bad("fabric", "it has not joined the NVLink fabric yet: %s", f.State)
		}
		if h := f.Health; h != nil {
			faults := h.faults()
			if h.Summary != "" && h.Summary != fabricHealthy {
				faults = slices.Insert(faults, 0, h.Summary)
			}
			if len(faults) > 0 {
				bad("fabric", "the NVLink fabric is not healthy: %s", strings.Join(faults, ", "))
			}
		}
	}
	if down := slices.DeleteFunc(slices.Clone(g.NVLinks), func(l NVLink) bool { return l.Active }); len(down) > 0 && len(down) < len(g.NVLinks) {
		bad("nvlink", "%d of %s are down", len(down), english.Count(len(g.NVLinks), "NVLink"))
	}
	if g.MIG != nil && g.MIG.Current != g.MIG.Pending {
		bad("mig", "MIG is %s, and will be %s after a reset", onOff(g.MIG.Current), onOff(g.MIG.Pending))
	}
	for i := range g.MIGDevices {
		if d := &g.MIGDevices[i]; d.Partial {
			bad("mig", "the compute instance of MIG device %s takes a part of its GPU instance: the DRA driver has no name for that, and does not start", d.UUID)
		}
	}
	if g.MIG != nil && g.MIG.Current && len(g.MIGDevices) == 0 && missing(g.Missing, "migDevices") == nil {
		checks = append(checks, node.NotKnown(name("mig"), "", "GPU %d: MIG is on and there is no MIG device; that is right only if the driver makes them (its feature gate DynamicMIG)", g.Index))
	}
	checks = append(checks, operationChecks(g, name)...)
	if len(checks) == 0 {
		checks = append(checks, node.Good(fmt.Sprintf("gpus/%d", g.Index), "", "GPU %d: %s", g.Index, nothingWrong(g)))
	}
	return checks
}

// operationChecks checks for conditions that keep programs from the GPU, or slow them down,
// at the moment.
func operationChecks(g *GPU, name func(string) string) []node.Check {
	var checks []node.Check
	switch o := &g.Operation; o.ComputeMode {
	case computeProhibited:
		checks = append(checks, node.Bad(name("compute-mode"), "", "GPU %d: its compute mode is %s: no program can compute on it", g.Index, o.ComputeMode))
	case computeExclusiveProcess, computeExclusiveThread:
		// MPS requires it.
		checks = append(checks, node.NotKnown(name("compute-mode"), "", "GPU %d: its compute mode is %s: a second process on it fails; that is right only under MPS, or if each pod has one process", g.Index, o.ComputeMode))
	}
	// A busy GPU is normally limited by its power.
	slow := slices.DeleteFunc(slices.Clone(g.Operation.Slowdowns), func(reason string) bool {
		return !slices.Contains([]string{slowHardware, slowSwThermal, slowHwThermal, slowPowerBrake}, reason)
	})
	if len(slow) > 0 {
		checks = append(checks, node.Bad(name("slowdown"), "", "GPU %d: it is slowed down now: %s", g.Index, strings.Join(slow, ", ")))
	}
	return checks
}

// Errors of NVML that say nothing about the GPU: a missing right, and a driver that is
// older than the library.
const (
	noPermission    = 4
	noSuchFunction  = 13
	anotherArgument = 25
)

// state returns the state of a check for a value that the GPU has and NVML could not read.
// The DRA driver does not start then.
func (m *Missing) state() node.State {
	if slices.Contains(extras(), m.Value) {
		return node.Unknown
	}
	switch m.NVML {
	case noPermission, noSuchFunction, anotherArgument:
		return node.Unknown
	default:
		return node.Problem
	}
}

// failures returns the values of the node that NVML has and could not read.
func (f *Findings) failures() []Missing { return failed(f.Missing, "") }

// failures returns the values that NVML has of the GPU and could not read. Its place in the
// machine and its errors come from the kernel.
func (g *GPU) failures() []Missing {
	all := slices.DeleteFunc(failed(g.Missing, ""), func(m Missing) bool {
		return slices.Contains([]string{"pcieRoot", "numaNode", "xids"}, m.Value)
	})
	for i := range g.NVLinks {
		all = append(all, failed(g.NVLinks[i].Missing, fmt.Sprintf(" of NVLink %d", g.NVLinks[i].Link))...)
	}
	for i := range g.MIGProfiles {
		all = append(all, failed(g.MIGProfiles[i].Missing, " of MIG profile "+cmp.Or(g.MIGProfiles[i].Name, fmt.Sprintf("ID %d", g.MIGProfiles[i].ID)))...)
	}
	for i := range g.MIGDevices {
		own := slices.DeleteFunc(slices.Clone(g.MIGDevices[i].Missing), func(m Missing) bool { return m.NVML == 0 })
		all = append(all, failed(own, " of MIG device "+cmp.Or(g.MIGDevices[i].UUID, fmt.Sprint(i)))...)
	}
	return all
}

// failed returns the values that exist and could not be read, with their owner.
func failed(list []Missing, of string) []Missing {
	var all []Missing
	for _, m := range list {
		if !m.Unsupported {
			m.Value += of
			all = append(all, m)
		}
	}
	return all
}

// untold returns a check for each reason why who did not report values.
func untold(name, who string, failures []Missing) []node.Check {
	var checks []node.Check
	for len(failures) > 0 {
		first := failures[0]
		var values []string
		failures = slices.DeleteFunc(failures, func(m Missing) bool {
			same := m.Reason == first.Reason && m.NVML == first.NVML
			if same {
				values = append(values, m.Value)
			}
			return same
		})
		slices.Sort(values)
		checks = append(checks, node.Check{Name: name, State: first.state(), Message: fmt.Sprintf("%s does not tell %s: %s", who, node.Sample(values), first.Reason)})
	}
	return checks
}

// nothingWrong says how much was checked.
func nothingWrong(g *GPU) string {
	var unknown []string
	for _, each := range []struct{ value, name string }{{"ecc", "ECC"}, {"remappedRows", "memory rows"}, {"xids", "XIDs"}, {"fabric", "fabric"}, {"nvlinks", "NVLink"}} {
		if missing(g.Missing, each.value) != nil {
			unknown = append(unknown, each.name)
		}
	}
	if len(unknown) == 0 {
		return "nothing wrong found"
	}
	return "nothing wrong found, but nothing is known about " + strings.Join(unknown, ", ")
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// Files of the kernel about IMEX, through which programs share memory over the NVLink
// fabric of several nodes.
const (
	procDevices  = "/proc/devices"
	imexDevice   = "nvidia-caps-imex-channels"
	imexChannels = "/dev/" + imexDevice
)

// cliques returns the cliques of the GPUs, in the form of the label nvidia.com/gpu.clique.
// A GPU of a fabric of one node has no cluster, and no clique.
func cliques(gpus []GPU) []string {
	var all []string
	for i := range gpus {
		if f := gpus[i].Fabric; f != nil && f.ClusterUUID != "" && f.State == fabricCompleted && f.Status == fabricSuccess {
			all = append(all, fmt.Sprintf("%s.%d", f.ClusterUUID, f.CliqueID))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// lookAtIMEX reads the state of IMEX from the kernel and the node.
func lookAtIMEX(host *node.Host) *IMEX {
	imex := &IMEX{}
	devices, err := host.ReadFile(procDevices, maxProcFile)
	if err != nil {
		lacks(&imex.Missing, "channelMajor", err.Error())
	}
	for line := range strings.Lines(string(devices)) {
		fields := strings.Fields(line)
		if len(fields) != 2 || fields[1] != imexDevice {
			continue
		}
		if major, err := strconv.Atoi(fields[0]); err == nil {
			imex.ChannelMajor = &major
		}
	}
	// Most nodes have no such directory.
	entries, _ := host.ReadDir(imexChannels)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "channel") {
			imex.Channels++
		}
	}
	return imex
}

// domainChecks checks whether the node can be in a ComputeDomain. A node whose GPUs are in
// no clique need not (cmd/compute-domain-kubelet-plugin/nvlib.go of the driver).
func domainChecks(f *Findings) []node.Check {
	const name = "gpus/compute-domain"
	all := cliques(f.GPUs)
	switch {
	case len(all) == 0:
		return nil
	case len(all) > 1:
		return []node.Check{node.Bad(name, "", "the GPUs are in %s, and have to be in one: the compute domain driver does not start: %s", english.Count(len(all), "clique"), node.Sample(all))}
	case f.IMEX == nil:
		return nil
	case f.IMEX.ChannelMajor == nil && len(f.IMEX.Missing) > 0:
		return []node.Check{node.NotKnown(name, procDevices, "the GPUs are in clique %s, and whether the kernel has IMEX channels is not known: %s", all[0], f.IMEX.Missing[0].Reason)}
	case f.IMEX.ChannelMajor == nil:
		return []node.Check{node.Bad(name, procDevices, "the GPUs are in clique %s, and the kernel has no %s: the compute domain driver does not start", all[0], imexDevice)}
	}
	return []node.Check{node.Good(name, "", "the GPUs are in clique %s, and the kernel has IMEX channels", all[0])}
}

const (
	// nvidiaModule is the kernel driver through which NVML sees a GPU.
	nvidiaModule = "nvidia"
	// virtualGPU is a GPU that a hypervisor provides to this machine.
	virtualGPU = "VGPU"

	fabricNotSupported = "NotSupported"
	fabricNotStarted   = "NotStarted"
	fabricInProgress   = "InProgress"
	fabricCompleted    = "Completed"
	fabricSuccess      = "Success"
)
