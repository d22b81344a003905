// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// randomCase returns a random cluster with the gates of a channel. The stable channel goes
// through its pools in random order, so that chance decides which error it runs into;
// there, no selector fails.
func randomCase(seed uint64, gates tc.Gates, stable bool) *fleet.Case {
	c := fleet.Random(seed)
	if stable {
		c = c.Without(fleet.FailingSelectors).Without(fleet.OtherClasses)
	}
	c.Snapshot.Gates = tc.Snapshot(gates).Gates
	return c
}

// published returns all slices of a cluster, sorted by name, with the taints of the
// DeviceTaintRules.
func published(facts *cluster.Cluster) []*resourceapi.ResourceSlice {
	var all []*resourceapi.ResourceSlice
	for _, pool := range facts.Pools.All() {
		all = append(all, facts.Pools.SlicesOf(pool)...)
	}
	slices.SortFunc(all, func(a, b *resourceapi.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// describe lists the pools of a node with their errors, one a line.
func describe(pools []*cluster.NodePool) string {
	var lines []string
	for _, p := range pools {
		lines = append(lines, fmt.Sprintf("%s/%s@%d: usable %t, incomplete %t, %d devices %s",
			p.Pool.Driver, p.Pool.Name, p.Generation, p.Usable(), p.Incomplete, len(p.Devices), p.Invalid))
	}
	return strings.Join(lines, "\n")
}

// plain asks upstream without anything of ours in between but the data.
func plain(t testing.TB, a *Allocator, snap *snapshot.Snapshot, n *corev1.Node, claims []*resourceapi.ResourceClaim) NodeVerdict {
	t.Helper()
	ctx := klog.NewContext(context.Background(), klog.Logger{})
	upstream, err := structured.NewAllocator(ctx, a.features, a.state().AllocatedState, classLister{snap}, published(a.Facts),
		cel.NewCache(10, cel.Features{EnableConsumableCapacity: a.features.ConsumableCapacity, EnableListTypeAttributes: a.features.ListTypeAttributes}))
	if err != nil {
		t.Fatal(err)
	}
	results, err := upstream.Allocate(ctx, n, claims)
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return NodeVerdict{Outcome: NodeError, Err: err}
	case err != nil:
		return NodeVerdict{Outcome: Failed, Err: err}
	case len(results) != len(claims):
		return NodeVerdict{Outcome: DoesNotFit}
	default:
		return NodeVerdict{Outcome: Fits, Allocations: results}
	}
}

// withoutShareIDs drops the random part of a result.
func withoutShareIDs(results []resourceapi.AllocationResult) []resourceapi.AllocationResult {
	var stripped []resourceapi.AllocationResult
	for i := range results {
		result := results[i].DeepCopy()
		for j := range result.Devices.Results {
			result.Devices.Results[j].ShareID = nil
		}
		stripped = append(stripped, *result)
	}
	return stripped
}

// TestCheckEqualsUpstream compares the verdict for a few pools with the plain allocator's
// for all slices.
func TestCheckEqualsUpstream(t *testing.T) {
	const clusters = 500
	for channel, gates := range tc.Channels() {
		t.Run(channel, func(t *testing.T) {
			seen := map[Outcome]int{}
			for seed := range uint64(clusters) {
				random := randomCase(seed, gates, channel == cluster.ChannelStable || gates == nil)
				snap, claims := random.Snapshot, random.Claims()
				a := Of(cluster.New(snap))
				for _, n := range snap.Nodes {
					want := plain(t, a, snap, n, claims)
					got := a.Check(context.Background(), n, claims)
					seen[got.Outcome]++
					if got.Outcome != want.Outcome {
						t.Fatalf("seed %d, %s: got %s (%v), upstream %s (%v)", seed, n.Name, got.Outcome, got.Err, want.Outcome, want.Err)
					}
					// The stable channel goes through its pools in random order.
					if a.Facts.Gates.Channel() == cluster.ChannelStable {
						continue
					}
					if fmt.Sprint(got.Err) != fmt.Sprint(want.Err) {
						t.Fatalf("seed %d, %s: got error %v, upstream %v", seed, n.Name, got.Err, want.Err)
					}
					if diff := gocmp.Diff(withoutShareIDs(want.Allocations), withoutShareIDs(got.Allocations)); diff != "" {
						t.Fatalf("seed %d, %s (-upstream +got):\n%s", seed, n.Name, diff)
					}
				}
			}
			for _, outcome := range []Outcome{Fits, DoesNotFit, NodeError, Failed} {
				if seen[outcome] < clusters/100 {
					t.Errorf("only %d times %s: the clusters prove little", seen[outcome], outcome)
				}
			}
		})
	}
}

// TestPoolsForEqualsUpstream finds out about the allocator's view of pools
// from outside: it asks for each device by its attribute "id", and for all
// devices of a kind that does not exist, which fails at the first pool that is
// incomplete or invalid.
func TestPoolsForEqualsUpstream(t *testing.T) {
	const clusters = 250
	for channel, gates := range tc.Channels() {
		t.Run(channel, func(t *testing.T) {
			for seed := range uint64(clusters) {
				snap := randomCase(seed, gates, false).Snapshot
				// What has nothing to do with pools would only be in the way.
				snap.Claims = nil
				snap.TaintRules = nil
				for _, s := range snap.Slices {
					s.Spec.SkipNodeOperations = nil
					for i := range s.Spec.Devices {
						s.Spec.Devices[i].Taints = nil
						for _, use := range s.Spec.Devices[i].ConsumesCounters {
							use.Counters["units"] = resourceapi.Counter{Value: resource.MustParse("1")}
						}
					}
				}
				a := Of(cluster.New(snap))
				for _, n := range snap.Nodes {
					pools, err := a.Facts.Pools.For(n)
					if err != nil {
						t.Fatal(err)
					}
					comparePools(t, seed, a, snap, n, pools)
				}
			}
		})
	}
}

func comparePools(t *testing.T, seed uint64, a *Allocator, snap *snapshot.Snapshot, n *corev1.Node, pools []*cluster.NodePool) {
	t.Helper()
	id := func(d *resourceapi.Device) string { return fmt.Sprint(*d.Attributes["id"].IntValue) }
	ours := map[string]bool{}
	problem := ""
	for _, p := range pools {
		for _, d := range p.Devices {
			// These devices are there, but not to be had with the features.
			if len(d.BindingConditions) > 0 && !a.features.DeviceBindingAndStatus ||
				len(d.ConsumesCounters) > 0 && !a.features.PartitionableDevices {
				continue
			}
			ours[id(d.Device)] = true
		}
		if problem == "" && p.Incomplete {
			problem = p.Pool.Driver + "/" + p.Pool.Name + " is currently being updated"
		}
		if problem == "" && p.Invalid != "" {
			problem = p.Pool.Driver + "/" + p.Pool.Name + " is currently invalid"
		}
	}
	var got, want []string
	for _, s := range snap.Slices {
		for i := range s.Spec.Devices {
			device := id(&s.Spec.Devices[i])
			if ours[device] {
				got = append(got, device)
			}
			// The classes are named like the drivers.
			c := tc.Claim("c", tc.Request("r", s.Spec.Driver, 1, fmt.Sprintf("device.attributes[%q].id == %s", s.Spec.Driver, device)))
			if plain(t, a, snap, n, []*resourceapi.ResourceClaim{c.ResourceClaim}).Outcome == Fits {
				want = append(want, device)
			}
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("seed %d, %s: devices (-upstream +got):\n%s\n%s", seed, n.Name, diff, describe(pools))
	}
	all := tc.Claim("c", tc.Request("r", fleet.Class, 0, "false").All())
	verdict := plain(t, a, snap, n, []*resourceapi.ResourceClaim{all.ResourceClaim})
	if (verdict.Outcome == Failed) != (problem != "") {
		t.Fatalf("seed %d, %s: all devices: upstream says %v, but the first problem is %q\n%s", seed, n.Name, verdict.Err, problem, describe(pools))
	}
	if a.Facts.Gates.Channel() != cluster.ChannelStable && problem != "" && !strings.Contains(verdict.Err.Error(), problem) {
		t.Fatalf("seed %d, %s: all devices: upstream says %v, the first problem is %q\n%s", seed, n.Name, verdict.Err, problem, describe(pools))
	}
	usable := slices.DeleteFunc(slices.Clone(pools), func(p *cluster.NodePool) bool { return p.Usable() || len(p.Devices) == 0 })
	if len(usable) > 0 {
		t.Fatalf("seed %d, %s: pools that are not used have devices:\n%s", seed, n.Name, describe(usable))
	}
}
