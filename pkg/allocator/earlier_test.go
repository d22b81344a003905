// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/earlier"
	"github.com/kubectl-dra/kubectl-dra/pkg/behavior"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// TestEarlierEqualsUpstream holds the search of earlier releases, without any of their bugs,
// against the library, for all that these releases know.
func TestEarlierEqualsUpstream(t *testing.T) {
	none := func(behavior.Behavior) bool { return false }
	for channel, gates := range tc.Channels() {
		if channel == cluster.ChannelExperimental {
			continue
		}
		t.Run(channel, func(t *testing.T) {
			seen := map[Outcome]int{}
			for seed := range uint64(500) {
				random := randomCase(seed, gates, channel == cluster.ChannelStable || gates == nil)
				snap, claims := random.Snapshot, random.Claims()
				a, err := New(context.Background(), cluster.New(snap))
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range snap.Nodes {
					want := plain(t, a, snap, n, claims)
					got := Verdict{Outcome: Fits}
					got.Allocations, err = a.asEarlier(context.Background(), n, claims, none)
					switch {
					case errors.Is(err, earlier.ErrInvalidPool):
						got.Outcome = NodeError
					case err != nil:
						got.Outcome = Failed
					case len(got.Allocations) != len(claims):
						got.Outcome = DoesNotFit
					}
					seen[got.Outcome]++
					if got.Outcome != want.Outcome {
						t.Fatalf("seed %d, %s: got %s (%v), upstream %s (%v)", seed, n.Name, got.Outcome, err, want.Outcome, want.Err)
					}
					if a.Facts.Gates.Channel() == cluster.ChannelStable || want.Outcome != Fits {
						continue
					}
					for i := range want.Allocations {
						want.Allocations[i].Devices.Config = nil
					}
					if diff := gocmp.Diff(withoutShareIDs(want.Allocations), withoutShareIDs(got.Allocations)); diff != "" {
						t.Fatalf("seed %d, %s: (-upstream +got)\n%s", seed, n.Name, diff)
					}
				}
			}
			if seen[Fits] < 100 || seen[DoesNotFit] < 100 {
				t.Errorf("too few of a kind: %v", seen)
			}
		})
	}
}
