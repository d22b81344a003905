// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
	"k8s.io/utils/cpuset"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// align compares the NUMA nodes of the devices, CPUs and memory of each container. The
// Topology Manager does so before it admits a pod, but not for devices of claims: it gets no
// hints about them (NewContainerManager, pkg/kubelet/cm/container_manager_linux.go).
func (f *Findings) align(host *node.Host, snap *snapshot.Snapshot) {
	if snap == nil {
		return
	}
	f.TopologyManagerPolicy = topologyPolicy(host)
	published := publishedDevices(snap)
	states := map[AlignmentState]int{}
	for i := range f.Pods {
		pod := &f.Pods[i]
		for k := range pod.Containers {
			c := &pod.Containers[k]
			if c.Alignment = alignmentOf(c, host, published); c.Alignment == nil {
				continue
			}
			c.Alignment.Required = requiredOf(c, snap)
			states[c.Alignment.State]++
			if c.Alignment.State == NotAligned && f.TopologyManagerPolicy == policySingle {
				f.Checks = append(f.Checks, node.Bad(checkAlignment, "", "container %s of pod %s/%s has %s, although topologyManagerPolicy is %s: the Topology Manager does not look at devices of claims",
					c.Name, pod.Namespace, pod.Name, PartsText(c.Alignment.Parts), policySingle))
			}
		}
	}
	if len(states) > 0 {
		var counts []string
		for _, state := range []struct {
			of   AlignmentState
			text string
		}{{Aligned, "aligned"}, {NotAligned, "not aligned"}, {AlignmentUndetermined, "not known"}} {
			if n := states[state.of]; n > 0 {
				counts = append(counts, fmt.Sprintf("%d %s", n, state.text))
			}
		}
		f.Checks = append(f.Checks, node.Good(checkAlignment, "", "NUMA nodes of containers with devices of claims: %s", strings.Join(counts, ", ")))
	}
}

// publishedDevices returns the devices of the newest generation of each pool.
func publishedDevices(snap *snapshot.Snapshot) map[string]*resourceapi.Device {
	newest := map[snapshot.PoolID]int64{}
	for _, slice := range snap.Slices {
		newest[snapshot.PoolOf(slice)] = max(newest[snapshot.PoolOf(slice)], slice.Spec.Pool.Generation)
	}
	devices := map[string]*resourceapi.Device{}
	for _, slice := range snap.Slices {
		if slice.Spec.Pool.Generation < newest[snapshot.PoolOf(slice)] {
			continue
		}
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			devices[deviceName(slice.Spec.Driver, slice.Spec.Pool.Name, d.Name, "")] = d
		}
	}
	return devices
}

// alignmentOf compares what a container has. It returns nil if there is nothing to compare.
func alignmentOf(c *Container, host *node.Host, published map[string]*resourceapi.Device) *Alignment {
	a := &Alignment{}
	known := false
	for _, claim := range c.Claims {
		for _, d := range claim.Devices {
			name := deviceName(d.Driver, d.Pool, d.Device, "")
			nodes := nodesOfDevice(published[name], host)
			known = known || len(nodes) > 0
			a.add(PartDevices, name, nodes)
		}
	}
	devices := len(a.Parts)
	onNode := map[int64][]int{}
	var elsewhere []int
	for _, cpu := range c.CPUs {
		if id, ok := nodeOfCPU(host, cpu); ok {
			onNode[id] = append(onNode[id], int(cpu))
		} else {
			elsewhere = append(elsewhere, int(cpu))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(onNode)) {
		a.add(PartCPUs, cpuset.New(onNode[id]...).String(), []int64{id})
	}
	if len(elsewhere) > 0 {
		a.add(PartCPUs, cpuset.New(elsewhere...).String(), nil)
	}
	for _, m := range c.Memory {
		// Of several nodes, the container gets memory of any of them.
		for _, id := range m.NUMANodes {
			a.add(PartMemory, m.Type, []int64{id})
		}
	}
	for _, r := range c.Devices {
		a.add(PartPluginDevices, r.Name, r.NUMANodes)
	}
	if !known || len(a.Parts) == devices {
		return nil
	}
	a.State = a.compare()
	return a
}

// add adds a device or the like to the part with its NUMA nodes.
func (a *Alignment) add(kind PartKind, name string, nodes []int64) {
	i := slices.IndexFunc(a.Parts, func(p AlignedPart) bool { return p.Kind == kind && slices.Equal(p.NUMANodes, nodes) })
	if i < 0 {
		i, a.Parts = len(a.Parts), append(a.Parts, AlignedPart{Kind: kind, NUMANodes: nodes})
	}
	if !slices.Contains(a.Parts[i].Names, name) {
		a.Parts[i].Names = append(a.Parts[i].Names, name)
	}
}

// compare looks for a NUMA node that all parts with a known place have in common.
func (a *Alignment) compare() AlignmentState {
	var common []int64
	state, first := Aligned, true
	for _, p := range a.Parts {
		switch {
		case len(p.NUMANodes) == 0:
			state = AlignmentUndetermined
			continue
		case first:
			common, first = slices.Clone(p.NUMANodes), false
		}
		common = slices.DeleteFunc(common, func(id int64) bool { return !slices.Contains(p.NUMANodes, id) })
	}
	if len(common) == 0 {
		return NotAligned
	}
	return state
}

// nodesOfDevice returns the NUMA nodes that are close to a device: by its attribute, or by
// the kernel if it has the address of a PCI device.
func nodesOfDevice(d *resourceapi.Device, host *node.Host) []int64 {
	if d == nil {
		return nil
	}
	numa := d.Attributes[deviceattribute.StandardDeviceAttributeNUMANode]
	if numa.IntValue != nil {
		return []int64{*numa.IntValue}
	}
	if bus := d.Attributes[deviceattribute.StandardDeviceAttributePCIBusID]; len(numa.IntValues) == 0 && bus.StringValue != nil {
		if id, ok := nodeOfPCI(host, *bus.StringValue); ok {
			return []int64{id}
		}
	}
	return slices.Sorted(slices.Values(numa.IntValues))
}

// requiredOf returns which of the attributes numaNode and pcieRoot constraints of the claims
// of a container require to be the same, by the short names.
func requiredOf(c *Container, snap *snapshot.Snapshot) []string {
	var required []string
	for _, held := range c.Claims {
		claim := snap.Claim(held.Namespace, held.Name)
		if claim == nil {
			continue
		}
		for _, constraint := range claim.Spec.Devices.Constraints {
			if constraint.MatchAttribute == nil {
				continue
			}
			switch name := resourceapi.QualifiedName(*constraint.MatchAttribute); name {
			case deviceattribute.StandardDeviceAttributeNUMANode, deviceattribute.StandardDeviceAttributePCIeRoot:
				required = append(required, strings.TrimPrefix(string(name), deviceattribute.StandardDeviceAttributePrefix))
			}
		}
	}
	slices.Sort(required)
	return slices.Compact(required)
}

// PartsText says in words where the parts are.
func PartsText(parts []AlignedPart) string {
	texts := make([]string, 0, len(parts))
	for _, p := range parts {
		what := strings.Join(p.Names, ", ")
		switch p.Kind {
		case PartDevices:
			what = english.Count(len(p.Names), "device")
		case PartCPUs:
			what = "CPUs " + what
		case PartMemory, PartPluginDevices:
		}
		texts = append(texts, what+" on "+nodesText(p.NUMANodes))
	}
	return english.JoinAnd(texts)
}

// nodesText names NUMA nodes.
func nodesText(ids []int64) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = fmt.Sprint(id)
	}
	if len(ids) == 0 {
		return "an unknown NUMA node"
	}
	return english.Plural(len(ids), "NUMA node ", "NUMA nodes ") + english.JoinOr(names)
}

const (
	cpus       = "/sys/devices/system/cpu"
	pciDevices = "/sys/bus/pci/devices"
	// maxSysFile is the size of a file in sysfs, maxConfig of arguments and configuration.
	maxSysFile = 4096
	maxConfig  = 1 << 20

	// PolicyNone is the policy of a kubelet that aligns nothing.
	PolicyNone = "none"
	// policySingle admits a pod only if its CPUs, memory and devices of device plugins are on
	// one NUMA node.
	policySingle = "single-numa-node"
)

// nodeOfCPU returns the NUMA node of a CPU by the kernel, and whether it has one: a kernel
// without NUMA has no nodes.
func nodeOfCPU(host *node.Host, cpu int64) (int64, bool) {
	entries, _ := host.ReadDir(path.Join(cpus, fmt.Sprintf("cpu%d", cpu)))
	for _, entry := range entries {
		if number, ok := strings.CutPrefix(entry.Name(), "node"); ok {
			if id, err := strconv.ParseInt(number, 10, 64); err == nil {
				return id, true
			}
		}
	}
	return 0, false
}

// nodeOfPCI returns the NUMA node of a PCI device by the kernel, and whether it has one.
func nodeOfPCI(host *node.Host, busID string) (int64, bool) {
	if strings.Contains(busID, "/") {
		return 0, false
	}
	text, err := host.ReadFile(path.Join(pciDevices, busID, "numa_node"), maxSysFile)
	if err != nil {
		return 0, false
	}
	id, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return id, err == nil && id >= 0
}

// topologyPolicy returns the policy of the kubelet's Topology Manager: by the arguments of
// its process, by its configuration, or by the file where kubeadm has that if no process is
// seen. It is empty if it is not known.
func topologyPolicy(host *node.Host) string {
	files := []string{path.Join(host.Kubelet, "config.yaml")}
	switch running := kubeletArguments(host); len(running) {
	case 0:
	case 1:
		policy, file, dropIns := argument(running[0], "topology-manager-policy"), argument(running[0], "config"), argument(running[0], "config-dir")
		if policy != "" {
			return policy
		}
		if files = nil; file != "" {
			files = append(files, file)
		}
		if dropIns == "" {
			break
		}
		// The kubelet reads the files in the order of their names.
		entries, err := host.ReadDir(dropIns)
		if err != nil {
			return ""
		}
		for _, entry := range entries {
			if path.Ext(entry.Name()) == ".conf" {
				files = append(files, path.Join(dropIns, entry.Name()))
			}
		}
	default:
		return ""
	}
	policy := PolicyNone
	for _, file := range files {
		data, err := host.ReadFile(file, maxConfig)
		if err != nil {
			return ""
		}
		var config struct {
			Policy string `json:"topologyManagerPolicy"`
		}
		if err := yaml.Unmarshal(data, &config); err != nil {
			return ""
		}
		policy = cmp.Or(config.Policy, policy)
	}
	return policy
}

// kubeletArguments returns the arguments of each process that is a kubelet with the root
// directory of the host.
func kubeletArguments(host *node.Host) [][]string {
	entries, _ := host.ReadDir("/proc")
	var found [][]string
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		line, err := host.ReadFile(path.Join("/proc", entry.Name(), "cmdline"), maxConfig)
		if err != nil {
			continue
		}
		args := strings.Split(string(line), "\x00")
		root := argument(args, "root-dir")
		if path.Base(args[0]) == "kubelet" && (root == host.Kubelet || root == "" && host.Kubelet == node.DefaultKubelet) {
			found = append(found, args)
		}
	}
	return found
}

// argument returns the value of a flag: the last one counts.
func argument(args []string, flag string) string {
	for i, arg := range slices.Backward(args) {
		name, ok := strings.CutPrefix(arg, "--"+flag)
		switch {
		case ok && strings.HasPrefix(name, "="):
			return name[1:]
		case ok && name == "" && i+1 < len(args):
			return args[i+1]
		}
	}
	return ""
}
