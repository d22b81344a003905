// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && nvml

package nvidia

import (
	"fmt"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// mig reads how a GPU can be divided, and how it is.
func (r *nvmlReader) mig(g *GPU, dev device.Device) {
	g.MIG = ask(r, &g.Missing, "mig", "nvmlDeviceGetMigMode", func() (MIG, nvml.Return) {
		current, pending, ret := dev.GetMigMode()
		return MIG{Current: current == nvml.DEVICE_MIG_ENABLE, Pending: pending == nvml.DEVICE_MIG_ENABLE}, ret
	})
	names := r.profiles(g, dev)
	if g.MIG == nil || !g.MIG.Current {
		return
	}
	count := ask(r, &g.Missing, "migDevices", "nvmlDeviceGetMaxMigDeviceCount", dev.GetMaxMigDeviceCount)
	if value(count) > 0 && !r.has("nvmlDeviceGetMigDeviceHandleByIndex") {
		g.Missing = append(g.Missing, noFunction("migDevices", "nvmlDeviceGetMigDeviceHandleByIndex"))
		return
	}
	for i := range value(count) {
		handle, ret := dev.GetMigDeviceHandleByIndex(i)
		switch ret {
		case nvml.SUCCESS:
			g.MIGDevices = append(g.MIGDevices, r.migDevice(dev, handle, names))
		case nvml.ERROR_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT:
		default:
			g.Missing = append(g.Missing, numbered(i, failure("migDevices", ret)))
		}
	}
}

// migName is a profile whose compute instance uses all of its GPU instance, of which NVML
// may know several.
type migName struct {
	name           string
	gi, ci, engine int
}

// profiles lists the profiles of a GPU in the way of the DRA driver, even if it is not
// divided now.
func (r *nvmlReader) profiles(g *GPU, dev device.Device) []migName {
	const symbol = "nvmlDeviceGetGpuInstanceProfileInfo"
	if !r.has(symbol) {
		g.Missing = append(g.Missing, noFunction("migProfiles", symbol))
		return nil
	}
	// As for the driver, names have no memory size then.
	memory := value(g.MemoryBytes)
	var names []migName
	for i := range nvml.GPU_INSTANCE_PROFILE_COUNT {
		info, ret := dev.GetGpuInstanceProfileInfo(i)
		switch ret {
		case nvml.SUCCESS:
		case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_INVALID_ARGUMENT:
			continue
		default:
			g.Missing = append(g.Missing, numbered(i, failure("migProfiles", ret)))
			continue
		}
		p := MIGProfile{
			Index: i, ID: int(info.Id), Slices: int(info.SliceCount), Instances: int(info.InstanceCount), MemoryMiB: info.MemorySizeMB,
			Multiprocessors: int(info.MultiprocessorCount), CopyEngines: int(info.CopyEngineCount), Decoders: int(info.DecoderCount),
			Encoders: int(info.EncoderCount), JPEGEngines: int(info.JpegCount), OFAEngines: int(info.OfaCount),
		}
		r.placements(&p, dev, &info)
		known, err := r.names(i, info.MemorySizeMB, memory)
		switch {
		case err != nil:
			lacks(&p.Missing, "name", err.Error())
		case len(known) > 0:
			p.Name = known[len(known)-1].name
			names = append(names, known...)
		}
		g.MIGProfiles = append(g.MIGProfiles, p)
	}
	return names
}

// names returns the names of a GPU instance profile whose compute instances use all of it.
// NVML may have profiles that NVIDIA's library does not know yet.
func (r *nvmlReader) names(gi int, memoryMiB, total uint64) ([]migName, error) {
	var names []migName
	for ci := range nvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		for engine := range nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT {
			profile, err := r.devices.NewMigProfile(gi, ci, engine, memoryMiB, total)
			if err != nil {
				return nil, err
			}
			if its := profile.GetInfo(); its.C == its.G {
				names = append(names, migName{profile.String(), gi, ci, engine})
			}
		}
	}
	return names, nil
}

// partial reports whether a compute instance is known to have fewer slices than its
// GPU instance. gi and ci are the IDs of their profiles.
func (r *nvmlReader) partial(instance nvml.GpuInstance, gi, ci uint32, parent device.Device) bool {
	var whole, part uint32
	for i := range nvml.GPU_INSTANCE_PROFILE_COUNT {
		if info, ret := parent.GetGpuInstanceProfileInfo(i); ret == nvml.SUCCESS && info.Id == gi {
			whole = info.SliceCount
		}
	}
	for i := range nvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		for engine := range nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT {
			if info, ret := instance.GetComputeInstanceProfileInfo(i, engine); ret == nvml.SUCCESS && info.Id == ci {
				part = info.SliceCount
			}
		}
	}
	return part > 0 && part < whole
}

// placements reads the possible placements of a profile.
func (r *nvmlReader) placements(p *MIGProfile, dev device.Device, info *nvml.GpuInstanceProfileInfo) {
	const symbol = "nvmlDeviceGetGpuInstancePossiblePlacements"
	if !r.has(symbol+"_v2", symbol) {
		p.Missing = append(p.Missing, noFunction("placements", symbol))
		return
	}
	placements, ret := dev.GetGpuInstancePossiblePlacements(info)
	if ret != nvml.SUCCESS {
		gone := failure("placements", ret)
		gone.Unsupported = gone.Unsupported || ret == nvml.ERROR_INVALID_ARGUMENT
		p.Missing = append(p.Missing, gone)
	}
	for _, at := range placements {
		p.Placements = append(p.Placements, Placement{Start: int(at.Start), Size: int(at.Size)})
	}
}

// numbered returns a failure with a number.
func numbered(number int, gone Missing) Missing {
	gone.Reason = fmt.Sprintf("number %d: %s", number, gone.Reason)
	return gone
}

// migDevice reads one partition.
func (r *nvmlReader) migDevice(parent device.Device, handle nvml.Device, names []migName) MIGDevice {
	d := MIGDevice{GPUInstanceID: -1, ComputeInstanceID: -1, ProfileID: -1}
	m := &d.Missing
	d.UUID = value(ask(r, m, "uuid", "nvmlDeviceGetUUID", handle.GetUUID))
	gi := ask(r, m, "gpuInstanceID", "nvmlDeviceGetGpuInstanceId", handle.GetGpuInstanceId)
	ci := ask(r, m, "computeInstanceID", "nvmlDeviceGetComputeInstanceId", handle.GetComputeInstanceId)
	if gi == nil || ci == nil {
		return d
	}
	d.GPUInstanceID, d.ComputeInstanceID = *gi, *ci
	instance := ask(r, m, "profileID", "nvmlDeviceGetGpuInstanceById", func() (nvml.GpuInstance, nvml.Return) { return parent.GetGpuInstanceById(*gi) })
	if instance == nil {
		return d
	}
	info := ask(r, m, "profileID", "nvmlGpuInstanceGetInfo", (*instance).GetInfo)
	if info == nil {
		return d
	}
	d.ProfileID = int(info.ProfileId)
	d.Placement = Placement{Start: int(info.Placement.Start), Size: int(info.Placement.Size)}
	compute := ask(r, m, "profile", "nvmlGpuInstanceGetComputeInstanceById", func() (nvml.ComputeInstance, nvml.Return) {
		return (*instance).GetComputeInstanceById(*ci)
	})
	if compute == nil {
		return d
	}
	computeInfo := ask(r, m, "profile", "nvmlComputeInstanceGetInfo_v2", (*compute).GetInfo)
	if computeInfo == nil {
		return d
	}
	const symbol = "nvmlGpuInstanceGetComputeInstanceProfileInfo"
	if !r.has(symbol) {
		*m = append(*m, noFunction("profile", symbol))
		return d
	}
	for _, n := range names {
		giProfile, ret := parent.GetGpuInstanceProfileInfo(n.gi)
		if ret != nvml.SUCCESS || giProfile.Id != info.ProfileId {
			continue
		}
		ciProfile, ret := (*instance).GetComputeInstanceProfileInfo(n.ci, n.engine)
		if ret == nvml.SUCCESS && ciProfile.Id == computeInfo.ProfileId {
			d.Profile = n.name
		}
	}
	if d.Profile == "" {
		d.Partial = r.partial(*instance, info.ProfileId, computeInfo.ProfileId, parent)
		lacks(m, "profile", "its compute instance does not take all of its GPU instance")
	}
	return d
}
