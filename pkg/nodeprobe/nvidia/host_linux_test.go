// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nvidia

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// sysfs makes a node of which only the PCI bus is known: a GPU below a bridge
// with a NUMA node, one for virtual machines, its audio function and a NIC.
func sysfs(t *testing.T) *node.Host {
	t.Helper()
	root := t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []struct{ bus, at, vendor, device, class, driver, numa string }{
		{"0000:3b:00.0", "pci0000:3a/0000:3a:00.0/0000:3b:00.0", "0x10de", "0x2330", "0x030200", "nvidia", "1"},
		{"0000:5e:00.0", "pci0000:5d/0000:5e:00.0", "0x10de", "0x2330", "0x030200", "vfio-pci", "-1"},
		{"0000:5e:00.1", "pci0000:5d/0000:5e:00.1", "0x10de", "0x2331", "0x040300", "", "-1"},
		{"0000:5f:00.0", "pci0000:5d/0000:5f:00.0", "0x15b3", "0x1021", "0x020700", "mlx5_core", "0"},
	} {
		dir := filepath.Join(root, "sys/devices", d.at)
		must(os.MkdirAll(dir, 0o755))
		for name, text := range map[string]string{"vendor": d.vendor, "device": d.device, "class": d.class, "numa_node": d.numa} {
			must(os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600))
		}
		must(os.MkdirAll(filepath.Join(root, pciDevices), 0o755))
		must(os.Symlink(filepath.Join("../../../devices", d.at), filepath.Join(root, pciDevices, d.bus)))
		if d.driver != "" {
			must(os.MkdirAll(filepath.Join(root, "sys/bus/pci/drivers", d.driver), 0o755))
			up := strings.Repeat("../", strings.Count(d.at, "/")+2)
			must(os.Symlink(up+"bus/pci/drivers/"+d.driver, filepath.Join(dir, "driver")))
		}
	}
	return node.NewHost(root, "", nil)
}

func TestPCI(t *testing.T) {
	got, err := pciGPUs(sysfs(t))
	if err != nil {
		t.Fatal(err)
	}
	one := 1
	want := []PCIDevice{
		{BusID: "0000:3b:00.0", Device: "0x2330", Driver: "nvidia", Root: "pci0000:3a", NUMANode: &one},
		{
			BusID: "0000:5e:00.0", Device: "0x2330", Driver: "vfio-pci", Root: "pci0000:5d",
			Missing: []Missing{{Value: "numaNode", Reason: "PCI device 0000:5e:00.0 has no NUMA affinity (numa_node=-1)"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestLookWithoutNVML covers nodes without the NVML library.
func TestLookWithoutNVML(t *testing.T) {
	empty := node.NewHost(t.TempDir(), "", nil)
	f, err := Look(context.Background(), empty, Options{})
	if err != nil || node.Worst(f.Checks) == node.OK {
		t.Errorf("without a PCI bus to look at nothing is known: %+v, %v", f.Checks, err)
	}
	f, err = Look(context.Background(), sysfs(t), Options{})
	if err != nil || len(f.PCI) != 2 || node.Worst(f.Checks) == node.OK {
		t.Errorf("GPUs without NVML: %+v, %v", f, err)
	}
	if _, err := Look(context.Background(), empty, Options{Simulate: "../dgx-h100"}); err == nil {
		t.Error("an unknown machine is simulated")
	}
}

// TestNoPCIBus looks at a machine whose kernel knows other buses only: that is
// not the same as a machine that cannot be seen.
func TestNoPCIBus(t *testing.T) {
	for bus, want := range map[string]node.State{"sys/bus/platform": node.OK, "sys": node.Unknown} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, bus), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := Look(t.Context(), node.NewHost(root, "", nil), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := node.Worst(f.Checks); got != want {
			t.Errorf("with /%s it is %s, want %s: %+v", bus, got, want, f.Checks)
		}
	}
}
