// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

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
