// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && nvml

package nvidia

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/uuid"
)

// hasNVML reports whether this build can ask NVML.
const hasNVML = true

// openNVML reads through the library at a path of this machine. For an empty path, the
// dynamic linker searches for it.
func openNVML(path string) (*Findings, error) {
	if path == "" {
		path = libraryName
	}
	library := dl.New(path, dl.RTLD_LAZY|dl.RTLD_LOCAL)
	if err := library.Open(); err != nil {
		return nil, fmt.Errorf("open NVML: %w: %w", err, nvml.ERROR_LIBRARY_NOT_FOUND)
	}
	// A library without one of these functions would end the process.
	var err error
	for _, versions := range [][]string{{initSymbol}, {"nvmlShutdown"}, {"nvmlErrorString"}, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}} {
		if !slices.ContainsFunc(versions, func(symbol string) bool { return library.Lookup(symbol) == nil }) {
			err = &notNVMLError{"it is not a complete NVML: it has no " + versions[0]}
			break
		}
	}
	if closing := library.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return nil, fmt.Errorf("open NVML: %w", err)
	}
	return discover(nvml.New(nvml.WithLibraryPath(path)), fabricV3)
}

// discover asks for everything once. It only fails if no answer is possible: the library
// does not load, or has no list of GPUs. fabric asks a GPU for values that go-nvml cannot
// ask its mocks for.
func discover(lib nvml.Interface, fabric fabricAsker) (f *Findings, err error) {
	// A node without GPUs is fine too, as for the DRA driver.
	if ret := lib.InitWithFlags(nvml.INIT_FLAG_NO_GPUS); ret != nvml.SUCCESS {
		return nil, fmt.Errorf("initialize NVML: %w", ret)
	}
	defer func() {
		if ret := lib.Shutdown(); err == nil && ret != nvml.SUCCESS {
			err = fmt.Errorf("shut down NVML: %w", ret)
		}
	}()
	r := &nvmlReader{lib: lib, devices: device.New(lib), fabricV3: fabric}
	f = &Findings{GPUs: []GPU{}}
	f.DriverVersion = value(ask(r, &f.Missing, "driverVersion", "nvmlSystemGetDriverVersion", lib.SystemGetDriverVersion))
	f.NVMLVersion = value(ask(r, &f.Missing, "nvmlVersion", "nvmlSystemGetNVMLVersion", lib.SystemGetNVMLVersion))
	if v := ask(r, &f.Missing, "cudaVersion", "nvmlSystemGetCudaDriverVersion", lib.SystemGetCudaDriverVersion); v != nil {
		f.CUDAVersion = fmt.Sprintf("%d.%d", *v/1000, *v%1000/10)
	}
	count, ret := lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("count GPUs: %w", ret)
	}
	for i := range count {
		handle, ret := lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			gpu := GPU{Index: i}
			gpu.Missing = append(gpu.Missing, failure("uuid", ret))
			f.GPUs = append(f.GPUs, gpu)
			continue
		}
		gpu, err := r.gpu(i, handle)
		if err != nil {
			return nil, err
		}
		f.GPUs = append(f.GPUs, *gpu)
	}
	return f, nil
}

// nvmlReader asks one library.
type nvmlReader struct {
	lib nvml.Interface
	// devices has NVIDIA's own names for NVML's numbers, which the DRA driver publishes.
	devices  device.Interface
	fabricV3 fabricAsker
}

// fabricAsker asks a GPU for the third version of its fabric information.
type fabricAsker func(nvml.Device) (nvml.GpuFabricInfo_v3, nvml.Return)

func fabricV3(handle nvml.Device) (nvml.GpuFabricInfo_v3, nvml.Return) {
	return handle.GetGpuFabricInfoV().V3()
}

// said returns a copy of an error's text, which is in the library's memory and may be gone
// after the shutdown.
func said(ret nvml.Return) string {
	return cmp.Or(strings.Clone(ret.Error()), fmt.Sprintf("error %d", int(ret)))
}

// failure returns why NVML did not report a value.
func failure(value string, ret nvml.Return) Missing {
	return Missing{Value: value, Reason: said(ret), NVML: int(ret), Unsupported: ret == nvml.ERROR_NOT_SUPPORTED}
}

// has reports whether the library has one of the versions of a function.
func (r *nvmlReader) has(versions ...string) bool {
	return slices.ContainsFunc(versions, func(symbol string) bool { return r.lib.Extensions().LookupSymbol(symbol) == nil })
}

// noFunction returns the reason for a value that an older library does not have.
func noFunction(value, symbol string) Missing {
	return Missing{Value: value, Reason: "the library has no " + symbol, Unsupported: true}
}

// ask gets one value, or records why not. Calling a function that an older library lacks
// would end the process, so it is looked up first.
func ask[T any](r *nvmlReader, list *[]Missing, field, symbol string, get func() (T, nvml.Return)) *T {
	if !r.has(symbol) {
		*list = append(*list, noFunction(field, symbol))
		return nil
	}
	v, ret := get()
	if ret != nvml.SUCCESS {
		*list = append(*list, failure(field, ret))
		return nil
	}
	return &v
}

func value[T any](v *T) T {
	if v == nil {
		var zero T
		return zero
	}
	return *v
}

// named gets a value with NVIDIA's name for it.
func named[T any](r *nvmlReader, list *[]Missing, field, symbol string, get func() (T, nvml.Return), name func() (string, error)) string {
	if ask(r, list, field, symbol, get) == nil {
		return ""
	}
	text, err := name()
	if err != nil {
		lacks(list, field, strings.Clone(err.Error()))
	}
	return text
}

// gpu reads one GPU.
func (r *nvmlReader) gpu(index int, handle nvml.Device) (*GPU, error) {
	dev, err := r.devices.NewDevice(handle)
	if err != nil {
		return nil, fmt.Errorf("look at GPU %d: %w", index, err)
	}
	g := &GPU{Index: index}
	m := &g.Missing
	g.Minor = ask(r, m, "minor", "nvmlDeviceGetMinorNumber", handle.GetMinorNumber)
	g.UUID = value(ask(r, m, "uuid", "nvmlDeviceGetUUID", handle.GetUUID))
	g.Product = value(ask(r, m, "product", "nvmlDeviceGetName", handle.GetName))
	g.Brand = named(r, m, "brand", "nvmlDeviceGetBrand", handle.GetBrand, dev.GetBrandAsString)
	g.Architecture = named(r, m, "architecture", "nvmlDeviceGetArchitecture", handle.GetArchitecture, dev.GetArchitectureAsString)
	g.ComputeCapability = value(ask(r, m, "computeCapability", "nvmlDeviceGetCudaComputeCapability", func() (string, nvml.Return) {
		major, minor, ret := handle.GetCudaComputeCapability()
		return fmt.Sprintf("%d.%d", major, minor), ret
	}))
	if mode := ask(r, m, "virtualization", "nvmlDeviceGetVirtualizationMode", handle.GetVirtualizationMode); mode != nil {
		g.Virtualization = virtualization(*mode)
	}
	if memory := ask(r, m, "memoryBytes", "nvmlDeviceGetMemoryInfo", handle.GetMemoryInfo); memory != nil {
		g.MemoryBytes, g.Operation.UsedMemoryBytes = &memory.Total, &memory.Used
	}
	g.PCIBusID = named(r, m, "pciBusID", "nvmlDeviceGetPciInfo_v3", handle.GetPciInfo, dev.GetPCIBusID)
	g.AddressingMode = named(r, m, "addressingMode", "nvmlDeviceGetAddressingMode", handle.GetAddressingMode, dev.GetAddressingModeAsString)
	g.ModuleID = ask(r, m, "moduleID", "nvmlDeviceGetModuleId", handle.GetModuleId)
	r.health(g, handle)
	r.links(g, handle)
	r.mig(g, dev)
	r.operation(g, handle)
	return g, nil
}

func virtualization(mode nvml.GpuVirtualizationMode) string {
	switch mode {
	case nvml.GPU_VIRTUALIZATION_MODE_NONE:
		return "None"
	case nvml.GPU_VIRTUALIZATION_MODE_PASSTHROUGH:
		return "Passthrough"
	case nvml.GPU_VIRTUALIZATION_MODE_VGPU:
		return virtualGPU
	case nvml.GPU_VIRTUALIZATION_MODE_HOST_VGPU:
		return "HostVGPU"
	case nvml.GPU_VIRTUALIZATION_MODE_HOST_VSGA:
		return "HostVSGA"
	default:
		return fmt.Sprintf("mode %d", mode)
	}
}

// health reads memory errors.
func (r *nvmlReader) health(g *GPU, handle nvml.Device) {
	g.ECC = ask(r, &g.Missing, "ecc", "nvmlDeviceGetEccMode", func() (ECC, nvml.Return) {
		current, pending, ret := handle.GetEccMode()
		return ECC{Current: current == nvml.FEATURE_ENABLED, Pending: pending == nvml.FEATURE_ENABLED}, ret
	})
	if g.ECC != nil && g.ECC.Current {
		count := func(field string, kind nvml.MemoryErrorType) *uint64 {
			return ask(r, &g.Missing, field, "nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) {
				return handle.GetTotalEccErrors(kind, nvml.VOLATILE_ECC)
			})
		}
		g.ECC.Corrected = count("ecc.corrected", nvml.MEMORY_ERROR_TYPE_CORRECTED)
		g.ECC.Uncorrected = count("ecc.uncorrected", nvml.MEMORY_ERROR_TYPE_UNCORRECTED)
		r.sram(g, handle)
	}
	g.Rows = ask(r, &g.Missing, "remappedRows", "nvmlDeviceGetRemappedRows", func() (RemappedRows, nvml.Return) {
		corrected, uncorrected, pending, failed, ret := handle.GetRemappedRows()
		return RemappedRows{corrected, uncorrected, pending, failed}, ret
	})
}

// links reads NVLink and the fabric behind it.
func (r *nvmlReader) links(g *GPU, handle nvml.Device) {
	r.nvlinks(g, handle)
	g.Fabric = ask(r, &g.Missing, "fabric", "nvmlDeviceGetGpuFabricInfo", func() (Fabric, nvml.Return) {
		info, ret := handle.GetGpuFabricInfo()
		fabric := Fabric{State: fabricState(info.State), CliqueID: info.CliqueId}
		if info.State == nvml.GPU_FABRIC_STATE_COMPLETED {
			fabric.Status = fabricSuccess
			if status := nvml.Return(info.Status); status != nvml.SUCCESS {
				fabric.Status = said(status)
			}
		}
		if info.ClusterUuid != [16]uint8{} {
			fabric.ClusterUUID = uuid.UUID(info.ClusterUuid).String()
		}
		return fabric, ret
	})
	if g.Fabric != nil && g.Fabric.State == fabricCompleted {
		r.fabricHealth(g, handle)
	}
}

// nvlinks reads the links that the GPU has. The interface has room for more, and a GPU may
// report these as down.
func (r *nvmlReader) nvlinks(g *GPU, handle nvml.Device) {
	count, counted := nvml.NVLINK_MAX_LINKS, false
	var gone []Missing
	switch n := ask(r, &gone, "nvlinks", "nvmlDeviceGetFieldValues", func() (uint64, nvml.Return) { return linkCount(handle) }); {
	case n != nil:
		count, counted = int(min(*n, nvml.NVLINK_MAX_LINKS)), true
	case !gone[0].Unsupported:
		g.Missing = append(g.Missing, gone...)
		return
	}
	for link := range count {
		var gone []Missing
		state := ask(r, &gone, "nvlinks", "nvmlDeviceGetNvLinkState", func() (nvml.EnableState, nvml.Return) {
			state, ret := handle.GetNvLinkState(link)
			if ret == nvml.ERROR_INVALID_ARGUMENT && !counted {
				// There are fewer links.
				ret = nvml.ERROR_NOT_SUPPORTED
			}
			return state, ret
		})
		if state == nil {
			if link == 0 || !gone[0].Unsupported {
				g.Missing = append(g.Missing, gone...)
			}
			break
		}
		one := NVLink{Link: link, Active: *state == nvml.FEATURE_ENABLED}
		if one.Active {
			one.Errors = r.linkErrors(g, handle, link)
			if info := ask(r, &one.Missing, "remote", "nvmlDeviceGetNvLinkRemotePciInfo_v2", func() (nvml.PciInfo, nvml.Return) { return handle.GetNvLinkRemotePciInfo(link) }); info != nil {
				if one.Remote = busID(info.BusId[:]); one.Remote == "" {
					one.Missing = append(one.Missing, Missing{Value: "remote", Reason: "NVML does not know the other end", Unsupported: true})
				}
			}
		}
		g.NVLinks = append(g.NVLinks, one)
	}
}

// linkCount returns how many NVLinks a GPU has.
func linkCount(handle nvml.Device) (uint64, nvml.Return) {
	values := []nvml.FieldValue{{FieldId: nvml.FI_DEV_NVLINK_LINK_COUNT}}
	ret := handle.GetFieldValues(values)
	if ret == nvml.SUCCESS {
		ret = nvml.Return(values[0].NvmlReturn)
	}
	if ret == nvml.ERROR_INVALID_ARGUMENT {
		// An older driver does not know the field.
		ret = nvml.ERROR_NOT_SUPPORTED
	}
	value := values[0].Value[:]
	switch nvml.ValueType(values[0].ValueType) {
	case nvml.VALUE_TYPE_UNSIGNED_INT, nvml.VALUE_TYPE_SIGNED_INT:
		return uint64(binary.NativeEndian.Uint32(value)), ret
	case nvml.VALUE_TYPE_UNSIGNED_SHORT:
		return uint64(binary.NativeEndian.Uint16(value)), ret
	default:
		return binary.NativeEndian.Uint64(value), ret
	}
}

func fabricState(state uint8) string {
	switch state {
	case nvml.GPU_FABRIC_STATE_NOT_SUPPORTED:
		return fabricNotSupported
	case nvml.GPU_FABRIC_STATE_NOT_STARTED:
		return fabricNotStarted
	case nvml.GPU_FABRIC_STATE_IN_PROGRESS:
		return fabricInProgress
	case nvml.GPU_FABRIC_STATE_COMPLETED:
		return fabricCompleted
	default:
		return fmt.Sprintf("state %d", state)
	}
}

// busID returns the bus ID that NVML has as a C string, with the domain in the four digits
// that sysfs uses, unless it needs more. All ones stand for none.
func busID(chars []int8) string {
	var b strings.Builder
	for _, c := range chars {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	id := strings.ToLower(b.String())
	if strings.Trim(strings.TrimSuffix(id, ".0"), "f:") == "" {
		return ""
	}
	if len(id) == len("00000000:00:00.0") {
		id = strings.TrimPrefix(id, "0000")
	}
	return id
}

// noLibrary reports whether an error means that NVML is missing.
func noLibrary(err error) bool {
	return errors.Is(err, nvml.ERROR_LIBRARY_NOT_FOUND)
}
