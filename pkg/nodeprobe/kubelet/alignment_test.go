// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package kubelet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// put writes files of a node.
func put(t *testing.T, host *node.Host, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(host.Root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// twoNodes puts CPUs 0 and 1 on NUMA node 0, 2 to 4 on NUMA node 1, and a PCI device on each.
func twoNodes(t *testing.T, host *node.Host) {
	t.Helper()
	put(t, host, map[string]string{
		"sys/devices/system/cpu/cpu0/node0/x": "", "sys/devices/system/cpu/cpu1/node0/x": "",
		"sys/devices/system/cpu/cpu2/node1/x": "", "sys/devices/system/cpu/cpu3/node1/x": "", "sys/devices/system/cpu/cpu4/node1/x": "",
		"sys/bus/pci/devices/0000:01:00.0/numa_node": "0\n", "sys/bus/pci/devices/0000:81:00.0/numa_node": "1\n",
		"sys/bus/pci/devices/0000:02:00.0/numa_node": "-1\n", "secret": "1",
	})
}

// devicesAt returns slices whose devices say in different ways where they are.
func devicesAt() []*resourceapi.ResourceSlice {
	text := func(s string) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{StringValue: &s} }
	numa := func(ids ...int64) resourceapi.DeviceAttribute {
		if len(ids) == 1 {
			return resourceapi.DeviceAttribute{IntValue: &ids[0]}
		}
		return resourceapi.DeviceAttribute{IntValues: ids}
	}
	const numaNode, bus = "resource.kubernetes.io/numaNode", "resource.kubernetes.io/pciBusID"
	slice := func(generation int64, devices ...resourceapi.Device) *resourceapi.ResourceSlice {
		s := &resourceapi.ResourceSlice{}
		s.Spec.Driver, s.Spec.Devices = "gpu.example.com", devices
		s.Spec.Pool = resourceapi.ResourcePool{Name: "node-a", Generation: generation, ResourceSliceCount: 1}
		return s
	}
	device := func(name string, key resourceapi.QualifiedName, value resourceapi.DeviceAttribute) resourceapi.Device {
		return resourceapi.Device{Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{key: value}}
	}
	return []*resourceapi.ResourceSlice{
		slice(2,
			device("on-0", numaNode, numa(0)), device("on-1", numaNode, numa(1)), device("on-both", numaNode, numa(1, 0)),
			device("pci-0", bus, text("0000:01:00.0")), device("pci-1", bus, text("0000:81:00.0")),
			device("pci-none", bus, text("0000:02:00.0")), device("pci-out", bus, text("../../../../secret")), device("nowhere", "model", text("x"))),
		slice(1, device("on-0", numaNode, numa(1))),
	}
}

// TestAlignment compares where devices, CPUs and memory of a container are.
func TestAlignment(t *testing.T) {
	memory := func(nodes ...int64) []*v1.ContainerMemory {
		topology := &v1.TopologyInfo{}
		for _, id := range nodes {
			topology.Nodes = append(topology.Nodes, &v1.NUMANode{ID: id})
		}
		return []*v1.ContainerMemory{{MemoryType: "memory", Size: 1 << 30, Topology: topology}}
	}
	nic := func(id int64) []*v1.ContainerDevices {
		return []*v1.ContainerDevices{{ResourceName: "example.com/nic", DeviceIds: []string{"eth0"}, Topology: &v1.TopologyInfo{Nodes: []*v1.NUMANode{{ID: id}}}}}
	}
	for name, test := range map[string]struct {
		devices []string
		cpus    []int64
		memory  []*v1.ContainerMemory
		plugin  []*v1.ContainerDevices
		// want is the state and where everything is, empty if nothing is to be said.
		want string
	}{
		"CPUs of the other node":       {[]string{"on-0"}, []int64{2, 3, 4}, nil, nil, "NotAligned: 1 device on NUMA node 0 and CPUs 2-4 on NUMA node 1"},
		"CPUs of the same node":        {[]string{"on-1"}, []int64{2, 4}, memory(1), nil, "Aligned: 1 device on NUMA node 1, CPUs 2,4 on NUMA node 1 and memory on NUMA node 1"},
		"CPUs of both":                 {[]string{"on-1"}, []int64{1, 2}, nil, nil, "NotAligned: 1 device on NUMA node 1, CPUs 1 on NUMA node 0 and CPUs 2 on NUMA node 1"},
		"memory of both":               {[]string{"on-1"}, nil, memory(0, 1), nil, "NotAligned: 1 device on NUMA node 1, memory on NUMA node 0 and memory on NUMA node 1"},
		"a device close to both":       {[]string{"on-both"}, []int64{0}, nil, nil, "Aligned: 1 device on NUMA nodes 0 or 1 and CPUs 0 on NUMA node 0"},
		"devices apart":                {[]string{"on-0", "on-1", "pci-1"}, []int64{0}, nil, nil, "NotAligned: 1 device on NUMA node 0, 2 devices on NUMA node 1 and CPUs 0 on NUMA node 0"},
		"by the kernel":                {[]string{"pci-0"}, []int64{0, 1}, nil, nil, "Aligned: 1 device on NUMA node 0 and CPUs 0-1 on NUMA node 0"},
		"by the kernel, apart":         {[]string{"pci-1"}, []int64{0, 1}, nil, nil, "NotAligned: 1 device on NUMA node 1 and CPUs 0-1 on NUMA node 0"},
		"one place is not known":       {[]string{"on-0", "pci-none"}, []int64{0}, nil, nil, "Undetermined: 1 device on NUMA node 0, 1 device on an unknown NUMA node and CPUs 0 on NUMA node 0"},
		"not known, and apart":         {[]string{"on-0", "nowhere"}, []int64{2}, nil, nil, "NotAligned: 1 device on an unknown NUMA node, 1 device on NUMA node 0 and CPUs 2 on NUMA node 1"},
		"a CPU that is not there":      {[]string{"on-0"}, []int64{9}, nil, nil, "Undetermined: 1 device on NUMA node 0 and CPUs 9 on an unknown NUMA node"},
		"a device plugin":              {[]string{"on-0"}, nil, nil, nic(1), "NotAligned: 1 device on NUMA node 0 and example.com/nic on NUMA node 1"},
		"CPUs from the shared pool":    {[]string{"on-0"}, nil, nil, nil, ""},
		"no place of a device known":   {[]string{"nowhere", "pci-none", "gone"}, []int64{0}, nil, nil, ""},
		"an address that leads out":    {[]string{"pci-out"}, []int64{0}, nil, nil, ""},
		"no devices of claims":         {nil, []int64{0, 2}, nil, nic(1), ""},
		"an older generation is stale": {[]string{"on-0"}, []int64{0}, nil, nil, "Aligned: 1 device on NUMA node 0 and CPUs 0 on NUMA node 0"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := holding("p", "c", test.devices...)
			pod.Containers[0].CpuIds, pod.Containers[0].Memory, pod.Containers[0].Devices = test.cpus, test.memory, test.plugin
			host := serve(t, &lister{pods: []*v1.PodResources{pod}})
			twoNodes(t, host)
			f := Look(t.Context(), host, &snapshot.Snapshot{Slices: devicesAt()})
			got := ""
			if a := f.Pods[0].Containers[0].Alignment; a != nil {
				got = string(a.State) + ": " + PartsText(a.Parts)
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if problem := found(f, node.Problem, checkAlignment, ""); problem != nil {
				t.Errorf("nobody asked for alignment: %+v", problem)
			}
		})
	}
}

// TestRequiredAlignment names what the constraints of a claim require.
func TestRequiredAlignment(t *testing.T) {
	claim := &resourceapi.ResourceClaim{}
	claim.Namespace, claim.Name = "ml", "c"
	for _, name := range []resourceapi.FullyQualifiedName{"resource.kubernetes.io/pcieRoot", "gpu.example.com/model", "resource.kubernetes.io/numaNode", "resource.kubernetes.io/numaNode"} {
		claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints, resourceapi.DeviceConstraint{MatchAttribute: &name})
	}
	pod := holding("p", "c", "on-0")
	pod.Containers[0].CpuIds = []int64{2}
	host := serve(t, &lister{pods: []*v1.PodResources{pod}})
	twoNodes(t, host)
	f := Look(t.Context(), host, &snapshot.Snapshot{Slices: devicesAt(), Claims: []*resourceapi.ResourceClaim{claim}})
	if got := f.Pods[0].Containers[0].Alignment.Required; !slices.Equal(got, []string{"numaNode", "pcieRoot"}) {
		t.Errorf("required %v", got)
	}
}

// TestTopologyPolicy reads the policy of the kubelet, and finds a problem where that admits
// only pods on one NUMA node.
func TestTopologyPolicy(t *testing.T) {
	const single = "kind: KubeletConfiguration\ntopologyManagerPolicy: single-numa-node\n"
	line := func(args ...string) string { return strings.Join(args, "\x00") + "\x00" }
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing is seen":             {nil, ""},
		"the file of kubeadm":         {map[string]string{"k/config.yaml": single}, "single-numa-node"},
		"a file that does not say":    {map[string]string{"k/config.yaml": "kind: KubeletConfiguration\n"}, "none"},
		"not a file that can be read": {map[string]string{"k/config.yaml": "a: [\n"}, ""},
		"the file of the process": {map[string]string{
			"proc/7/cmdline": line("/usr/bin/kubelet", "--root-dir=/k", "--config", "/etc/kubelet.yaml"), "etc/kubelet.yaml": "topologyManagerPolicy: restricted\n", "k/config.yaml": single,
		}, "restricted"},
		"no file":                         {map[string]string{"proc/7/cmdline": line("kubelet", "--root-dir=/k"), "k/config.yaml": single}, "none"},
		"a flag before a file":            {map[string]string{"proc/7/cmdline": line("kubelet", "--root-dir=/k", "--config=/k/config.yaml", "--topology-manager-policy=best-effort"), "k/config.yaml": single}, "best-effort"},
		"a kubelet of somebody else":      {map[string]string{"proc/7/cmdline": line("kubelet", "--topology-manager-policy=best-effort"), "k/config.yaml": single}, "single-numa-node"},
		"two kubelets":                    {map[string]string{"proc/7/cmdline": line("kubelet", "--root-dir=/k"), "proc/8/cmdline": line("kubelet", "--root-dir=/k"), "k/config.yaml": single}, ""},
		"another program, with its flags": {map[string]string{"proc/7/cmdline": line("sh", "kubelet", "--root-dir=/k", "--topology-manager-policy=none"), "k/config.yaml": single}, "single-numa-node"},
		"the last file of a directory": {map[string]string{
			"proc/7/cmdline": line("kubelet", "--root-dir=/k", "--config=/k/config.yaml", "--config-dir=/k/d"), "k/config.yaml": single,
			"k/d/10.conf": "topologyManagerPolicy: restricted\n", "k/d/20.conf": "topologyManagerPolicy: none\n", "k/d/30.conf": "maxPods: 1\n", "k/d/40.yaml": single,
		}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			apart, together := holding("p", "c", "on-0"), holding("q", "d", "on-1")
			apart.Containers[0].CpuIds, together.Containers[0].CpuIds = []int64{2}, []int64{3}
			host := serve(t, &lister{pods: []*v1.PodResources{apart, together}})
			twoNodes(t, host)
			put(t, host, test.files)
			f := Look(t.Context(), host, &snapshot.Snapshot{Slices: devicesAt()})
			if f.TopologyManagerPolicy != test.want {
				t.Errorf("policy %q, want %q", f.TopologyManagerPolicy, test.want)
			}
			const expected = "container main of pod ml/p has 1 device on NUMA node 0 and CPUs 2 on NUMA node 1, although topologyManagerPolicy is single-numa-node"
			if problem := found(f, node.Problem, checkAlignment, expected); (problem != nil) != (test.want == "single-numa-node") {
				t.Errorf("policy %q: %+v", test.want, f.Checks)
			}
			if found(f, node.OK, checkAlignment, "1 aligned, 1 not aligned") == nil {
				t.Errorf("what is aligned: %+v", f.Checks)
			}
		})
	}
}
