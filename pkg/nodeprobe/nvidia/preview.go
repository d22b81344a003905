// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	// DriverName is the name of the driver whose slices are previewed, its kubelet plugin
	// for GPUs.
	DriverName = "gpu.nvidia.com"
	// DriverSource is the commit of the driver's source that the preview follows.
	DriverSource = "kubernetes-sigs/dra-driver-nvidia-gpu@95932046"
	// DriverVersion is the version that the source gives itself.
	DriverVersion = "v0.5.0-dev"
)

// Classes returns the DeviceClasses that the driver's Helm chart installs for its devices
// (deployments/helm/dra-driver-nvidia-gpu/templates).
func Classes() []string {
	return []string{"gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"}
}

// Preview computes the slices that the driver publishes for a machine, in the driver's
// order; where that is random, devices are in the order of PCI bus IDs and names. Line
// numbers here and below are lines of [DriverSource], below cmd/gpu-kubelet-plugin.
//
// Values that the driver learns later are missing: taints, and the owner, generation and
// generated name of each slice. If the driver would not start, the error is a
// [CannotStartError].
func Preview(f *Findings, settings Settings) ([]*resourceapi.ResourceSlice, error) {
	p := &preview{Settings: settings, findings: f}
	gpus, err := p.gpus()
	if err != nil {
		return nil, err
	}
	slots, err := p.allocatable(gpus)
	if err != nil {
		return nil, err
	}
	specs := p.layout(slots)
	list := make([]*resourceapi.ResourceSlice, 0, len(specs))
	for i, spec := range specs {
		slice := &resourceapi.ResourceSlice{
			TypeMeta: metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "ResourceSlice"},
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%s-%d", settings.Node, DriverName, i),
				Annotations: map[string]string{
					snapshot.PreviewAnnotation: DriverSource,
					snapshot.ClassesAnnotation: strings.Join(Classes(), ","),
				},
			},
			Spec: spec,
		}
		slice.Spec.Driver = DriverName
		slice.Spec.NodeName = &settings.Node
		slice.Spec.Pool = resourceapi.ResourcePool{Name: settings.Node, Generation: 1, ResourceSliceCount: int64(len(specs))}
		if f.Simulated != "" {
			slice.Annotations[snapshot.SimulatedAnnotation] = f.Simulated
		}
		list = append(list, slice)
	}
	return list, nil
}

// gpus returns the GPUs that the driver uses, in the order of their PCI bus IDs. It fails
// if a value that the driver requires is not known: nvlib.go, lines 466-642 and 1517-1528.
func (p *preview) gpus() ([]*GPU, error) {
	f := p.findings
	if len(f.GPUs) == 0 && f.DriverVersion == "" && len(f.Missing) == 0 {
		// newDeviceLib, lines 57-66.
		return nil, &CannotStartError{"there is no NVIDIA GPU, or no NVML"}
	}
	for _, each := range []struct{ field, text string }{{"driverVersion", f.DriverVersion}, {"cudaVersion", f.CUDAVersion}} {
		if len(f.GPUs) == 0 {
			break
		}
		if gone := missing(f.Missing, each.field); gone != nil {
			return nil, &CannotStartError{fmt.Sprintf("%s is not known: %s", each.field, gone.Reason)}
		}
		if _, err := semver.ParseTolerant(each.text); err != nil {
			return nil, &CannotStartError{fmt.Sprintf("%s %q is no version", each.field, each.text)}
		}
	}
	var list []*GPU
	for i := range f.GPUs {
		g := &f.GPUs[i]
		if slices.Contains([]string{"DGX Display", "NVIDIA DGX Display"}, g.Product) {
			// go-nvlib, which lists devices for the driver, leaves these out.
			continue
		}
		if err := p.usable(g); err != nil {
			return nil, err
		}
		list = append(list, g)
	}
	slices.SortStableFunc(list, func(a, b *GPU) int { return cmp.Compare(a.PCIBusID, b.PCIBusID) })
	return list, nil
}

func (p *preview) usable(g *GPU) error {
	// The values that the driver reads, and whether it works without them.
	needs := map[string]bool{
		"minor": false, "uuid": false, "product": false, "brand": false, "architecture": false, "computeCapability": false,
		"pciBusID": false, "memoryBytes": true, "mig": true, "addressingMode": true, "migProfiles": true, "migDevices": false,
	}
	if p.DynamicMIG && g.MIG != nil {
		needs["virtualization"] = false
	}
	if p.DynamicMIG && dynamicCapable(g) {
		// Existing partitions do not matter, possible ones do.
		needs["memoryBytes"] = false
		delete(needs, "migDevices")
	}
	for _, field := range slices.Sorted(maps.Keys(needs)) {
		if gone := missing(g.Missing, field); gone != nil && (!gone.Unsupported || !needs[field]) {
			return &CannotStartError{fmt.Sprintf("GPU %d: %s is not known: %s", g.Index, field, gone.Reason)}
		}
	}
	for i := range g.MIGProfiles {
		if gone := missing(g.MIGProfiles[i].Missing, "name"); gone != nil {
			return &CannotStartError{fmt.Sprintf("GPU %d: the name of MIG profile ID %d is not known: %s", g.Index, g.MIGProfiles[i].ID, gone.Reason)}
		}
		if gone := missing(g.MIGProfiles[i].Missing, "placements"); gone != nil && !gone.Unsupported {
			return &CannotStartError{fmt.Sprintf("GPU %d: the placements of MIG profile %s are not known: %s", g.Index, g.MIGProfiles[i].Name, gone.Reason)}
		}
	}
	if g.PCIBusID == "" {
		return &CannotStartError{fmt.Sprintf("GPU %d has no PCI bus ID", g.Index)}
	}
	return nil
}

// allocatable makes the devices: nvlib.go, lines 218-341.
func (p *preview) allocatable(gpus []*GPU) ([]slot, error) {
	slots := make([]slot, 0, len(gpus))
	for _, g := range gpus {
		s := slot{gpu: g}
		enabled := g.MIG != nil && g.MIG.Current
		switch {
		case p.DynamicMIG && dynamicCapable(g):
			s.counters = counterSets(g)
			if !enabled || canToggle(g) {
				s.devices = append(s.devices, p.dynamicGPU(g))
			}
			s.devices = append(s.devices, p.dynamicMIG(g)...)
		case !enabled:
			if p.DynamicMIG {
				s.devices = append(s.devices, p.dynamicGPU(g))
			} else {
				s.devices = append(s.devices, p.fullGPU(g))
			}
		case p.DynamicMIG && len(g.MIGDevices) > 0:
			// partitions.go, lines 223-224.
			return nil, &CannotStartError{fmt.Sprintf("GPU %d has MIG devices that it cannot make itself, which it does not publish with the feature gate %s", g.Index, gateDynamicMIG)}
		default:
			for i := range g.MIGDevices {
				device, err := p.staticMIG(g, &g.MIGDevices[i])
				if err != nil {
					return nil, err
				}
				s.devices = append(s.devices, *device)
			}
		}
		for i := range s.devices {
			p.share(&s.devices[i])
			// The capacity of the GPU as a whole is the map that its counter set is
			// made from afterwards, with what sharing has added: partitions.go, line
			// 55.
			if shares, ok := s.devices[i].Capacity["shares"]; ok && s.devices[i].Name == gpuName(g) && len(s.counters) > 0 {
				s.counters[0].Counters["shares"] = resourceapi.Counter{Value: shares.Value}
			}
		}
		slices.SortFunc(s.devices, func(a, b resourceapi.Device) int { return cmp.Compare(a.Name, b.Name) })
		slots = append(slots, s)
	}
	return slots, nil
}

// layout distributes the devices to slices: driver.go, lines 201-307 with the feature gate
// DynamicMIG, and 480-493 without.
func (p *preview) layout(slots []slot) []resourceapi.ResourceSliceSpec {
	if !p.DynamicMIG {
		var all resourceapi.ResourceSliceSpec
		for _, s := range slots {
			all.Devices = append(all.Devices, s.devices...)
		}
		return []resourceapi.ResourceSliceSpec{all}
	}
	// Lines 76-119: without a GPU that can be divided, it does not even ask for
	// the version of the cluster.
	split := p.Split && slices.ContainsFunc(slots, func(s slot) bool { return s.gpu.MIG != nil })
	var specs []resourceapi.ResourceSliceSpec
	var counters resourceapi.ResourceSliceSpec
	for _, s := range slots {
		spec := resourceapi.ResourceSliceSpec{Devices: s.devices}
		// Counters come with the first device.
		if len(s.devices) > 0 {
			if split {
				counters.SharedCounters = append(counters.SharedCounters, s.counters...)
			} else {
				spec.SharedCounters = s.counters
			}
		}
		specs = append(specs, spec)
	}
	if split {
		specs = append([]resourceapi.ResourceSliceSpec{counters}, specs...)
	}
	return specs
}
