// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package naming_test

import (
	"slices"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
)

func TestCompare(t *testing.T) {
	names := []string{"gpu-10", "node-2", "gpu-9", "gpu", "gpu-09", "node-1"}
	slices.SortFunc(names, naming.Compare)
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
	} {
		if got := naming.DidYouMean(name, names); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
