// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && nvml

package nvidia

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// TestDiscoverOperation covers values that the mocks do not know.
func TestDiscoverOperation(t *testing.T) {
	lib := mocked(t, "dgx-h100")
	lib.Devices = lib.Devices[:2]
	d := as[*server.Device](t, lib.Devices[0])
	d.GetSerialFunc = func() (string, nvml.Return) { return "1320", nvml.SUCCESS }
	d.GetVbiosVersionFunc = func() (string, nvml.Return) { return "96.00.74", nvml.SUCCESS }
	d.GetComputeModeFunc = func() (nvml.ComputeMode, nvml.Return) { return nvml.COMPUTEMODE_PROHIBITED, nvml.SUCCESS }
	d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 87, nvml.SUCCESS }
	d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) {
		return nvml.ClocksEventReasonGpuIdle | nvml.ClocksEventReasonSwPowerCap | nvml.ClocksThrottleReasonHwThermalSlowdown, nvml.SUCCESS
	}
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return []nvml.ProcessInfo{
			{Pid: 20, UsedGpuMemory: 1 << 20, GpuInstanceId: math.MaxUint32, ComputeInstanceId: math.MaxUint32},
			{Pid: 3, UsedGpuMemory: math.MaxUint64, GpuInstanceId: math.MaxUint32},
		}, nvml.SUCCESS
	}
	f, err := discovered(lib)
	if err != nil {
		t.Fatal(err)
	}
	g := &f.GPUs[0]
	celsius, used := 87, uint64(1<<20)
	want := Operation{
		UsedMemoryBytes: g.Operation.UsedMemoryBytes, ComputeMode: computeProhibited, TemperatureCelsius: &celsius, Slowdowns: []string{"SwPowerCap", slowHwThermal},
		Processes: []Process{{PID: 3, Kind: "Compute"}, {PID: 20, Kind: "Compute", UsedMemoryBytes: &used}},
	}
	if diff := cmp.Diff(want, g.Operation); diff != "" || g.Serial != "1320" || g.VBIOS != "96.00.74" {
		t.Errorf("%s serial %q, VBIOS %q", diff, g.Serial, g.VBIOS)
	}
	// Nobody has asked for graphics.
	if !reasonFor(t, g.Missing, "processes").Unsupported {
		t.Errorf("%+v", g.Missing)
	}
	expect := map[string]node.State{"gpus/0/compute-mode": node.Problem, "gpus/0/slowdown": node.Problem}
	for _, check := range gpuChecks(g) {
		if state, ok := expect[check.Name]; ok && check.State == state {
			delete(expect, check.Name)
		}
	}
	if len(expect) > 0 {
		t.Errorf("no checks %v: %+v", expect, gpuChecks(g))
	}
	// The second one tells nothing of it.
	if other := f.GPUs[1]; other.Serial != "" || other.Operation.ComputeMode != "" || other.Operation.TemperatureCelsius != nil || len(other.Operation.Processes) > 0 {
		t.Errorf("made up: %+v", other)
	}
}

// TestDiscoverFabricHealth covers the third version of the fabric's information.
func TestDiscoverFabricHealth(t *testing.T) {
	lib := mocked(t, "dgx-b200")
	lib.Devices = lib.Devices[:1]
	as[*server.Device](t, lib.Devices[0]).GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) {
		return nvml.GpuFabricInfo{State: nvml.GPU_FABRIC_STATE_COMPLETED, ClusterUuid: [16]uint8{15: 1}, CliqueId: 4}, nvml.SUCCESS
	}
	yes, no := true, false
	for name, test := range map[string]struct {
		info  nvml.GpuFabricInfo_v3
		ret   nvml.Return
		want  *FabricHealth
		state node.State
	}{
		"healthy": {
			nvml.GpuFabricInfo_v3{HealthSummary: nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY, HealthMask: 2 | 2<<2 | 2<<4 | 2<<6 | 1<<8},
			nvml.SUCCESS,
			&FabricHealth{Summary: "Healthy", Mask: 426, DegradedBandwidth: &no, RouteRecovery: &no, RouteUnhealthy: &no, AccessTimeoutRecovery: &no, IncorrectConfiguration: "None"}, node.OK,
		},
		"not supported": {nvml.GpuFabricInfo_v3{}, nvml.SUCCESS, &FabricHealth{}, node.OK},
		"degraded": {
			nvml.GpuFabricInfo_v3{HealthSummary: nvml.GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY, HealthMask: 1 | 5<<8},
			nvml.SUCCESS,
			&FabricHealth{Summary: "LimitedCapacity", Mask: 1281, DegradedBandwidth: &yes, IncorrectConfiguration: "InsufficientNVLinks"}, node.Problem,
		},
		"an older driver": {nvml.GpuFabricInfo_v3{}, nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nil, node.OK},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := discover(lib, func(nvml.Device) (nvml.GpuFabricInfo_v3, nvml.Return) { return test.info, test.ret })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, f.GPUs[0].Fabric.Health); diff != "" {
				t.Error(diff)
			}
			if got := node.Worst(gpuChecks(&f.GPUs[0])); got != test.state {
				t.Errorf("%s: %+v", got, gpuChecks(&f.GPUs[0]))
			}
		})
	}
}

// TestDiscoverMemoryErrors covers errors of SRAM and of links.
func TestDiscoverMemoryErrors(t *testing.T) {
	lib := mocked(t, "dgx-h100")
	lib.Devices = lib.Devices[:1]
	d := as[*server.Device](t, lib.Devices[0])
	d.GetEccModeFunc = func() (nvml.EnableState, nvml.EnableState, nvml.Return) {
		return nvml.FEATURE_ENABLED, nvml.FEATURE_ENABLED, nvml.SUCCESS
	}
	d.GetSramEccErrorStatusFunc = func() (nvml.EccSramErrorStatus, nvml.Return) {
		return nvml.EccSramErrorStatus{VolatileCor: 1, VolatileUncParity: 2, VolatileUncSecDed: 3, AggregateCor: 4, AggregateUncParity: 5, AggregateUncSecDed: 6, BThresholdExceeded: 1}, nvml.SUCCESS
	}
	d.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
		if link > 0 {
			return 0, nvml.ERROR_INVALID_ARGUMENT
		}
		return nvml.FEATURE_ENABLED, nvml.SUCCESS
	}
	d.GetNvLinkErrorCounterFunc = func(_ int, counter nvml.NvLinkErrorCounter) (uint64, nvml.Return) {
		if counter == nvml.NVLINK_ERROR_DL_CRC_DATA {
			return 0, nvml.ERROR_NOT_SUPPORTED
		}
		return 10 + uint64(counter), nvml.SUCCESS
	}
	f, err := discovered(lib)
	if err != nil {
		t.Fatal(err)
	}
	g := &f.GPUs[0]
	if diff := cmp.Diff(&SRAMErrors{1, 5, 4, 11, true}, g.ECC.SRAM); diff != "" {
		t.Error(diff)
	}
	replay, recovery, flit := uint64(10), uint64(11), uint64(12)
	if diff := cmp.Diff(&NVLinkErrors{Replay: &replay, Recovery: &recovery, CRCFlit: &flit}, g.NVLinks[0].Errors); diff != "" {
		t.Error(diff)
	}
	if node.Worst(gpuChecks(g)) != node.Problem {
		t.Errorf("the threshold: %+v", gpuChecks(g))
	}
}

// TestDiscoverPartialInstance covers a compute instance that takes one of three slices.
func TestDiscoverPartialInstance(t *testing.T) {
	lib := mocked(t, "dgx-h100")
	lib.Devices = lib.Devices[:1]
	d := as[*server.Device](t, lib.Devices[0])
	partition(t, d)
	gi, _ := d.GetGpuInstanceByIdFunc(0)
	profile, ret := gi.GetComputeInstanceProfileInfo(nvml.COMPUTE_INSTANCE_PROFILE_1_SLICE, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
	if ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	part, ret := gi.CreateComputeInstance(&profile)
	if ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	as[*server.GpuInstance](t, gi).GetComputeInstanceByIdFunc = func(int) (nvml.ComputeInstance, nvml.Return) { return part, nvml.SUCCESS }
	f, err := discovered(lib)
	if err != nil {
		t.Fatal(err)
	}
	devices := f.GPUs[0].MIGDevices
	if !devices[0].Partial || devices[0].Profile != "" || devices[1].Partial {
		t.Errorf("%+v", devices)
	}
	var said int
	for _, check := range gpuChecks(&f.GPUs[0]) {
		if check.Name == "gpus/0/mig" && check.State == node.Problem {
			said++
		}
	}
	if said != 1 {
		t.Errorf("%+v", gpuChecks(&f.GPUs[0]))
	}
}

// TestNameProcesses reads what the node's /proc says of them.
func TestNameProcesses(t *testing.T) {
	root := t.TempDir()
	for path, content := range map[string]string{
		"proc/3/comm":   "python3\n",
		"proc/3/cgroup": "0::/kubepods.slice/kubepods-pod0b5e9a2c_3c55_4b9f_9d3b_5f0b8d7c1a11.slice/cri-containerd-abc.scope\n",
		"proc/4/comm":   "Xorg\n",
		"proc/4/cgroup": "0::/system.slice/gdm.service\n",
	} {
		here := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(here), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(here, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gpus := []GPU{{Operation: Operation{Processes: []Process{{PID: 3}, {PID: 4}, {PID: 5}}}}}
	nameProcesses(gpus, node.NewHost(root, "", nil))
	want := []Process{{PID: 3, Name: "python3", PodUID: "0b5e9a2c-3c55-4b9f-9d3b-5f0b8d7c1a11"}, {PID: 4, Name: "Xorg"}, {PID: 5}}
	if diff := cmp.Diff(want, gpus[0].Operation.Processes); diff != "" {
		t.Error(diff)
	}
}
