// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

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
