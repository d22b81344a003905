// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

const (
	pciDevices = "/sys/bus/pci/devices"
	// buses has a directory for each kind of bus that the kernel knows.
	buses = "/sys/bus"
	// pciFile limits the size of a file there; in sysfs a file is one page.
	pciFile = 4096
	// nvidiaVendor is the PCI vendor ID.
	nvidiaVendor = "0x10de"
	// displayClass begins the PCI class of display controllers: VGA compatible ones
	// (0x0300) and controllers without a connector (0x0302).
	displayClass = "0x03"
)

// pciGPUs lists the NVIDIA GPUs on the PCI bus, with the kernel driver that each
// is bound to. The list is complete unless there is an error; a machine without
// such a bus has none.
func pciGPUs(host *node.Host) ([]PCIDevice, error) {
	entries, err := host.ReadDir(pciDevices)
	if errors.Is(err, fs.ErrNotExist) && isDir(host, buses) {
		// The kernel has other buses, but not this one.
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []PCIDevice
	for _, entry := range entries {
		read := func(file string) string {
			// A device that cannot be read is taken for another vendor's.
			data, _ := host.ReadFile(path.Join(pciDevices, entry.Name(), file), pciFile)
			return strings.TrimSpace(string(data))
		}
		if read("vendor") != nvidiaVendor || !strings.HasPrefix(read("class"), displayClass) {
			continue
		}
		device := PCIDevice{BusID: entry.Name(), Device: read("device")}
		link := path.Join(pciDevices, entry.Name(), "driver")
		if here, err := host.Here(link); err == nil && here != "" {
			if _, err := host.Stat(link); err == nil {
				device.Driver = filepath.Base(here)
			}
		}
		var gone []Missing
		device.Root, device.NUMANode, gone = topology(host, device.BusID)
		device.Missing = gone
		found = append(found, device)
	}
	return found, nil
}

func isDir(host *node.Host, path string) bool {
	info, err := host.Stat(path)
	return err == nil && info.IsDir()
}

// maxXIDs limits how many errors are kept of each GPU: the last ones, errors of the GPU
// before errors of applications.
const maxXIDs = 20

// addXIDs gives each GPU its errors from the kernel log. NVML reports an XID only while
// somebody listens; earlier ones are in the log alone.
func addXIDs(gpus []GPU, host *node.Host) {
	if len(gpus) == 0 {
		return
	}
	lines, err := kernelLog(host)
	if err != nil {
		for i := range gpus {
			lacks(&gpus[i].Missing, "xids", "NVML reports them only while they happen, and the kernel log cannot be read: "+err.Error())
		}
		return
	}
	found := parseXIDs(lines)
	for i := range gpus {
		slot, _, _ := strings.Cut(gpus[i].PCIBusID, ".")
		gpus[i].XIDs = found[slot]
	}
}

// parseXIDs finds the errors by PCI domain, bus and device ("0000:3b:00") in
// lines such as "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.".
func parseXIDs(lines []string) map[string][]XID {
	pattern := regexp.MustCompile(`NVRM: Xid \(PCI:([0-9a-fA-F:]{1,32})\): ([0-9]{1,5}),? ?(.*)`)
	found := map[string][]XID{}
	for _, line := range lines {
		parts := pattern.FindStringSubmatch(line)
		if parts == nil {
			continue
		}
		code, err := strconv.Atoi(parts[2])
		if err != nil {
			continue
		}
		slot := strings.ToLower(parts[1])
		found[slot] = append(found[slot], XID{Code: code, Message: parts[3]})
		if len(found[slot]) > maxXIDs {
			// Errors of applications that fail because of a GPU must not push out the GPU's
			// error.
			oldest := max(slices.IndexFunc(found[slot], XID.ofApplication), 0)
			found[slot] = slices.Delete(found[slot], oldest, oldest+1)
		}
	}
	return found
}

// ofApplication reports whether a program on a healthy GPU can cause the error, by the list
// of the NVIDIA DRA driver (xidsToSkip, cmd/gpu-kubelet-plugin/device_health.go).
func (x XID) ofApplication() bool { return slices.Contains([]int{13, 31, 43, 45, 68, 109}, x.Code) }

// maxProcFile is far more than the size of the files in /proc that are read here.
const maxProcFile = 64 << 10

// nameProcesses looks up the names and pods of processes in the node's /proc. A process
// that has ended meanwhile, or that only another PID namespace has, stays a number.
func nameProcesses(gpus []GPU, host *node.Host) {
	for i := range gpus {
		for j := range gpus[i].Operation.Processes {
			process := &gpus[i].Operation.Processes[j]
			name, err := host.ReadFile(fmt.Sprintf("/proc/%d/comm", process.PID), maxProcFile)
			if err != nil {
				continue
			}
			process.Name = strings.TrimSpace(string(name))
			process.PodUID = host.PodOf(process.PID)
		}
	}
}
