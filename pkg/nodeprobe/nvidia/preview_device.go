// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
)

type preview struct {
	Settings
	findings *Findings
}

// slot is one physical GPU with the driver's devices.
type slot struct {
	gpu     *GPU
	devices []resourceapi.Device
	// counters is the GPU's counter set, if it has one.
	counters []resourceapi.CounterSet
}

// quantity returns a number in the driver's format.
func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }

// CannotStartError means that the driver does not start on a machine, so that there are no
// slices.
type CannotStartError struct{ Reason string }

// Error returns the reason.
func (e *CannotStartError) Error() string {
	return "the driver would publish nothing: " + e.Reason
}

type (
	attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	capacities = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity
)

func text(s string) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{StringValue: &s} }

// version completes a version of two parts, and drops leading zeros. Invalid text does not
// get here, see [preview.gpus].
func version(s string) resourceapi.DeviceAttribute {
	v, err := semver.ParseTolerant(s)
	if err != nil {
		return resourceapi.DeviceAttribute{VersionValue: &s}
	}
	s = v.String()
	return resourceapi.DeviceAttribute{VersionValue: &s}
}

// fullGPU returns a GPU as a whole: deviceinfo.go, lines 170-218 and 249-256, and
// partitions.go, lines 34-43.
func (p *preview) fullGPU(g *GPU) resourceapi.Device {
	attrs := p.common(g)
	attrs["type"] = text("gpu")
	attrs["uuid"] = text(g.UUID)
	return resourceapi.Device{Name: gpuName(g), Attributes: attrs, Capacity: wholeMemory(g)}
}

func wholeMemory(g *GPU) capacities {
	if g.MemoryBytes == nil {
		return nil
	}
	return capacities{"memory": {Value: quantity(int64(*g.MemoryBytes))}}
}

// gpuName returns the driver's name: deviceinfo.go, lines 124-126.
func gpuName(g *GPU) string { return fmt.Sprintf("gpu-%d", *g.Minor) }

// common returns the attributes that a GPU and its partitions share: deviceinfo.go, lines
// 170-211 and 333-351, and mig.go, lines 139-187.
func (p *preview) common(g *GPU) attributes {
	attrs := attributes{
		"productName":           text(g.Product),
		"brand":                 text(g.Brand),
		"architecture":          text(g.Architecture),
		"cudaComputeCapability": version(g.ComputeCapability),
		"driverVersion":         version(p.findings.DriverVersion),
		"cudaDriverVersion":     version(p.findings.CUDAVersion),

		deviceattribute.StandardDeviceAttributePCIBusID: text(g.PCIBusID),
	}
	if g.PCIeRoot != "" {
		attrs[deviceattribute.StandardDeviceAttributePCIeRoot] = text(g.PCIeRoot)
	}
	if g.NUMANode != nil && *g.NUMANode >= 0 {
		numa := int64(*g.NUMANode)
		attrs[deviceattribute.StandardDeviceAttributeNUMANode] = resourceapi.DeviceAttribute{IntValue: &numa}
		if p.ListAttributes {
			attrs[deviceattribute.StandardDeviceAttributeNUMANode] = resourceapi.DeviceAttribute{IntValues: []int64{numa}}
		}
	}
	if g.AddressingMode != "" {
		attrs["addressingMode"] = text(g.AddressingMode)
	}
	return attrs
}

// share lets several claims share a device: consumable_shares.go, lines 40-119.
func (p *preview) share(device *resourceapi.Device) {
	if p.Shares == "" || p.Shares == sharesDisabled {
		return
	}
	yes := true
	device.AllowMultipleAllocations = &yes
	memory, ok := device.Capacity["memory"]
	if !ok {
		return
	}
	step := resource.MustParse("1Mi")
	memory.Value = quantity(memory.Value.Value() / step.Value() * step.Value())
	smallest, normal := resource.MustParse("0"), resource.MustParse("0")
	if p.Shares == sharesMemory {
		smallest, normal = step, memory.Value
	}
	memory.RequestPolicy = inSteps(normal, smallest, memory.Value, step)
	device.Capacity["memory"] = memory
	if n, err := strconv.ParseInt(p.Shares, 10, 64); err == nil {
		one, all := *resource.NewQuantity(1, resource.DecimalSI), *resource.NewQuantity(n, resource.DecimalSI)
		device.Capacity["shares"] = resourceapi.DeviceCapacity{Value: all, RequestPolicy: inSteps(one, one, all, one)}
	}
}

func inSteps(normal, smallest, largest, step resource.Quantity) *resourceapi.CapacityRequestPolicy {
	return &resourceapi.CapacityRequestPolicy{
		Default:    &normal,
		ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &smallest, Max: &largest, Step: &step},
	}
}

// dimension is a resource of a GPU that partitions divide.
type dimension struct {
	capacity resourceapi.QualifiedName
	// counter is the same name in the form for counters: partitions.go, lines 179-186.
	counter string
	of      func(*MIGProfile) int64
}

// dimensions returns the dimensions of mig.go, lines 118-135.
func dimensions() []dimension {
	return []dimension{
		{"multiprocessors", "multiprocessors", func(p *MIGProfile) int64 { return int64(p.Multiprocessors) }},
		{"copyEngines", "copy-engines", func(p *MIGProfile) int64 { return int64(p.CopyEngines) }},
		{"decoders", "decoders", func(p *MIGProfile) int64 { return int64(p.Decoders) }},
		{"encoders", "encoders", func(p *MIGProfile) int64 { return int64(p.Encoders) }},
		{"jpegEngines", "jpeg-engines", func(p *MIGProfile) int64 { return int64(p.JPEGEngines) }},
		{"ofaEngines", "ofa-engines", func(p *MIGProfile) int64 { return int64(p.OFAEngines) }},
		{"memory", "memory", func(p *MIGProfile) int64 { return int64(p.MemoryMiB) << 20 }},
	}
}

// dynamicCapable reports whether the driver makes partitions of a GPU itself:
// nvlib.go, lines 1517-1551.
func dynamicCapable(g *GPU) bool {
	return g.MIG != nil && g.Virtualization != virtualGPU && (canToggle(g) || g.MIG.Current)
}

// canToggle reports whether MIG can be switched on and off without a reset, from Hopper on:
// nvlib.go, lines 1506-1515. NVML's numbers of architectures ascend with time, with Ada
// before Hopper; unknown has the highest.
func canToggle(g *GPU) bool {
	return !slices.Contains([]string{"Kepler", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada Lovelace"}, g.Architecture)
}

// placed returns the profiles with a placement; the others do not count.
func placed(g *GPU) []*MIGProfile {
	var list []*MIGProfile
	for i := range g.MIGProfiles {
		if len(g.MIGProfiles[i].Placements) > 0 {
			list = append(list, &g.MIGProfiles[i])
		}
	}
	return list
}

// largest returns the largest amount of something in any partition: nvlib.go, lines
// 1298-1304.
func largest(g *GPU, of func(*MIGProfile) int64) int64 {
	var most int64
	for _, p := range placed(g) {
		most = max(most, of(p))
	}
	return most
}

// memorySlices returns the memory slices of the largest partition: nvlib.go, lines
// 1293-1296.
func memorySlices(g *GPU) int {
	most := 0
	for _, p := range placed(g) {
		for _, at := range p.Placements {
			most = max(most, at.Size)
		}
	}
	return most
}

// wholeCounters returns the counters of a GPU as a whole: partitions.go, lines 70-99.
func wholeCounters(g *GPU) map[string]resourceapi.Counter {
	if len(placed(g)) == 0 {
		return nil
	}
	counters := map[string]resourceapi.Counter{}
	for _, d := range dimensions() {
		counters[d.counter] = resourceapi.Counter{Value: quantity(largest(g, d.of))}
	}
	addMemorySlices(counters, Placement{Size: memorySlices(g)})
	return counters
}

func addMemorySlices(counters map[string]resourceapi.Counter, at Placement) {
	for i := at.Start; i < at.Start+at.Size; i++ {
		counters[fmt.Sprintf("memory-slice-%d", i)] = resourceapi.Counter{Value: quantity(1)}
	}
}

func counterSetName(g *GPU) string { return gpuName(g) + "-counter-set" }

func counterSets(g *GPU) []resourceapi.CounterSet {
	counters := wholeCounters(g)
	if counters == nil {
		return nil
	}
	return []resourceapi.CounterSet{{Name: counterSetName(g), Counters: counters}}
}

// dynamicGPU returns a whole GPU that could also be divided: partitions.go, lines 53-58 and
// 102-117.
func (p *preview) dynamicGPU(g *GPU) resourceapi.Device {
	device := p.fullGPU(g)
	if !dynamicCapable(g) {
		// Its profiles are not looked at.
		return device
	}
	counters := wholeCounters(g)
	if counters == nil {
		return device
	}
	device.Capacity = capacities{}
	for _, d := range dimensions() {
		device.Capacity[d.capacity] = resourceapi.DeviceCapacity{Value: quantity(largest(g, d.of))}
	}
	device.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: counterSetName(g), Counters: counters}}
	return device
}

// dynamicMIG returns all possible partitions: nvlib.go, lines 1253-1307, and partitions.go,
// lines 120-128 and 171-214.
func (p *preview) dynamicMIG(g *GPU) []resourceapi.Device {
	var devices []resourceapi.Device
	for _, profile := range placed(g) {
		for _, at := range profile.Placements {
			counters := map[string]resourceapi.Counter{}
			for _, d := range dimensions() {
				counters[d.counter] = resourceapi.Counter{Value: quantity(d.of(profile))}
			}
			addMemorySlices(counters, at)
			device := p.migDevice(g, profile, at.Start)
			device.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: counterSetName(g), Counters: counters}}
			devices = append(devices, device)
		}
	}
	return devices
}

// staticMIG returns a partition that the driver did not make: deviceinfo.go, lines 258-281,
// and nvlib.go, lines 767-855.
func (p *preview) staticMIG(g *GPU, d *MIGDevice) (*resourceapi.Device, error) {
	if len(d.Missing) > 0 {
		return nil, &CannotStartError{fmt.Sprintf("GPU %d: %s of MIG device %s is not known: %s", g.Index, d.Missing[0].Value, d.UUID, d.Missing[0].Reason)}
	}
	i := slices.IndexFunc(g.MIGProfiles, func(p MIGProfile) bool { return p.ID == d.ProfileID && p.Name == d.Profile && len(p.Missing) == 0 })
	if i < 0 {
		return nil, &CannotStartError{fmt.Sprintf("GPU %d: MIG device %s has the unknown profile %d", g.Index, d.UUID, d.ProfileID)}
	}
	device := p.migDevice(g, &g.MIGProfiles[i], d.Placement.Start)
	device.Attributes["uuid"] = text(d.UUID)
	for n := d.Placement.Start; n < d.Placement.Start+d.Placement.Size; n++ {
		device.Capacity[resourceapi.QualifiedName(fmt.Sprintf("memorySlice%d", n))] = resourceapi.DeviceCapacity{Value: quantity(1)}
	}
	return &device, nil
}

// migDevice returns the common part of existing and possible partitions: mig.go, lines
// 111-187.
func (p *preview) migDevice(g *GPU, profile *MIGProfile, start int) resourceapi.Device {
	attrs := p.common(g)
	attrs["type"] = text("mig")
	attrs["parentUUID"] = text(g.UUID)
	attrs["profile"] = text(profile.Name)
	device := resourceapi.Device{
		Name:       fmt.Sprintf("gpu-%d-mig-%s-%d-%d", *g.Minor, inName(profile.Name), profile.ID, start),
		Attributes: attrs,
		Capacity:   capacities{},
	}
	for _, d := range dimensions() {
		device.Capacity[d.capacity] = resourceapi.DeviceCapacity{Value: quantity(d.of(profile))}
	}
	return device
}

// inName converts the name of a profile for the name of a device: mig.go, lines 112 and
// 249-262.
func inName(profile string) string {
	name := strings.ToLower(strings.ReplaceAll(profile, ".", ""))
	return strings.Trim(regexp.MustCompile(`[^a-z0-9-]`).ReplaceAllString(name, "-"), "-")
}
