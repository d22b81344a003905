// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"fmt"
	"strconv"

	"github.com/blang/semver/v4"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
)

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
