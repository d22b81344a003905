// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// TestPlainPools checks that pools which need no look give the same answer if they get one.
func TestPlainPools(t *testing.T) {
	for name, gates := range tc.Channels() {
		t.Run(name, func(t *testing.T) {
			plain, all := 0, 0
			for seed := range uint64(300) {
				snap := fleet.Random(seed).Snapshot
				snap.Gates = tc.Snapshot(gates).Gates
				facts := cluster.New(snap)
				e, thorough := NewDevices(facts), &Devices{Facts: facts}
				thorough.found = sync.OnceValue(func() outcomes { return lookAt(facts, sets.Set[*cluster.Pool]{}) })
				plain += len(e.found().plain)
				all += len(facts.Pools.All())
				for i := range facts.Pools.Devices() {
					d := &facts.Pools.Devices()[i]
					got, want := e.Reason(d), thorough.Reason(d)
					if (got == nil) != (want == nil) || got != nil && got.Alone() != want.Alone() {
						t.Errorf("seed %d: device %s: got %v, want %v", seed, d.ID, got, want)
					}
				}
			}
			if plain == 0 || plain == all {
				t.Errorf("%d of %d pools are plain; some should be, and some not", plain, all)
			}
		})
	}
}
