// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

// TestSameHardware compares names as vendors choose them.
func TestSameHardware(t *testing.T) {
	for _, test := range []struct {
		driver, resource string
		want             bool
	}{
		{"gpu.nvidia.com", "nvidia.com/gpu", true},
		{"gpu.nvidia.com", "nvidia.com/gpu.shared", true},
		{"gpu.nvidia.com", "nvidia.com/mig-1g.10gb", true},
		{"compute-domain.nvidia.com", "nvidia.com/gpu", false},
		{"gpu.amd.com", "amd.com/gpu", true},
		{"gpu.intel.com", "gpu.intel.com/i915", true},
		{"gaudi.intel.com", "habana.ai/gaudi", true},
		{"neuron.aws.com", "aws.amazon.com/neuroncore", true},
		{"tpu.google.com", "google.com/tpu", true},
		{"dra.net", "example.com/gpu", false},
		{"gpu.example.com", "cpu", false},
	} {
		if got := SameHardware(test.driver, test.resource); got != test.want {
			t.Errorf("%s and %s: %t", test.driver, test.resource, got)
		}
	}
}
