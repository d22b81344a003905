// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
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
