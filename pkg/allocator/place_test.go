// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
)

func TestScore(t *testing.T) {
	alternatives := tc.FirstAvailable("r", tc.Request("first", tc.ClassA, 1), tc.Request("second", tc.ClassA, 2))
	pending := tc.Claim("c", alternatives, tc.Request("exact", tc.ClassA, 1))
	chosen := func(requests ...string) resourceapi.AllocationResult {
		c := tc.Claim("c")
		for _, r := range requests {
			c = c.Holding("d/p/d", func(result *resourceapi.DeviceRequestAllocationResult) { result.Request = r })
		}
		return *c.Status.Allocation
	}
	allocated := tc.ClaimWrapper{ResourceClaim: pending.DeepCopy()}
	second := chosen("r/second", "r/second")
	allocated.Status.Allocation = &second

	tests := map[string]struct {
		claims      []tc.ClaimWrapper
		allocations []resourceapi.AllocationResult
		want        int64
	}{
		"nothing":                   {},
		"no alternatives":           {claims: []tc.ClaimWrapper{tc.Claim("c", tc.Request("exact", tc.ClassA, 1))}, allocations: []resourceapi.AllocationResult{chosen("exact")}},
		"first":                     {claims: []tc.ClaimWrapper{pending}, allocations: []resourceapi.AllocationResult{chosen("r/first", "exact")}, want: 8},
		"second":                    {claims: []tc.ClaimWrapper{pending}, allocations: []resourceapi.AllocationResult{second}, want: 7},
		"allocated and to allocate": {claims: []tc.ClaimWrapper{allocated, pending}, allocations: []resourceapi.AllocationResult{chosen("r/first")}, want: 15},
		"allocation missing":        {claims: []tc.ClaimWrapper{pending, pending}, allocations: []resourceapi.AllocationResult{chosen("r/first")}, want: 8},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var claims []*resourceapi.ResourceClaim
			for _, c := range tt.claims {
				claims = append(claims, c.ResourceClaim)
			}
			if got := Score(claims, tt.allocations); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
