// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && nvml

package nvidia

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/google/go-cmp/cmp"
)

func reasonFor(t *testing.T, list []Missing, value string) Missing {
	t.Helper()
	if m := missing(list, value); m != nil {
		return *m
	}
	t.Errorf("%s is not missing: %+v", value, list)
	return Missing{}
}

// TestDiscoverHealth covers values that the mocks do not know.
func TestDiscoverHealth(t *testing.T) {
	lib := mocked(t, "dgx-h100")
	lib.Devices = lib.Devices[:2]
	d := as[*server.Device](t, lib.Devices[0])
	d.GetEccModeFunc = func() (nvml.EnableState, nvml.EnableState, nvml.Return) {
		return nvml.FEATURE_ENABLED, nvml.FEATURE_DISABLED, nvml.SUCCESS
	}
	d.GetTotalEccErrorsFunc = func(kind nvml.MemoryErrorType, _ nvml.EccCounterType) (uint64, nvml.Return) {
		if kind == nvml.MEMORY_ERROR_TYPE_CORRECTED {
			return 0, nvml.ERROR_NO_PERMISSION
		}
		return 0, nvml.SUCCESS
	}
	d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 1, 2, true, false, nvml.SUCCESS }
	d.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
		switch link {
		case 0:
			return nvml.FEATURE_ENABLED, nvml.SUCCESS
		case 1:
			return nvml.FEATURE_DISABLED, nvml.SUCCESS
		default:
			return 0, nvml.ERROR_INVALID_ARGUMENT
		}
	}
	d.GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) {
		return nvml.GpuFabricInfo{State: nvml.GPU_FABRIC_STATE_COMPLETED, ClusterUuid: [16]uint8{15: 1}, CliqueId: 4}, nvml.SUCCESS
	}
	f, err := discovered(lib)
	if err != nil {
		t.Fatal(err)
	}
	none := uint64(0)
	got := f.GPUs[0]
	if diff := cmp.Diff(&ECC{Current: true, Uncorrected: &none}, got.ECC); diff != "" {
		t.Error(diff)
	}
	if m := reasonFor(t, got.Missing, "ecc.corrected"); m.Unsupported || m.Reason != "ERROR_NO_PERMISSION" {
		t.Errorf("refused: %+v", m)
	}
	if diff := cmp.Diff(&RemappedRows{1, 2, true, false}, got.Rows); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]NVLink{{Link: 0, Active: true, Missing: []Missing{{Value: "remote", Reason: "ERROR_NOT_SUPPORTED", Unsupported: true, NVML: 3}}}, {Link: 1}}, got.NVLinks); diff != "" {
		t.Error(diff)
	}
	want := &Fabric{State: fabricCompleted, Status: fabricSuccess, ClusterUUID: "00000000-0000-0000-0000-000000000001", CliqueID: 4}
	if diff := cmp.Diff(want, got.Fabric); diff != "" {
		t.Error(diff)
	}
	// The second one tells nothing of it, and that is no zero.
	if other := f.GPUs[1]; other.ECC != nil || other.Rows != nil || other.Fabric != nil || !reasonFor(t, other.Missing, "ecc").Unsupported {
		t.Errorf("made up: %+v", other)
	}
}

// TestDiscoverOldLibrary makes sure that no function is called that the library
// does not have: that would end the process.
func TestDiscoverOldLibrary(t *testing.T) {
	lib := mocked(t, "dgx-a100")
	lib.Devices = lib.Devices[:1]
	gone := []string{"nvmlDeviceGetAddressingMode", "nvmlDeviceGetGpuFabricInfo", "nvmlDeviceGetGpuInstanceProfileInfo", "nvmlDeviceGetMigMode"}
	lib.LookupSymbolFunc = func(symbol string) error {
		for _, name := range gone {
			if name == symbol {
				return errors.New("undefined symbol")
			}
		}
		return nil
	}
	d := as[*server.Device](t, lib.Devices[0])
	d.GetAddressingModeFunc = nil // It would panic.
	d.GetGpuFabricInfoFunc = nil
	d.GetGpuInstanceProfileInfoFunc = nil
	d.GetMigModeFunc = nil
	f, err := discovered(lib)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"addressingMode", "fabric", "migProfiles", "mig"} {
		if m := reasonFor(t, f.GPUs[0].Missing, value); !m.Unsupported {
			t.Errorf("%s: %+v", value, m)
		}
	}
}

func TestDiscoverMIG(t *testing.T) {
	lib := mocked(t, "dgx-h100")
	lib.Devices = lib.Devices[:1]
	partition(t, as[*server.Device](t, lib.Devices[0]))
	f, err := discovered(lib)
	if err != nil {
		t.Fatal(err)
	}
	uuid := f.GPUs[0].UUID[len("GPU-"):]
	want := []MIGDevice{
		{UUID: "MIG-" + uuid + "-0", GPUInstanceID: 0, Placement: Placement{4, 3}, Profile: "3g.40gb", ProfileID: 2},
		{UUID: "MIG-" + uuid + "-1", GPUInstanceID: 1, Placement: Placement{2, 1}, Profile: "1g.10gb", ProfileID: 0},
	}
	if diff := cmp.Diff(want, f.GPUs[0].MIGDevices); diff != "" {
		t.Error(diff)
	}
}

// TestDiscoverUnnamedProfile covers a MIG profile that NVIDIA's library for names does not
// know: only its name is missing.
func TestDiscoverUnnamedProfile(t *testing.T) {
	want, err := discovered(mocked(t, "dgx-b200"))
	if err != nil {
		t.Fatal(err)
	}
	lib := mocked(t, "dgx-b200")
	d := as[*server.Device](t, lib.Devices[1])
	known := d.GetGpuInstanceProfileInfoFunc
	d.GetGpuInstanceProfileInfoFunc = func(profile int) (nvml.GpuInstanceProfileInfo, nvml.Return) {
		if profile == nvml.GPU_INSTANCE_PROFILE_3_SLICE_GFX {
			return nvml.GpuInstanceProfileInfo{Id: 77, SliceCount: 3, InstanceCount: 2, MemorySizeMB: 1024}, nvml.SUCCESS
		}
		return known(profile)
	}
	found, err := discovered(lib)
	if err != nil {
		t.Fatal(err)
	}
	profiles := found.GPUs[1].MIGProfiles
	last := len(profiles) - 1
	if gone := missing(profiles[last].Missing, "name"); profiles[last].ID != 77 || profiles[last].Name != "" || gone == nil || gone.Reason != "invalid GPU Instance Profile ID: 17" {
		t.Fatalf("got %+v", profiles[last])
	}
	failures := found.GPUs[1].failures()
	if got := fmt.Sprintf("%+v", failures); !strings.Contains(got, "name of MIG profile ID 77") {
		t.Errorf("checks do not tell it: %s", got)
	}
	found.GPUs[1].MIGProfiles = profiles[:last]
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("more is missing (-without that profile +with it):\n%s", diff)
	}
}

func TestDiscoverLost(t *testing.T) {
	lib := mocked(t, "dgx-h100")
	lib.Devices = lib.Devices[:2]
	byIndex := lib.DeviceGetHandleByIndexFunc
	lib.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i == 0 {
			return nil, nvml.ERROR_GPU_IS_LOST
		}
		return byIndex(i)
	}
	f, err := discovered(lib)
	if err != nil || len(f.GPUs) != 2 || f.GPUs[1].UUID == "" {
		t.Fatalf("the others are not looked at: %+v, %v", f, err)
	}
	if m := reasonFor(t, f.GPUs[0].Missing, "uuid"); m.Reason != "ERROR_GPU_IS_LOST" {
		t.Errorf("%+v", m)
	}
	var cannot *CannotStartError
	if _, err := Preview(f, Settings{Node: "node"}); !errors.As(err, &cannot) {
		t.Errorf("with a lost GPU the driver does not come up: %v", err)
	}
	lib.InitWithFlagsFunc = func(uint32) nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }
	if _, err := discovered(lib); !noLibrary(err) {
		t.Errorf("without the library: %v", err)
	}
}

// TestOpenOther covers libraries that are not NVML: they must not end the process.
func TestOpenOther(t *testing.T) {
	if _, err := openNVML("libc.so.6"); err == nil || noLibrary(err) {
		t.Errorf("another library: %v", err)
	}
	if _, err := openNVML(filepath.Join(t.TempDir(), "none.so")); !noLibrary(err) {
		t.Errorf("no library: %v", err)
	}
}
