// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// TestEarlierEqualsUpstream holds the search of earlier releases, without any of their bugs,
// against the library, for all that these releases know.
func TestEarlierEqualsUpstream(t *testing.T) {
	none := func(cluster.Behavior) bool { return false }
	for channel, gates := range tc.Channels() {
		if channel == cluster.ChannelExperimental {
			continue
		}
		t.Run(channel, func(t *testing.T) {
			seen := map[Outcome]int{}
			for seed := range uint64(500) {
				random := randomCase(seed, gates, channel == cluster.ChannelStable || gates == nil)
				snap, claims := random.Snapshot, random.Claims()
				a := Of(cluster.New(snap))
				for _, n := range snap.Nodes {
					want := plain(t, a, snap, n, claims)
					got := NodeVerdict{Outcome: Fits}
					var err error
					got.Allocations, err = a.asEarlier(context.Background(), n, claims, none)
					switch {
					case errors.Is(err, ErrInvalidPool):
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

// TestEarlierRoundsAsStored asks for an amount that is rounded up to a step: what a claim gets is
// written as the API server stores it.
func TestEarlierRoundsAsStored(t *testing.T) {
	for release, of := range map[string]struct{ unit, asked, taken string }{
		"v1.35.4": {"1G", "2500M", "3G"},
		"v1.36.3": {"1Gi", "2500Mi", "3Gi"},
	} {
		unit := resource.MustParse(of.unit)
		claim := tc.Claim("c", tc.GPUs("gpu", 1).WithCapacity("bandwidth", of.asked))
		snap := tc.Cluster(tc.Nodes("n1"), tc.Gate("DRAConsumableCapacity", true), claim, tc.Pool("n1", tc.Device("nic")).Change(func(s *resourceapi.ResourceSlice) {
			s.Spec.Devices[0].AllowMultipleAllocations = new(true)
			s.Spec.Devices[0].Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"bandwidth": {
				Value:         resource.MustParse("10" + of.unit[1:]),
				RequestPolicy: &resourceapi.CapacityRequestPolicy{Default: &unit, ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &unit, Step: &unit}},
			}}
		}))
		snap.ServerVersion = release
		a := Of(cluster.New(snap))
		v := a.Check(t.Context(), snap.Nodes[0], []*resourceapi.ResourceClaim{claim.ResourceClaim})
		if v.Outcome != Fits {
			t.Fatalf("%s: %s %v", release, v.Outcome, v.Err)
		}
		amount := v.Allocations[0].Devices.Results[0].ConsumedCapacity["bandwidth"]
		if text := amount.String(); text != of.taken {
			t.Errorf("%s: takes %s, want %s", release, text, of.taken)
		}
	}
}
