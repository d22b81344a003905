// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

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
