// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && nvml

package nvidia

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
)

func machines() map[string]func() *server.Server {
	return map[string]func() *server.Server{"dgx-a100": dgxa100.New, "dgx-h100": dgxh100.New, "dgx-h200": dgxh200.New, "dgx-b200": dgxb200.New}
}

// mocked returns a machine of go-nvml's mocks. They leave open what the driver cannot do
// without: the PCI bus ID, which they have and do not tell, and that it is no virtual
// machine.
func mocked(t *testing.T, name string) *server.Server {
	t.Helper()
	lib := machines()[name]()
	for i, dev := range lib.Devices {
		d := as[*server.Device](t, dev)
		d.UUID = simulatedUUID(name, i)
		d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
			info := nvml.PciInfo{PciDeviceId: d.Config.PciDeviceId}
			for at, c := range []byte("0000" + strings.ToUpper(d.PciBusID)) {
				info.BusId[at] = int8(c)
			}
			return info, nvml.SUCCESS
		}
		d.GetVirtualizationModeFunc = func() (nvml.GpuVirtualizationMode, nvml.Return) {
			return nvml.GPU_VIRTUALIZATION_MODE_NONE, nvml.SUCCESS
		}
		fill(&d.Device)
	}
	lib.InitWithFlagsFunc = func(uint32) nvml.Return { return nvml.SUCCESS }
	fill(&lib.Interface)
	return lib
}

// discovered asks a mock for everything but what cannot be asked of it.
func discovered(lib nvml.Interface) (*Findings, error) {
	return discover(lib, func(nvml.Device) (nvml.GpuFabricInfo_v3, nvml.Return) {
		return nvml.GpuFabricInfo_v3{}, nvml.ERROR_NOT_SUPPORTED
	})
}

// as returns the mock behind one of NVML's interfaces.
func as[T any](t *testing.T, mock any) T {
	t.Helper()
	v, ok := mock.(T)
	if !ok {
		t.Fatalf("a mock of type %T", mock)
	}
	return v
}

// fill completes a mock: what it has no function for is not supported, where it
// would panic otherwise.
func fill(mock any) {
	v := reflect.ValueOf(mock).Elem()
	for i := range v.NumField() {
		field := v.Field(i)
		if field.Kind() != reflect.Func || !field.CanSet() || !field.IsNil() {
			continue
		}
		kind := field.Type()
		field.Set(reflect.MakeFunc(kind, func([]reflect.Value) []reflect.Value {
			var out []reflect.Value
			for n := range kind.NumOut() {
				result := reflect.Zero(kind.Out(n))
				if kind.Out(n) == reflect.TypeFor[nvml.Return]() {
					result = reflect.ValueOf(nvml.ERROR_NOT_SUPPORTED)
				}
				out = append(out, result)
			}
			return out
		}))
	}
}

// partition switches MIG on, with a device of three slices in its second place
// and one of one slice in its third place.
func partition(t *testing.T, d *server.Device) {
	t.Helper()
	d.MigMode = nvml.DEVICE_MIG_ENABLE
	var migs []nvml.Device
	instances := map[int]nvml.GpuInstance{}
	for n, each := range []struct{ gi, ci, place int }{
		{nvml.GPU_INSTANCE_PROFILE_3_SLICE, nvml.COMPUTE_INSTANCE_PROFILE_3_SLICE, 1},
		{nvml.GPU_INSTANCE_PROFILE_1_SLICE, nvml.COMPUTE_INSTANCE_PROFILE_1_SLICE, 2},
	} {
		profile, _ := d.GetGpuInstanceProfileInfo(each.gi)
		places, _ := d.GetGpuInstancePossiblePlacements(&profile)
		gi, _ := d.CreateGpuInstanceWithPlacement(&profile, &places[each.place])
		ciProfile, _ := gi.GetComputeInstanceProfileInfo(each.ci, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		ci, _ := gi.CreateComputeInstance(&ciProfile)
		giInfo, _ := gi.GetInfo()
		ciInfo, _ := ci.GetInfo()
		as[*server.GpuInstance](t, gi).GetComputeInstanceByIdFunc = func(int) (nvml.ComputeInstance, nvml.Return) { return ci, nvml.SUCCESS }
		instances[int(giInfo.Id)] = gi
		mig := &server.Device{}
		uuid := fmt.Sprintf("MIG-%s-%d", strings.TrimPrefix(d.UUID, "GPU-"), n)
		mig.GetUUIDFunc = func() (string, nvml.Return) { return uuid, nvml.SUCCESS }
		mig.GetGpuInstanceIdFunc = func() (int, nvml.Return) { return int(giInfo.Id), nvml.SUCCESS }
		mig.GetComputeInstanceIdFunc = func() (int, nvml.Return) { return int(ciInfo.Id), nvml.SUCCESS }
		fill(&mig.Device)
		migs = append(migs, mig)
	}
	d.GetGpuInstanceByIdFunc = func(id int) (nvml.GpuInstance, nvml.Return) { return instances[id], nvml.SUCCESS }
	d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	d.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i >= len(migs) {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return migs[i], nvml.SUCCESS
	}
}
