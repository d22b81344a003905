// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && nvml

package nvidia

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// operation reads the current state of the GPU.
func (r *nvmlReader) operation(g *GPU, handle nvml.Device) {
	m := &g.Missing
	g.Serial = value(ask(r, m, "serial", "nvmlDeviceGetSerial", handle.GetSerial))
	g.VBIOS = value(ask(r, m, "vbios", "nvmlDeviceGetVbiosVersion", handle.GetVbiosVersion))
	o := &g.Operation
	if mode := ask(r, m, "computeMode", "nvmlDeviceGetComputeMode", handle.GetComputeMode); mode != nil {
		o.ComputeMode = computeMode(*mode)
	}
	if degrees := ask(r, m, "temperatureCelsius", "nvmlDeviceGetTemperature", func() (uint32, nvml.Return) {
		return handle.GetTemperature(nvml.TEMPERATURE_GPU)
	}); degrees != nil {
		celsius := int(*degrees)
		o.TemperatureCelsius = &celsius
	}
	o.Slowdowns = slowdowns(value(ask(r, m, "slowdowns", "nvmlDeviceGetCurrentClocksEventReasons", handle.GetCurrentClocksEventReasons)))
	r.processes(g, "Compute", "nvmlDeviceGetComputeRunningProcesses", handle.GetComputeRunningProcesses)
	r.processes(g, "Graphics", "nvmlDeviceGetGraphicsRunningProcesses", handle.GetGraphicsRunningProcesses)
	slices.SortStableFunc(o.Processes, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
}

func computeMode(mode nvml.ComputeMode) string {
	switch mode {
	case nvml.COMPUTEMODE_DEFAULT:
		return "Default"
	case nvml.COMPUTEMODE_EXCLUSIVE_THREAD:
		return computeExclusiveThread
	case nvml.COMPUTEMODE_PROHIBITED:
		return computeProhibited
	case nvml.COMPUTEMODE_EXCLUSIVE_PROCESS:
		return computeExclusiveProcess
	default:
		return fmt.Sprintf("mode %d", mode)
	}
}

// slowdowns returns the names of the bits. An idle GPU, or one whose clocks were set, is
// not slowed down.
func slowdowns(mask uint64) []string {
	var names []string
	for _, each := range []struct {
		bit  uint64
		name string
	}{
		{nvml.ClocksEventReasonSwPowerCap, "SwPowerCap"},
		{nvml.ClocksThrottleReasonHwSlowdown, slowHardware},
		{nvml.ClocksEventReasonSyncBoost, "SyncBoost"},
		{nvml.ClocksEventReasonSwThermalSlowdown, slowSwThermal},
		{nvml.ClocksThrottleReasonHwThermalSlowdown, slowHwThermal},
		{nvml.ClocksThrottleReasonHwPowerBrakeSlowdown, slowPowerBrake},
		{nvml.ClocksEventReasonDisplayClockSetting, "DisplayClockSetting"},
		{nvml.ClocksEventReasonBoardLimit, "BoardLimit"},
		{nvml.ClocksEventReasonReliability, "Reliability"},
	} {
		if mask&each.bit != 0 {
			names = append(names, each.name)
		}
	}
	return names
}

// maxProcesses limits the processes of a kind.
const maxProcesses = 1000

// processes reads the processes of one kind. The function has several versions; go-nvml
// calls the version in the library.
func (r *nvmlReader) processes(g *GPU, kind, symbol string, get func() ([]nvml.ProcessInfo, nvml.Return)) {
	if !r.has(symbol+"_v3", symbol+"_v2", symbol) {
		g.Missing = append(g.Missing, noFunction("processes", symbol))
		return
	}
	list, ret := get()
	if ret != nvml.SUCCESS {
		g.Missing = append(g.Missing, failure("processes", ret))
		return
	}
	for i := range list[:min(len(list), maxProcesses)] {
		in := &list[i]
		out := Process{PID: int(in.Pid), Kind: kind}
		// NVML_VALUE_NOT_AVAILABLE.
		if in.UsedGpuMemory != math.MaxUint64 {
			out.UsedMemoryBytes = &in.UsedGpuMemory
		}
		if in.GpuInstanceId != math.MaxUint32 && g.MIG != nil && g.MIG.Current {
			gi, ci := int(in.GpuInstanceId), int(in.ComputeInstanceId)
			out.GPUInstanceID, out.ComputeInstanceID = &gi, &ci
		}
		g.Operation.Processes = append(g.Operation.Processes, out)
	}
}

// sram reads errors of the memory on the GPU itself.
func (r *nvmlReader) sram(g *GPU, handle nvml.Device) {
	g.ECC.SRAM = ask(r, &g.Missing, "ecc.sram", "nvmlDeviceGetSramEccErrorStatus", func() (SRAMErrors, nvml.Return) {
		s, ret := handle.GetSramEccErrorStatus()
		if ret == nvml.ERROR_ARGUMENT_VERSION_MISMATCH {
			// An older driver does not know this version.
			ret = nvml.ERROR_NOT_SUPPORTED
		}
		return SRAMErrors{
			Corrected: s.VolatileCor, Uncorrected: s.VolatileUncParity + s.VolatileUncSecDed,
			AggregateCorrected: s.AggregateCor, AggregateUncorrected: s.AggregateUncParity + s.AggregateUncSecDed,
			ThresholdExceeded: s.BThresholdExceeded != 0,
		}, ret
	})
}

// linkErrors reads the counters of a link. Which of them exist depends on the GPU; that it
// has none at all is recorded once.
func (r *nvmlReader) linkErrors(g *GPU, handle nvml.Device, link int) *NVLinkErrors {
	var gone []Missing
	count := func(counter nvml.NvLinkErrorCounter) *uint64 {
		return ask(r, &gone, "nvlinks.errors", "nvmlDeviceGetNvLinkErrorCounter", func() (uint64, nvml.Return) {
			n, ret := handle.GetNvLinkErrorCounter(link, counter)
			if ret == nvml.ERROR_INVALID_ARGUMENT {
				// This generation of NVLink does not count them.
				ret = nvml.ERROR_NOT_SUPPORTED
			}
			return n, ret
		})
	}
	errors := NVLinkErrors{
		Replay: count(nvml.NVLINK_ERROR_DL_REPLAY), Recovery: count(nvml.NVLINK_ERROR_DL_RECOVERY),
		CRCFlit: count(nvml.NVLINK_ERROR_DL_CRC_FLIT), CRCData: count(nvml.NVLINK_ERROR_DL_CRC_DATA),
	}
	if errors != (NVLinkErrors{}) {
		return &errors
	}
	if missing(g.Missing, "nvlinks.errors") == nil {
		g.Missing = append(g.Missing, gone[0])
	}
	return nil
}

// fabricHealth reads the third version of the fabric's information, which has health.
func (r *nvmlReader) fabricHealth(g *GPU, handle nvml.Device) {
	g.Fabric.Health = ask(r, &g.Missing, "fabric.health", "nvmlDeviceGetGpuFabricInfoV", func() (FabricHealth, nvml.Return) {
		info, ret := r.fabricV3(handle)
		if ret == nvml.ERROR_ARGUMENT_VERSION_MISMATCH {
			// An older driver does not know this version.
			ret = nvml.ERROR_NOT_SUPPORTED
		}
		return healthOf(&info), ret
	})
}

func healthOf(info *nvml.GpuFabricInfo_v3) FabricHealth {
	// The WIDTH constants are masks.
	field := func(shift, mask uint32) uint32 { return info.HealthMask >> shift & mask }
	truth := func(shift uint32) *bool {
		// All of these have the same three values.
		var is bool
		switch field(shift, nvml.GPU_FABRIC_HEALTH_MASK_WIDTH_DEGRADED_BW) {
		case nvml.GPU_FABRIC_HEALTH_MASK_DEGRADED_BW_TRUE:
			is = true
		case nvml.GPU_FABRIC_HEALTH_MASK_DEGRADED_BW_FALSE:
		default:
			return nil
		}
		return &is
	}
	h := FabricHealth{
		Mask:                  info.HealthMask,
		DegradedBandwidth:     truth(nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_DEGRADED_BW),
		RouteRecovery:         truth(nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_RECOVERY),
		RouteUnhealthy:        truth(nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY),
		AccessTimeoutRecovery: truth(nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ACCESS_TIMEOUT_RECOVERY),
	}
	switch info.HealthSummary {
	case nvml.GPU_FABRIC_HEALTH_SUMMARY_NOT_SUPPORTED:
	case nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY:
		h.Summary = fabricHealthy
	case nvml.GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY:
		h.Summary = "Unhealthy"
	case nvml.GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY:
		h.Summary = "LimitedCapacity"
	default:
		h.Summary = fmt.Sprintf("summary %d", info.HealthSummary)
	}
	wrong := field(nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION, nvml.GPU_FABRIC_HEALTH_MASK_WIDTH_INCORRECT_CONFIGURATION)
	names := []string{
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NOT_SUPPORTED:        "",
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NONE:                 fabricConfigured,
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_INCORRECT_SYSGUID:    "IncorrectSysGUID",
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_INCORRECT_CHASSIS_SN: "IncorrectChassisSerialNumber",
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NO_PARTITION:         "NoPartition",
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_INSUFFICIENT_NVLINKS: "InsufficientNVLinks",
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_INCOMPATIBLE_GPU_FW:  "IncompatibleGPUFirmware",
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_INVALID_LOCATION:     "InvalidLocation",
		nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_GPU_STATE_INVALID:    "GPUStateInvalid",
	}
	if int(wrong) < len(names) {
		h.IncorrectConfiguration = names[wrong]
	} else {
		h.IncorrectConfiguration = fmt.Sprintf("configuration %d", wrong)
	}
	return h
}
