// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package english_test

import (
	"slices"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

func TestCompareNames(t *testing.T) {
	names := []string{"gpu-10", "node-2", "gpu-9", "gpu", "gpu-09", "node-1"}
	slices.SortFunc(names, english.CompareNames)
	if want := []string{"gpu", "gpu-09", "gpu-9", "gpu-10", "node-1", "node-2"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"gpu.nvidia.com", "nic.example.com", "cpu.example.com/model"}
	for name, want := range map[string]string{
		"gpu.nvida.com":          "; did you mean gpu.nvidia.com?",
		"fpga.example.com":       "",
		"cpu.example.com/modell": "; did you mean cpu.example.com/model?",
		"NIC":                    "; did you mean nic.example.com?",
		"ni":                     "",
	} {
		if got := english.DidYouMean(name, names); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestTypo covers pairs of names of which one was meant by the other, and pairs that only
// differ in a few letters only.
func TestTypo(t *testing.T) {
	for _, each := range []struct {
		name, other string
		typo        bool
	}{
		{"gpu.nvida.com", "gpu.nvidia.com", true},
		{"gpus.nvidia.com", "gpu.nvidia.com", true},
		{"gup.nvidia.com", "gpu.nvidia.com", true},
		{"GPU.nvidia.com", "gpu.nvidia.com", true},
		{"gpu-nvidia.com", "gpu.nvidia.com", true},
		{"compute-domain-deamon.nvidia.com", "compute-domain-daemon.nvidia.com", true},
		{"productNmae", "productName", true},
		{"productname", "productName", true},
		{"capacities", "capacity", true},
		{"gqu", "gpu", true},
		{"example.com/gpus", "example.com/gpu", true},
		{"cpu", "gpu", false},
		{"cpu.example.com", "gpu.example.com", false},
		{"example.com/cpu", "example.com/gpu", false},
		{"gpu.amd.com", "gpu.nvidia.com", false},
		{"gpu.nvidia.com", "vgpu.nvidia.com", false},
		{"gpu.nvidia.com", "mig.nvidia.com", false},
		{"gpu.nvidia.com", "vfio.gpu.nvidia.com", false},
		{"gpu.nvidia.com", "compute-domain-daemon.nvidia.com", false},
		{"gpu", "gpu-daemon", false},
		{"gpu-h100", "gpu-h200", false},
		{"gpu-0", "gpu-1", false},
		{"gpu-1", "gpu-01", true},
		{"gpu-1", "gpu-10", false},
		{"minMemory", "maxMemory", false},
		{"inputRate", "outputRate", false},
		{"cudaDriverVersion", "driverVersion", false},
		{"", "gpu", false},
		{"0", "g", false},
	} {
		if got := english.Typo(each.name, []string{each.other}) != ""; got != each.typo {
			t.Errorf("%s for %s: got %t, want %t", each.name, each.other, got, each.typo)
		}
	}
	if got := english.Typo("gpux.example.com", []string{"gpu.example.com", "gpus.example.com", "gpux.example.com"}); got != "gpux.example.com" {
		t.Errorf("the name itself is %q", got)
	}
	if got := english.Typo("gpux.example.com", []string{"gpu.example.com", "gpuxy.example.com"}); got != "" {
		t.Errorf("of two equally near names, %q was meant", got)
	}
}
