// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

// TestPlainPools are those at which nobody has to look: looking at them as well
// changes nothing.
func TestPlainPools(t *testing.T) {
	for name, gates := range channels() {
		t.Run(name, func(t *testing.T) {
			plain, all := 0, 0
			for seed := range uint64(300) {
				snap := randomCase(seed, gates, name == "stable").Snapshot
				a, thorough := newAllocator(t, snap), newAllocator(t, snap)
				thorough.ineligible = sync.OnceValue(func() ineligibilities { return thorough.findIneligibleExcept(sets.Set[*Pool]{}) })
				plain += len(a.ineligible().plain)
				all += len(a.Pools())
				for i := range a.Devices() {
					got, want := a.Ineligibility(&a.Devices()[i]), thorough.Ineligibility(&thorough.Devices()[i])
					if (got == nil) != (want == nil) || got != nil && got.Reason != want.Reason {
						t.Errorf("seed %d: device %s: got %v, want %v", seed, a.Devices()[i].ID, got, want)
					}
				}
			}
			if plain == 0 || plain == all {
				t.Errorf("%d of %d pools are plain; some should be, and some not", plain, all)
			}
		})
	}
}
