// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// Findings describe the NVIDIA GPUs of one node.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Findings struct {
	metav1.TypeMeta `json:",inline"`

	// Simulated names the simulated machine; empty for a real one.
	Simulated string `json:"simulated,omitempty"`
	// Library is the path of the NVML library on the node, if it was loaded.
	Library string `json:"library,omitempty"`
	// DriverVersion, CUDAVersion and NVMLVersion are from NVML, the second one as "12.4".
	DriverVersion string `json:"driverVersion,omitempty"`
	CUDAVersion   string `json:"cudaVersion,omitempty"`
	NVMLVersion   string `json:"nvmlVersion,omitempty"`
	// GPUs are the GPUs that NVML knows, in its order.
	GPUs []GPU `json:"gpus"`
	// Cliques are the parts of NVLink fabrics of several nodes that the GPUs are in, as in
	// the label nvidia.com/gpu.clique: one for a node that can be in a ComputeDomain, or
	// none.
	Cliques []string `json:"cliques,omitempty"`
	// IMEX describes the node's support for ComputeDomains, nil if it was not looked at.
	IMEX *IMEX `json:"imex,omitempty"`
	// PCI are the NVIDIA GPUs on the PCI bus, whether NVML knows them or not.
	PCI []PCIDevice `json:"pci,omitempty"`
	// Missing lists the values of the node as a whole that could not be read.
	Missing []Missing `json:"missing,omitempty"`

	Checks []node.Check `json:"checks"`
}

// Missing is a value that is not known, and why.
type Missing struct {
	// Value is the name of a JSON field beside the list.
	Value string `json:"value"`
	// Reason says why, in a few words.
	Reason string `json:"reason"`
	// Unsupported means that the GPU, or this version of the library, does not have the
	// value. Otherwise it could not be read.
	Unsupported bool `json:"unsupported,omitempty"`
	// NVML is NVML's error (nvmlReturn_t); absent for other reasons.
	NVML int `json:"nvml,omitempty"`
}

// PCIDevice is a GPU on the PCI bus.
type PCIDevice struct {
	// BusID is the address on the PCI bus.
	BusID string `json:"busID"`
	// Device is the PCI device ID, such as "0x2330".
	Device string `json:"device,omitempty"`
	// Driver is its kernel driver; empty for none.
	Driver string `json:"driver,omitempty"`
	// Root is the PCIe root complex, as the attribute
	// resource.kubernetes.io/pcieRoot names it.
	Root string `json:"root,omitempty"`
	// NUMANode is nil if there is none, or if it is not known.
	NUMANode *int `json:"numaNode,omitempty"`
	// Missing has the reasons for an empty root.
	Missing []Missing `json:"missing,omitempty"`
}

// GPU is one physical GPU. Fields that are empty or absent are in Missing, or do not apply.
type GPU struct {
	// Index is NVML's number of the GPU.
	Index int `json:"index"`
	// Minor is the N of /dev/nvidiaN, by which the DRA driver names the device.
	Minor *int `json:"minor,omitempty"`
	// UUID, Product, Brand and Architecture are from NVML, ComputeCapability is like "9.0".
	UUID              string `json:"uuid,omitempty"`
	Product           string `json:"product,omitempty"`
	Brand             string `json:"brand,omitempty"`
	Architecture      string `json:"architecture,omitempty"`
	ComputeCapability string `json:"computeCapability,omitempty"`
	// Virtualization is None, Passthrough, VGPU, HostVGPU or HostVSGA.
	Virtualization string `json:"virtualization,omitempty"`
	// MemoryBytes is all memory, in use or not.
	MemoryBytes *uint64 `json:"memoryBytes,omitempty"`
	// PCIBusID is the address on the PCI bus, PCIeRoot and NUMANode as in
	// [PCIDevice].
	PCIBusID string `json:"pciBusID,omitempty"`
	PCIeRoot string `json:"pcieRoot,omitempty"`
	NUMANode *int   `json:"numaNode,omitempty"`
	// AddressingMode is ATS, HMM or None; empty where the platform has none.
	AddressingMode string `json:"addressingMode,omitempty"`
	// ModuleID is the place of the GPU on its baseboard.
	ModuleID *int `json:"moduleID,omitempty"`
	// Serial is the number of the board, VBIOS the version of its firmware.
	Serial string `json:"serial,omitempty"`
	VBIOS  string `json:"vbios,omitempty"`

	// Operation is the current state of the GPU.
	Operation Operation `json:"operation,omitzero"`

	// ECC is absent for a GPU without error correction.
	ECC *ECC `json:"ecc,omitempty"`
	// Rows describes the memory rows that were replaced by spare ones.
	Rows *RemappedRows `json:"remappedRows,omitempty"`
	// XIDs are the errors that the kernel log still has of the GPU, oldest first.
	XIDs []XID `json:"xids,omitempty"`
	// NVLinks are the links to other GPUs and to switches.
	NVLinks []NVLink `json:"nvlinks,omitempty"`
	// Fabric is absent for a GPU that joins none.
	Fabric *Fabric `json:"fabric,omitempty"`

	// MIG is nil for a GPU that cannot be divided.
	MIG *MIG `json:"mig,omitempty"`
	// MIGDevices are the existing partitions, MIGProfiles the possible kinds.
	MIGDevices  []MIGDevice  `json:"migDevices,omitempty"`
	MIGProfiles []MIGProfile `json:"migProfiles,omitempty"`

	// Missing has the reason for each value that is not known.
	Missing []Missing `json:"missing,omitempty"`
}

// ECC is the state of error correction.
type ECC struct {
	// Current reports whether ECC is on.
	Current bool `json:"current"`
	// Pending is the mode after the next reset.
	Pending bool `json:"pending"`
	// Corrected and Uncorrected count errors since the driver was loaded; nil if NVML does
	// not report them.
	Corrected   *uint64 `json:"corrected,omitempty"`
	Uncorrected *uint64 `json:"uncorrected,omitempty"`
	// SRAM are the errors of the memory on the GPU itself, nil if NVML does not report
	// them.
	SRAM *SRAMErrors `json:"sram,omitempty"`
}

// RemappedRows counts replaced memory rows.
type RemappedRows struct {
	// Corrected and Uncorrected count rows by the kind of error.
	Corrected   int `json:"corrected"`
	Uncorrected int `json:"uncorrected"`
	// Pending means that a reset is needed, Failed that a row could not be replaced.
	Pending bool `json:"pending"`
	Failed  bool `json:"failed"`
}

// XID is an error of the GPU that the kernel driver reported.
type XID struct {
	// Code is the number of the error.
	Code int `json:"code"`
	// Message is the text of the log.
	Message string `json:"message"`
}

// NVLink is one link of a GPU.
type NVLink struct {
	// Link is its number, Active reports whether it is up.
	Link   int  `json:"link"`
	Active bool `json:"active"`
	// Remote is the PCI bus ID at the other end; empty for a link that is down.
	Remote string `json:"remote,omitempty"`
	// Errors are nil for a link that is down, and if NVML counts none.
	Errors *NVLinkErrors `json:"errors,omitempty"`
	// Missing has the reason if it is not known.
	Missing []Missing `json:"missing,omitempty"`
}

// Fabric is the progress of a GPU in joining an NVLink fabric.
type Fabric struct {
	// State is NotSupported, NotStarted, InProgress or Completed.
	State string `json:"state"`
	// Status is the result, "Success" or NVML's error; only if Completed.
	Status string `json:"status,omitempty"`
	// ClusterUUID and CliqueID name the part of the fabric that the GPU is in.
	ClusterUUID string `json:"clusterUUID,omitempty"`
	CliqueID    uint32 `json:"cliqueID"`
	// Health is nil if NVML does not report it.
	Health *FabricHealth `json:"health,omitempty"`
}

// MIG is the MIG mode of a GPU.
type MIG struct {
	// Current reports whether the GPU is divided.
	Current bool `json:"current"`
	// Pending is the mode after the next reset.
	Pending bool `json:"pending"`
}

// MIGProfile is a possible size of partition of a GPU.
type MIGProfile struct {
	// Name is nvidia-smi's name, such as 1g.10gb.
	Name string `json:"name"`
	// Index is NVML's number of the kind of profile, ID its number on the GPU.
	Index int `json:"index"`
	ID    int `json:"id"`
	// Slices counts the compute slices of an instance, Instances the instances that fit on
	// the GPU.
	Slices    int `json:"slices"`
	Instances int `json:"instances"`
	// MemoryMiB is the memory; Multiprocessors, CopyEngines, Decoders, Encoders,
	// JPEGEngines and OFAEngines count the units of each.
	MemoryMiB       uint64 `json:"memoryMiB"`
	Multiprocessors int    `json:"multiprocessors"`
	CopyEngines     int    `json:"copyEngines"`
	Decoders        int    `json:"decoders"`
	Encoders        int    `json:"encoders"`
	JPEGEngines     int    `json:"jpegEngines"`
	OFAEngines      int    `json:"ofaEngines"`
	// Placements are the possible placements on the GPU.
	Placements []Placement `json:"placements,omitempty"`
	// Missing has the reason if the name or placements are not known.
	Missing []Missing `json:"missing,omitempty"`
}

// Placement is a possible place of a partition, in memory slices.
type Placement struct {
	// Start is the first slice, Size the number of slices.
	Start int `json:"start"`
	Size  int `json:"size"`
}

// MIGDevice is an existing partition.
type MIGDevice struct {
	// UUID is from NVML, GPUInstanceID and ComputeInstanceID are its numbers for it.
	UUID              string    `json:"uuid"`
	GPUInstanceID     int       `json:"gpuInstanceID"`
	ComputeInstanceID int       `json:"computeInstanceID"`
	Placement         Placement `json:"placement"`
	// Profile is the name of the profile; empty if its compute instance does not use all of
	// its GPU instance, for which the DRA driver has no name.
	Profile string `json:"profile,omitempty"`
	// Partial is true if the compute instance is known to use only a part of its GPU
	// instance.
	Partial bool `json:"partial,omitempty"`
	// ProfileID is the profile of the GPU instance, see [MIGProfile.ID].
	ProfileID int `json:"profileID"`
	// Missing has the reason for each value that is not known.
	Missing []Missing `json:"missing,omitempty"`
}

// IMEX describes the node's support for ComputeDomains, besides its clique.
type IMEX struct {
	// ChannelMajor is the major number of channels, nil if the kernel has none.
	ChannelMajor *int `json:"channelMajor,omitempty"`
	// Channels counts the device files of channels on the node. Containers get theirs from
	// the DRA driver, even if the node has none.
	Channels int `json:"channels"`
	// Missing has the reasons for values that could not be read.
	Missing []Missing `json:"missing,omitempty"`
}

// Operation is the current state of a GPU: its load, and the modes that limit its use. The
// DRA driver asks for nothing of it.
type Operation struct {
	// UsedMemoryBytes is how much of the memory is in use, by whatever.
	UsedMemoryBytes *uint64 `json:"usedMemoryBytes,omitempty"`
	// ComputeMode is Default, ExclusiveThread, ExclusiveProcess or Prohibited: how many
	// programs may compute on the GPU.
	ComputeMode string `json:"computeMode,omitempty"`
	// Processes are the processes with a context on the GPU, by PID.
	Processes []Process `json:"processes,omitempty"`
	// TemperatureCelsius is the temperature of the GPU.
	TemperatureCelsius *int `json:"temperatureCelsius,omitempty"`
	// Slowdowns are the reasons for reduced clocks; none if it is not slowed down.
	Slowdowns []string `json:"slowdowns,omitempty"`
}

// Process is a program that uses a GPU.
type Process struct {
	// PID is its process ID on the node, Kind is Compute or Graphics.
	PID  int    `json:"pid"`
	Kind string `json:"kind"`
	// Name is the command from the kernel, PodUID the pod of its control group. They are
	// empty if they are not in the node's /proc.
	Name   string `json:"name,omitempty"`
	PodUID string `json:"podUID,omitempty"`
	// UsedMemoryBytes is the used memory.
	UsedMemoryBytes *uint64 `json:"usedMemoryBytes,omitempty"`
	// GPUInstanceID and ComputeInstanceID identify the MIG device; nil for a whole GPU.
	GPUInstanceID     *int `json:"gpuInstanceID,omitempty"`
	ComputeInstanceID *int `json:"computeInstanceID,omitempty"`
}

// Values of [Operation.ComputeMode] that matter.
const (
	computeProhibited       = "Prohibited"
	computeExclusiveProcess = "ExclusiveProcess"
	computeExclusiveThread  = "ExclusiveThread"
)

// Reasons in [Operation.Slowdowns] that a GPU should not have, as NVML's header describes
// them (nvmlClocksEventReasons).
const (
	slowHardware   = "HwSlowdown"
	slowSwThermal  = "SwThermalSlowdown"
	slowHwThermal  = "HwThermalSlowdown"
	slowPowerBrake = "HwPowerBrakeSlowdown"
)

// SRAMErrors counts errors of the memory on the GPU itself since the driver was loaded, and
// over its whole life. A GPU whose errors exceed the threshold has to be replaced.
type SRAMErrors struct {
	// Corrected and Uncorrected are since the driver was loaded, AggregateCorrected and
	// AggregateUncorrected over its life.
	Corrected            uint64 `json:"corrected"`
	Uncorrected          uint64 `json:"uncorrected"`
	AggregateCorrected   uint64 `json:"aggregateCorrected"`
	AggregateUncorrected uint64 `json:"aggregateUncorrected"`
	// ThresholdExceeded is NVML's verdict on the errors.
	ThresholdExceeded bool `json:"thresholdExceeded"`
}

// NVLinkErrors counts errors of a link. Links repair them: only their growth matters.
type NVLinkErrors struct {
	// Replay and Recovery count packets that were sent again and links that were trained
	// again, CRCFlit and CRCData wrong checksums. A counter that the GPU does not have is
	// nil.
	Replay   *uint64 `json:"replay,omitempty"`
	Recovery *uint64 `json:"recovery,omitempty"`
	CRCFlit  *uint64 `json:"crcFlit,omitempty"`
	CRCData  *uint64 `json:"crcData,omitempty"`
}

// FabricHealth is the fabric manager's report about the GPU. A value that the platform does
// not support is absent.
type FabricHealth struct {
	// Summary is Healthy, Unhealthy or LimitedCapacity.
	Summary string `json:"summary,omitempty"`
	// Mask is the number behind the other values.
	Mask uint32 `json:"mask"`
	// DegradedBandwidth, RouteRecovery, RouteUnhealthy and AccessTimeoutRecovery are
	// conditions of the fabric.
	DegradedBandwidth     *bool `json:"degradedBandwidth,omitempty"`
	RouteRecovery         *bool `json:"routeRecovery,omitempty"`
	RouteUnhealthy        *bool `json:"routeUnhealthy,omitempty"`
	AccessTimeoutRecovery *bool `json:"accessTimeoutRecovery,omitempty"`
	// IncorrectConfiguration is None, or the error.
	IncorrectConfiguration string `json:"incorrectConfiguration,omitempty"`
}

// faults describes the conditions that are not healthy.
func (h *FabricHealth) faults() []string {
	var faults []string
	for _, each := range []struct {
		value *bool
		text  string
	}{
		{h.DegradedBandwidth, "bandwidth is degraded"},
		{h.RouteRecovery, "a route is being recovered"},
		{h.RouteUnhealthy, "a route is unhealthy"},
		{h.AccessTimeoutRecovery, "it recovers from a timeout of memory access"},
	} {
		if each.value != nil && *each.value {
			faults = append(faults, each.text)
		}
	}
	if c := h.IncorrectConfiguration; c != "" && c != fabricConfigured {
		faults = append(faults, "incorrect configuration: "+c)
	}
	return faults
}

const (
	fabricHealthy    = "Healthy"
	fabricConfigured = "None"
)

// extras returns values that the DRA driver does not read, so that it works without them.
func extras() []string {
	return []string{"serial", "vbios", "computeMode", "processes", "temperatureCelsius", "slowdowns", "ecc.sram", "nvlinks.errors", "fabric.health"}
}

// lacks records that a value is not known.
func lacks(list *[]Missing, value, reason string) {
	*list = append(*list, Missing{Value: value, Reason: reason})
}

// missing returns the reason for a value that is not known.
func missing(list []Missing, value string) *Missing {
	for i := range list {
		if list[i].Value == value {
			return &list[i]
		}
	}
	return nil
}
