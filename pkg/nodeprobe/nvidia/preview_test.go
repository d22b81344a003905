// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// h100 returns a machine with one GPU of which everything is known.
func h100(t *testing.T) *Findings {
	t.Helper()
	f, err := simulate("dgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	numa := 1
	g := &f.GPUs[3]
	g.PCIeRoot, g.NUMANode, g.AddressingMode = "pci0000:15", &numa, "HMM"
	g.MIGDevices = []MIGDevice{{UUID: "MIG-1", GPUInstanceID: 2, ComputeInstanceID: 0, Placement: Placement{Start: 4, Size: 4}, Profile: "3g.40gb", ProfileID: 9}}
	f.GPUs = f.GPUs[3:4]
	return f
}

func migOn(f *Findings) *Findings {
	f.GPUs[0].MIG = &MIG{Current: true, Pending: true}
	return f
}

func devicesOf(t *testing.T, f *Findings, s Settings) map[string]map[string]string {
	t.Helper()
	before, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	s.Node = "node"
	list, err := Preview(f, s)
	if err != nil {
		t.Fatal(err)
	}
	if after, _ := json.Marshal(f); string(after) != string(before) {
		t.Error("the findings were changed")
	}
	all := parts(list)
	for name, counters := range all.counters {
		all.devices[name] = counters
	}
	return all.devices
}

// TestPreviewValues covers each published value, with the value of NVML or sysfs behind it
// and the lines of the driver's source (see DriverSource, below cmd/gpu-kubelet-plugin).
// TestPreviewIsTheDrivers covers all devices of all machines.
func TestPreviewValues(t *testing.T) {
	common := []struct{ path, want, from, source string }{
		{"attributes[productName]", `"NVIDIA H100 80GB HBM3"`, "nvmlDeviceGetName", "nvlib.go:499 deviceinfo.go:178 mig.go:150"},
		{"attributes[brand]", `"Nvidia"`, "nvmlDeviceGetBrand, 14", "nvlib.go:507 deviceinfo.go:181 mig.go:153"},
		{"attributes[architecture]", `"Hopper"`, "nvmlDeviceGetArchitecture, 9", "nvlib.go:503 deviceinfo.go:184 mig.go:156"},
		{"attributes[cudaComputeCapability]", "version 9.0.0", "nvmlDeviceGetCudaComputeCapability, 9 and 0", "nvlib.go:511 deviceinfo.go:187 mig.go:159"},
		{"attributes[driverVersion]", "version 550.54.15", "nvmlSystemGetDriverVersion", "nvlib.go:515 deviceinfo.go:190 mig.go:162"},
		{"attributes[cudaDriverVersion]", "version 12.4.0", "nvmlSystemGetCudaDriverVersion, 12040", "nvlib.go:519,624 deviceinfo.go:193 mig.go:165"},
		{"attributes[addressingMode]", `"HMM"`, "nvmlDeviceGetAddressingMode", "nvlib.go:540 deviceinfo.go:207 mig.go:170"},
		{"attributes[resource.kubernetes.io/pciBusID]", `"0000:03:00.0"`, "nvmlDeviceGetPciInfo", "nvlib.go:523,547 deviceinfo.go:198 mig.go:176"},
		{"attributes[resource.kubernetes.io/pcieRoot]", `"pci0000:15"`, "sysfs", "nvlib.go:554 deviceinfo.go:201 mig.go:180"},
		{"attributes[resource.kubernetes.io/numaNode]", `{"int":1}`, "sysfs", "nvlib.go:528 deviceinfo.go:348 mig.go:184"},
	}
	type row struct{ path, want, from, source string }
	for name, test := range map[string]struct {
		found    *Findings
		settings Settings
		device   string
		rows     []row
	}{
		"the GPU as a whole": {h100(t), Settings{}, "gpu-3", []row{
			{"attributes[type]", `"gpu"`, "", "deviceinfo.go:172"},
			{"attributes[uuid]", "", "nvmlDeviceGetUUID", "nvlib.go:471 deviceinfo.go:175"},
			{"capacity[memory]", "81559Mi", "nvmlDeviceGetMemoryInfo, 85520809984", "nvlib.go:490 partitions.go:39"},
		}},
		"a MIG device that is there": {migOn(h100(t)), Settings{}, "gpu-3-mig-3g40gb-9-4", []row{
			{"attributes[type]", `"mig"`, "", "mig.go:141"},
			{"attributes[uuid]", `"MIG-1"`, "nvmlDeviceGetUUID of the MIG device", "nvlib.go:793 deviceinfo.go:261"},
			{"attributes[parentUUID]", "", "nvmlDeviceGetUUID", "mig.go:144"},
			{"attributes[profile]", `"3g.40gb"`, "nvmlGpuInstanceGetInfo, profile 9", "nvlib.go:801-831 mig.go:147"},
			{"capacity[multiprocessors]", "60", "multiprocessorCount", "mig.go:120"},
			{"capacity[copyEngines]", "3", "copyEngineCount", "mig.go:121"},
			{"capacity[decoders]", "3", "decoderCount", "mig.go:122"},
			{"capacity[encoders]", "0", "encoderCount", "mig.go:123"},
			{"capacity[jpegEngines]", "3", "jpegCount", "mig.go:124"},
			{"capacity[ofaEngines]", "0", "ofaCount", "mig.go:125"},
			{"capacity[memory]", "40448Mi", "memorySizeMB, 40448", "mig.go:133"},
			{"capacity[memorySlice4]", "1", "placement 4, size 4", "deviceinfo.go:273"},
			{"capacity[memorySlice5]", "1", "placement 4, size 4", "deviceinfo.go:273"},
			{"capacity[memorySlice6]", "1", "placement 4, size 4", "deviceinfo.go:273"},
			{"capacity[memorySlice7]", "1", "placement 4, size 4", "deviceinfo.go:273"},
		}},
		"a MIG device that could be": {h100(t), Settings{DynamicMIG: true, Split: true}, "gpu-3-mig-1g10gb-me-20-5", []row{
			{"attributes[type]", `"mig"`, "", "mig.go:141"},
			{"attributes[parentUUID]", "", "nvmlDeviceGetUUID", "mig.go:144"},
			{"attributes[profile]", `"1g.10gb+me"`, "profile 20", "nvlib.go:1253 mig.go:147"},
			{"capacity[multiprocessors]", "16", "multiprocessorCount", "mig.go:120"},
			{"capacity[copyEngines]", "1", "copyEngineCount", "mig.go:121"},
			{"capacity[decoders]", "1", "decoderCount", "mig.go:122"},
			{"capacity[encoders]", "0", "encoderCount", "mig.go:123"},
			{"capacity[jpegEngines]", "1", "jpegCount", "mig.go:124"},
			{"capacity[ofaEngines]", "1", "ofaCount", "mig.go:125"},
			{"capacity[memory]", "9984Mi", "memorySizeMB, 9984", "mig.go:133"},
			{"consumesCounters[gpu-3-counter-set][multiprocessors]", "16", "multiprocessorCount", "partitions.go:179,212"},
			{"consumesCounters[gpu-3-counter-set][copy-engines]", "1", "copyEngineCount", "partitions.go:183"},
			{"consumesCounters[gpu-3-counter-set][decoders]", "1", "decoderCount", "partitions.go:183"},
			{"consumesCounters[gpu-3-counter-set][encoders]", "0", "encoderCount", "partitions.go:183"},
			{"consumesCounters[gpu-3-counter-set][jpeg-engines]", "1", "jpegCount", "partitions.go:183"},
			{"consumesCounters[gpu-3-counter-set][ofa-engines]", "1", "ofaCount", "partitions.go:183"},
			{"consumesCounters[gpu-3-counter-set][memory]", "9984Mi", "memorySizeMB", "partitions.go:183"},
			{"consumesCounters[gpu-3-counter-set][memory-slice-5]", "1", "placement 5, size 1", "partitions.go:239"},
		}},
	} {
		got := devicesOf(t, test.found, test.settings)[test.device]
		want := fields{}
		for _, r := range common {
			want[r.path] = r.want
		}
		for _, r := range test.rows {
			want[r.path] = r.want
			if r.want == "" {
				want[r.path] = `"` + test.found.GPUs[0].UUID + `"`
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestPreviewCounterSets(t *testing.T) {
	got := devicesOf(t, h100(t), Settings{DynamicMIG: true})["gpu-3-counter-set"]
	// The largest of each in any profile (nvlib.go:1301), and as many memory
	// slices as the largest takes (nvlib.go:1296).
	want := fields{
		"counters[multiprocessors]": "132", "counters[copy-engines]": "8", "counters[decoders]": "7", "counters[encoders]": "0",
		"counters[jpeg-engines]": "7", "counters[ofa-engines]": "1", "counters[memory]": "81152Mi",
		"counters[memory-slice-0]": "1", "counters[memory-slice-1]": "1", "counters[memory-slice-2]": "1", "counters[memory-slice-3]": "1",
		"counters[memory-slice-4]": "1", "counters[memory-slice-5]": "1", "counters[memory-slice-6]": "1", "counters[memory-slice-7]": "1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPreviewListAttributes(t *testing.T) {
	got := devicesOf(t, h100(t), Settings{ListAttributes: true})["gpu-3"]["attributes[resource.kubernetes.io/numaNode]"]
	if got != `{"ints":[1]}` {
		t.Errorf("NUMA node as a list: %s", got)
	}
}

func TestPreviewSlices(t *testing.T) {
	list, err := Preview(h100(t), Settings{Node: "node-1", DynamicMIG: true, Split: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 {
		t.Fatalf("%d slices, want one for counters and one for the GPU", len(list))
	}
	for _, s := range list {
		if s.Spec.Driver != "gpu.nvidia.com" || *s.Spec.NodeName != "node-1" || s.Spec.Pool != (resourceapi.ResourcePool{Name: "node-1", Generation: 1, ResourceSliceCount: 2}) {
			t.Errorf("slice %s: %+v", s.Name, s.Spec.Pool)
		}
		if s.Annotations[snapshot.SimulatedAnnotation] != "dgx-h100" || s.Kind != "ResourceSlice" {
			t.Errorf("slice %s does not say that it is simulated: %v", s.Name, s.Annotations)
		}
	}
}

func TestPreviewCannotStart(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*Findings)
		settings Settings
		want     string
	}{
		"no driver version":        {func(f *Findings) { lacks(&f.Missing, "driverVersion", "Timeout") }, Settings{}, "driverVersion is not known: Timeout"},
		"a version of four parts":  {func(f *Findings) { f.DriverVersion = "1.2.3.4" }, Settings{}, `driverVersion "1.2.3.4" is no version`},
		"no minor number":          {func(f *Findings) { lacks(&f.GPUs[0].Missing, "minor", "Unknown Error") }, Settings{}, "GPU 3: minor is not known: Unknown Error"},
		"memory refused":           {func(f *Findings) { lacks(&f.GPUs[0].Missing, "memoryBytes", "Unknown Error") }, Settings{}, "memoryBytes is not known"},
		"virtualization not known": {func(f *Findings) { lacks(&f.GPUs[0].Missing, "virtualization", "Unknown Error") }, Settings{DynamicMIG: true}, "virtualization is not known"},
		"a partition in a partition": {func(f *Findings) {
			migOn(f).GPUs[0].MIGDevices[0].Missing = []Missing{{Value: "profile", Reason: "its compute instance does not take all of its GPU instance"}}
		}, Settings{}, "profile of MIG device MIG-1 is not known"},
		"MIG devices of a hypervisor": {func(f *Findings) { migOn(f).GPUs[0].Virtualization = virtualGPU }, Settings{DynamicMIG: true}, "MIG devices that it cannot make itself"},
		"no NVML":                     {func(f *Findings) { *f = Findings{} }, Settings{}, "there is no NVIDIA GPU, or no NVML"},
	} {
		f := h100(t)
		test.change(f)
		_, err := Preview(f, test.settings)
		var cannot *CannotStartError
		if !errors.As(err, &cannot) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestPreviewWithout covers values that the driver does not need.
func TestPreviewWithout(t *testing.T) {
	f := h100(t)
	g := &f.GPUs[0]
	for _, value := range []string{"memoryBytes", "mig", "addressingMode"} {
		g.Missing = append(g.Missing, Missing{Value: value, Reason: "Not Supported", Unsupported: true})
	}
	lacks(&g.Missing, "virtualization", "Unknown Error")
	g.MemoryBytes, g.MIG, g.AddressingMode, g.PCIeRoot, g.NUMANode = nil, nil, "", "", nil
	got := devicesOf(t, f, Settings{DynamicMIG: true})["gpu-3"]
	for _, path := range []string{"capacity[memory]", "attributes[addressingMode]", "attributes[resource.kubernetes.io/pcieRoot]", "attributes[resource.kubernetes.io/numaNode]"} {
		if v, ok := got[path]; ok {
			t.Errorf("%s is made up: %s", path, v)
		}
	}
	f.GPUs[0].Product = "NVIDIA DGX Display"
	if got := devicesOf(t, f, Settings{}); len(got) != 0 {
		t.Errorf("a display is published: %v", got)
	}
}

func TestConfigure(t *testing.T) {
	for name, test := range map[string]struct {
		gates  map[string]bool
		shares string
		want   string
	}{
		"defaults":            {nil, "", ""},
		"shares":              {map[string]bool{gateShares: true}, "4", ""},
		"unknown":             {map[string]bool{"DynamicMig": true}, "", `no feature gate "DynamicMig"`},
		"passthrough":         {map[string]bool{gatePassthrough: true}, "", "cannot be known"},
		"partitions":          {map[string]bool{gatePartitioning: true}, "", "cannot be known"},
		"both":                {map[string]bool{gateDynamicMIG: true, gateMPS: true}, "", "does not start with both"},
		"all of a kind":       {map[string]bool{"AllAlpha": true}, "", "name them one by one"},
		"logs":                {map[string]bool{"ContextualLogging": false}, "", ""},
		"metadata":            {map[string]bool{"DeviceMetadata": true}, "", "does not start with DeviceMetadata without PassthroughSupport"},
		"no DNS names":        {map[string]bool{"IMEXDaemonsWithDNSNames": false}, "", "does not start with ComputeDomainCliques without IMEXDaemonsWithDNSNames"},
		"neither":             {map[string]bool{"IMEXDaemonsWithDNSNames": false, "ComputeDomainCliques": false}, "", ""},
		"shares without gate": {nil, "memory", "without its feature gate ConsumableShares"},
		"wrong shares":        {map[string]bool{gateShares: true}, "-1", "has to be"},
	} {
		err := (&Settings{}).Configure(test.gates, test.shares)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
